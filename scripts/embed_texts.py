#!/usr/bin/python3
# embed_texts.py FOLDER SUFFIX NAME OUT.c OUT.h DEPFILE: turns FOLDER/*SUFFIX into a C table ccn__NAME of names and
# texts; machines/h200.txt becomes "h200".
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys


def main(folder, suffix, name, out_c, out_h, depfile):
    root = pathlib.Path(folder)
    files = sorted(root.glob("*" + suffix))
    header = pathlib.Path(out_h).name
    lines = [f'#include "{header}"']
    rows = []
    for i, path in enumerate(files):
        data = path.read_bytes()
        values = [str(b) for b in data + b"\0"]
        lines.append(f"static const unsigned char text_{i}[] = {{")
        lines += ["  " + ",".join(values[k:k + 32]) + "," for k in range(0, len(values), 32)]
        lines.append("};")
        rows.append(f'  {{"{path.name[:-len(suffix)]}", (const char *)text_{i}, {len(data)}}},')
    lines += [f"const ccn__{name}_text ccn__{name}[] = {{", *rows, "  {NULL, NULL, 0},", "};", ""]
    pathlib.Path(out_c).write_text("\n".join(lines))
    guard = f"CCN_{name.upper()}_TEXTS_H"
    pathlib.Path(out_h).write_text(f"""/* Written by scripts/embed_texts.py; do not edit. */
#ifndef {guard}
#define {guard}
#include <stddef.h>

typedef struct ccn__{name}_text {{
  const char *name;
  const char *text; /* size bytes and a NUL */
  size_t size;
}} ccn__{name}_text;

/* In order of name; an entry with name NULL ends it. */
extern const ccn__{name}_text ccn__{name}[];
#endif
""")
    inputs = [p.as_posix().replace(" ", "\\ ") for p in [pathlib.Path(__file__).resolve(), root, *files]]
    pathlib.Path(depfile).write_text(f"{out_c} {out_h}: " + " ".join(inputs) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

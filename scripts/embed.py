#!/usr/bin/python3
# embed.py FOLDER OUT.c OUT.h DEPFILE: turns FOLDER/**/*.ccn into a C table; FOLDER/optim.ccn becomes "std/optim".
# Bytes are written as numbers: string literals have length limits, escapes and trigraphs.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

HEADER = """/* ccn_stdlib.h: the modules of the standard library, written by scripts/embed.py; do not edit. */
#ifndef CCN_STDLIB_H
#define CCN_STDLIB_H
#include <stddef.h>

typedef struct ccn__stdlib_file {
  const char *name; /* "std/optim" */
  const char *text; /* size bytes and a NUL */
  size_t size;
} ccn__stdlib_file;

/* In order of name; an entry with name NULL ends it. */
extern const ccn__stdlib_file ccn__stdlib[];
#endif
"""


def main(folder, out_c, out_h, depfile):
    root = pathlib.Path(folder)
    files = sorted(root.rglob("*.ccn"))
    lines = ["/* ccn_stdlib.c: written by scripts/embed.py; do not edit. */", '#include "ccn_stdlib.h"', ""]
    rows = []
    for i, path in enumerate(files):
        data = path.read_bytes()
        values = [str(b) for b in data + b"\0"]
        lines.append(f"/* {path.relative_to(root).as_posix()} */")
        lines.append(f"static const unsigned char text_{i}[] = {{")
        lines += ["  " + ",".join(values[k:k + 32]) + "," for k in range(0, len(values), 32)]
        lines.append("};")
        name = "std/" + path.relative_to(root).with_suffix("").as_posix()
        rows.append(f'  {{"{name}", (const char *)text_{i}, {len(data)}}},')
    lines += ["", "const ccn__stdlib_file ccn__stdlib[] = {", *rows, "  {NULL, NULL, 0},", "};", ""]
    pathlib.Path(out_c).write_text("\n".join(lines))
    pathlib.Path(out_h).write_text(HEADER)
    # Folders are dependencies too: a new module changes them.
    folders = [root, *sorted(p for p in root.rglob("*") if p.is_dir())]
    inputs = [p.as_posix().replace(" ", "\\ ") for p in [pathlib.Path(__file__).resolve(), *folders, *files]]
    pathlib.Path(depfile).write_text(f"{out_c} {out_h}: " + " ".join(inputs) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

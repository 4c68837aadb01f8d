#!/usr/bin/env python3
"""optable.py: writes the table of ops in docs/language.md from lang/ops.def, and the tables of dtypes, reduction
operators and error codes from their .def files, and docs/errors.md; looks whether the reference mentions every function
of scripts and every statement of schedules.

    scripts/optable.py            rewrites docs/errors.md and what stands between the markers
    scripts/optable.py --check    changes nothing; status 1 and a diff if a table is out of date

A table stands between `<!-- begin NAME: ... -->` and `<!-- end NAME -->`.
SPDX-License-Identifier: Apache-2.0
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "language.md"
ERRORS = ROOT / "docs" / "errors.md"

# How a call of it is written where that is not name(parameters).
WRITTEN = {
    "ADD": "x + y", "SUB": "x - y", "MUL": "x * y", "DIV": "x / y", "FLOORDIV": "x // y", "MOD": "x % y",
    "POW": "x ** y", "LT": "x < y", "LE": "x <= y", "GT": "x > y", "GE": "x >= y", "EQ": "x == y", "NE": "x != y",
    "AND": "x and y", "OR": "x or y", "NOT": "not x", "NEG": "-x", "CAST": "f32(x), ...", "INDEX": "x[i, a:b]",
    "FULL": "full(type, value), zeros(type), ones(type)",
}
CLASS = {"NUM": "numbers", "FLOAT": "floats", "INT": "integers", "BOOL": "bool", "ANY": "all"}
OWED = {
    "NEVER": "-", "LINEAR": "every operand owes sum", "SCALE": "one owes sum, the other R",
    "SCALE_LEFT": "x owes sum, y R", "MAXIMUM": "both owe max, or one and the other R",
    "MINIMUM": "both owe min, or one and the other R", "SELECT": "cond R, x and y owe the same: sum, max, min",
    "WIDENING": "widening: sum, max, min", "REDUCE": "the op's own operator", "BILINEAR": "one owes sum, the other R",
    "SHAPE": "any operator", "CONCAT": "all owe the same operator", "TAKE": "x owes sum, max or min, idx R",
    "SCATTER": "v owes sum, idx R",
}


def split_arguments(text):
    """The arguments of a macro call: commas outside of quotes part them, neighbouring strings join."""
    parts, at, quoted = [""], 0, False
    while at < len(text):
        c = text[at]
        if c == "\\" and quoted:
            parts[-1] += text[at:at + 2]
            at += 2
            continue
        if c == '"':
            quoted = not quoted
        if c == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += c
        at += 1
    return [p.strip() for p in parts]


def plain(word):
    """A C string without its quotes and escapes, or the bare word."""
    if not word.startswith('"'):
        return word
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', word)).replace('\\"', '"').replace("\\\\", "\\")


def rows(name, macro):
    """Yields (comment on top of its group, arguments) of each row of lang/NAME."""
    text = (ROOT / "lang" / name).read_text()
    text = text[text.index("*/") + 2:]  # the comment on top shows a row
    group = ""
    for m in re.finditer(r"/\*(.*?)\*/|^" + macro + r"\((.*?)\)(?:[ \t]*/\*.*?\*/)?$", text, re.DOTALL | re.MULTILINE):
        if m[1]:
            group = " ".join(m[1].split())
        else:
            yield group, [plain(a) for a in split_arguments(m[2])]


def cell(text):
    return text.replace("|", "\\|")


def code(text):
    return f"`{cell(text)}`" if text else "-"


# Where the column of the table does not tell what the nodes of a composed op do.
OWED_BY_OP = {"DOT": "one owes sum, the other R"}


def result(op, kind, dtypes, result_class):
    fixed = {"ARGMAX": "i64", "ONE_HOT": "`as`, or f32", "CAST": "the cast's", "RANK": "i32", "WHERE": "that of x, y"}
    if op in fixed:
        return fixed[op]
    if kind in ("MAKER", "RANDOM") and result_class == "OWN":
        return "the type's"
    return "bool" if result_class == "BOOL" else "that of x"


def ops():
    out, last = [], None
    for group, r in rows("ops.def", "OP"):
        op, name, kind, _, sig, prule, dtypes, result_class, _, _, _, params, doc = r
        if kind in ("STRUCT", "HOST"):
            continue
        if group != last:
            out += ["", f"*{group[0].upper()}{group[1:]}*", "", "| written | operands | result | dims | owed values pass where | meaning |",
                    "|---|---|---|---|---|---|"]
            last = group
        written = WRITTEN.get(op) or f"{name}({params})"
        sig = "see the text" if sig == "=" else code(sig)
        of = "-" if kind == "MAKER" else CLASS[dtypes] if kind != "RANDOM" or op == "DROPOUT" else "-"
        owed = "see section 12" if kind == "COLLECTIVE" else OWED_BY_OP.get(op, OWED[prule])
        out.append(f"| {code(written)} | {of} | {result(op, kind, dtypes, result_class)} | {sig} | {owed} | {cell(doc)} |")
    return out[1:]


def dtypes():
    out = ["| dtype | bytes | class | sums are accumulated in |", "|---|---|---|---|"]
    classes = {"F": "float", "I": "signed integer", "U": "unsigned integer", "B": "boolean"}
    for _, (_, name, size, cls, acc) in rows("dtype.def", "DTYPE"):
        if size == "0":
            out.append(f"| `{name}` | - | {classes[cls]} | reserved: not there yet (CCN0100) |")
        else:
            out.append(f"| `{name}` | {size} | {classes[cls]} | {'-' if cls == 'B' else acc.lower()} |")
    return out


def redops():
    return ["| operator | what it does |", "|---|---|"] + [f"| `{name}` | {doc} |" for _, (_, name, doc) in rows("redops.def", "REDOP")]


def codes():
    text = (ROOT / "lang" / "errors.def").read_text()
    out = ["| code | title |", "|---|---|"]
    for number, title in re.findall(r'^ERRCODE\((\d+), "((?:[^"\\]|\\.)*)",', text, re.MULTILINE):
        out.append(f"| CCN{int(number):04} | {cell(plain(chr(34) + title + chr(34)))} |")
    return out


def errors():
    """The page of all codes: what `ccn explain` says of each."""
    out = ["# Errors", "", "<!-- written by scripts/optable.py from lang/errors.def -->", "",
           "What `ccn explain CODE` says, code by code. Programs behind \"Wrong\" give the code, those behind \"Right\" do not;",
           "tests try them all.", ""]
    for _, (number, title, hint, page) in rows("errors.def", "ERRCODE"):
        out += [f"## CCN{int(number):04}", "", f"**{title}**" + (f" ({hint})" if hint else ""), ""]
        out += [page.replace("\\n", "\n").rstrip(), ""]
    return "\n".join(out)


def not_mentioned(page):
    """Functions of scripts and statements of schedules that the page does not show."""
    builtins = re.findall(r'^  \{"(\w+)", "', (ROOT / "lang" / "script_builtins.c").read_text(), re.MULTILINE)
    passes = re.findall(r"^PASS\((\w+),", (ROOT / "passes" / "passes.def").read_text(), re.MULTILINE)
    return [f for f in builtins + passes if not re.search(rf"`[^`\n]*\b{f}\([^`\n]*`", page)]


TABLES = {"ops": ops, "dtypes": dtypes, "redops": redops, "codes": codes}


def put(path, old, new, check):
    if new == old:
        return 0
    if check:
        where = path.relative_to(ROOT)
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(where), "from lang/*.def"))
        print(f"{where} is out of date: run scripts/optable.py", file=sys.stderr)
        return 1
    path.write_text(new)
    return 0


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    old = PAGE.read_text()
    new = old
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- begin {name}:[^\n]*-->\n)(.*?)(<!-- end {name} -->)", re.DOTALL)
        if not pattern.search(new):
            print(f"{PAGE.name} has no markers for the table `{name}`", file=sys.stderr)
            return 1
        body = "\n".join(["", *table(), "", ""])
        new = pattern.sub(lambda m: m[1] + body + m[3], new)
    missing = not_mentioned(new)
    if missing:
        print(f"{PAGE.name} does not mention {', '.join(missing)}", file=sys.stderr)
        if arguments:
            return 1
    pages = errors()
    written = ERRORS.read_text() if ERRORS.exists() else ""
    return max(put(PAGE, old, new, arguments), put(ERRORS, written, pages, arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

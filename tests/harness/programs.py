# programs.py: .ccn programs that must run and print what their comments say (tests/cases/right/README.md).
#
# First line `# ranks: 1 2 3`; `# expect: TEXT` at the end of a line, `# expect[4]: TEXT` for 4 ranks only, in the
# order of execution. Besides: `# args: a b` on a line of its own gives the script's words.
#
# tests/programs/listings/NAME.tail is such a program too: it is run behind the text of tests/parser/listings/NAME.ccn,
# a listing of the language's design, which stays as it was printed. Each of examples/ must run and print something.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import tempfile

from .core import CASES, ROOT, TESTS, Tally, files_below, in_parallel, relative

RANKS = re.compile(r"^#\s*ranks:\s*([\d\s]+)$")
ARGS = re.compile(r"^#\s*args:\s*(.*)$")
EXPECT = re.compile(r"#\s*expect(?:\[([\d,\s]+)\])?:\s?(.*?)\s*$")


def read_ranks(line):
    m = RANKS.match(line)
    return [int(n) for n in m[1].split()] if m else None


def expected(text, ranks):
    lines = []
    for line in text.splitlines():
        m = EXPECT.search(line)
        if m and (m[1] is None or ranks in [int(n) for n in re.split(r"[,\s]+", m[1].strip())]):
            lines.append(m[2])
    return lines


def compare(want, out):
    got = [line.rstrip() for line in out.splitlines()]
    if got == want:
        return None
    for i in range(max(len(want), len(got))):
        a = want[i] if i < len(want) else "(nothing)"
        b = got[i] if i < len(got) else "(nothing)"
        if a != b:
            return f"line {i + 1} of the output: expected {a!r}, got {b!r}"
    return None


def read(path):
    text = path.read_text()
    if path.suffix == ".tail":
        text = (TESTS / "parser" / "listings" / f"{path.stem}.ccn").read_text() + text
    return text


def run_one(build, path, ranks):
    text = read(path)
    words = []
    for line in text.splitlines():
        m = ARGS.match(line)
        if m:
            words = ["--", *m[1].split()]
    with tempfile.TemporaryDirectory() as folder:  # what it saves must not land in the tree
        (pathlib.Path(folder) / path.name).write_text(text)
        done = build.run_ccn("run", path.name, "-n", ranks, *words, cwd=folder)
    problem = done.crashed()
    if problem is None and done.status != 0:
        problem = f"exit status {done.status}\n{done.err}"
    return problem or compare(expected(text, ranks), done.out)


def run_example(build, path):
    with tempfile.TemporaryDirectory() as folder:
        done = build.run_ccn("run", path, "-n", 4, cwd=folder)
    good = done.status == 0 and done.out and not done.err
    return done.crashed() or (None if good else f"{done.status}\n{done.out}{done.err}")


def suite(build, options):
    tally = Tally("programs")
    slow = ["adam"] if build.folder.name == "asan" else []  # a million elements: minutes where each access is checked
    for path in files_below(ROOT / "examples", "*.ccn"):
        if path.stem not in ["digits", *slow]:  # digits wants its data, and has a test of its own
            tally.check(relative(path), run_example(build, path))
    runs = []
    paths = files_below(CASES / "right", "*.ccn") + files_below(TESTS / "programs", "*.ccn")
    tails = [p for p in files_below(TESTS / "programs" / "listings", "*.tail") if p.stem not in slow]
    for path in paths + tails:
        ranks = read_ranks(path.read_text().split("\n", 1)[0])
        if not ranks:
            tally.fail(relative(path), "the first line must be `# ranks: ...`")
            continue
        if options.quick:
            ranks = ranks[-1:]
        runs += [(path, n) for n in ranks]
    for (path, n), problem in zip(runs, in_parallel(lambda r: run_one(build, *r), runs)):
        tally.check(f"{relative(path)} -n {n}", problem)
    return tally

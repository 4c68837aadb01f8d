# programs.py: .ccn programs that must run and print what their comments say (tests/cases/right/README.md).
#
# First line `# ranks: 1 2 3`; `# expect: TEXT` at the end of a line, `# expect[4]: TEXT` for 4 ranks only, in the
# order of execution. Besides: `# args: a b` on a line of its own gives the script's words.
# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import tempfile

from .core import CASES, TESTS, Tally, files_below, in_parallel, relative

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


def run_one(build, path, ranks):
    text = path.read_text()
    words = []
    for line in text.splitlines():
        m = ARGS.match(line)
        if m:
            words = ["--", *m[1].split()]
    with tempfile.TemporaryDirectory() as folder:  # what it saves must not land in the tree
        shutil.copy(path, folder)
        done = build.run_ccn("run", path.name, "-n", ranks, *words, cwd=folder)
    problem = done.crashed()
    if problem is None and done.status != 0:
        problem = f"exit status {done.status}\n{done.err}"
    return problem or compare(expected(text, ranks), done.out)


def suite(build, options):
    tally = Tally("programs")
    runs = []
    for path in files_below(CASES / "right", "*.ccn") + files_below(TESTS / "programs", "*.ccn"):
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

# wrong.py: programs that must be refused with the right code in the right place (tests/cases/wrong/README.md).
# SPDX-License-Identifier: Apache-2.0
import re

from .core import CASES, TESTS, Tally, files_below, in_parallel, relative
from .programs import read_ranks

ERROR = re.compile(r"^#\s*error:\s*CCN(\d\d)(\d\d|xx)\s+line\s+(\d+)(?:,\s*also\s+line\s+(\d+))?\s*$")
# Mistakes that only a call can show: `run` may be the first to see them.
RUN_MAY_FIND = {"10", "28", "40", "41", "45", "46", "52"}


def spans(d):
    """Lines where the diagnostic points: of the label, of the notes."""
    return d.get("line"), [n.get("line") for n in d.get("notes", [])]


def judge(done, diagnostics, rest, want, from_run):
    """None if the run gave exactly the wanted error, else what is wrong."""
    family, number, line, also = want
    errors = [d for d in diagnostics if d["severity"] == "error"]
    if done.crashed():
        return done.crashed()
    if not errors and done.status == 0:
        return "no error was found"
    if done.status != 1:
        return f"exit status {done.status}, not 1\n{done.err}"
    if rest:
        return "lines on stderr that are no JSON:\n" + "\n".join(rest)
    if not from_run and done.out:
        return "text on standard output: " + done.out[:200]
    if len(errors) != 1:
        return f"{len(errors)} errors, not one:\n" + "\n".join(
            f"{d['code']} line {d.get('line')}: {d['message']}" for d in errors)
    d = errors[0]
    shown = f"{d['code']} line {d.get('line')}: {d['message']}"
    if not re.fullmatch(f"CCN{family}" + (r"\d\d" if number == "xx" else number), d["code"]):
        return f"expected CCN{family}{number}, got {shown}"
    primary, notes = spans(d)
    places = [primary, *notes]
    if also is None:
        # An unclosed bracket may be reported at the end of the file if a note names where it opens.
        if primary != line and not (family == "00" and line in notes):
            return f"expected line {line}, got {shown}"
    elif not (primary in (line, also) and line in places and also in places):
        return f"expected line {line}, also line {also}, got {shown}, notes at {notes}"
    if not d.get("label"):
        return "no label: " + shown
    if not d.get("hint"):
        return "no hint: " + shown
    return None


def run_one(build, path):
    lines = path.read_text().split("\n")
    m = ERROR.match(lines[0])
    if not m:
        return "the first line must be `# error: CCN0222 line 4, also line 3`"
    want = (m[1], m[2], int(m[3]), int(m[4]) if m[4] else None)
    ranks = (read_ranks(lines[1]) or [2])[0]
    number = path.name[:2]
    ranks_given = read_ranks(lines[1]) is not None
    done, found, rest = build.diagnostics("check", path, *(["-n", ranks] if ranks_given else []), "--json")
    problem = judge(done, found, rest, want, False)
    if problem == "no error was found" and (number in RUN_MAY_FIND or "# run" in lines[1:3]):
        done, found, rest = build.diagnostics("run", path, "-n", ranks, "--json")
        problem = judge(done, found, rest, want, True)
    elif problem is None:  # `run` sees the same error, and does nothing before
        done, found, rest = build.diagnostics("run", path, "-n", ranks, "--json")
        again = judge(done, found, rest, want, False)
        problem = again and "check is right, but run: " + again
    return problem


def suite(build, options):
    tally = Tally("wrong")
    paths = files_below(CASES / "wrong", "*.ccn") + files_below(TESTS / "wrong", "*.ccn")
    for path, problem in zip(paths, in_parallel(lambda p: run_one(build, p), paths)):
        tally.check(relative(path), problem)
    return tally

# reports.py: what `ccn run --report` counts: bytes sent and bytes resident, rank by rank: tests/reports/*.ccn.
#
# Comments of their own line say what must be there, for one number of ranks each:
#   # sent[8] edge/sliced_hop shift: 36 each      program/schedule (or program/-), the collective, bytes of each rank
#   # sent[3] f/- x: 8 4 0                        or rank by rank
#   # resident[4]: 100 100 100 92
# and every collective of a run must be named.
# SPDX-License-Identifier: Apache-2.0
import json
import re
import tempfile

from .core import TESTS, Tally, files_below, in_parallel, relative

SENT = re.compile(r"^# sent\[(\d+)\] (\w+)/(\w+|-) (\S+): (.*)$")
RESIDENT = re.compile(r"^# resident\[(\d+)\]: (.*)$")


def numbers(text, ranks):
    words = text.split()
    return [int(words[0])] * ranks if words[-1] == "each" else [int(w) for w in words]


def expected(text):
    """{ranks: ({(program, schedule, name): bytes}, resident or None)}"""
    out = {}
    for line in text.splitlines():
        m = SENT.match(line)
        if m:
            n = int(m[1])
            out.setdefault(n, [{}, None])[0][(m[2], None if m[3] == "-" else m[3], m[4])] = numbers(m[5], n)
        m = RESIDENT.match(line)
        if m:
            out.setdefault(int(m[1]), [{}, None])[1] = numbers(m[2], int(m[1]))
    return out


def run_one(build, path, ranks, want):
    with tempfile.TemporaryDirectory() as folder:
        done = build.run_ccn("run", path, "-n", ranks, "--report", f"{folder}/report.json")
        problem = done.crashed()
        if problem or done.status != 0:
            return problem or f"exit status {done.status}\n{done.err}"
        with open(f"{folder}/report.json") as f:
            report = json.load(f)
    sent = {(t["program"], t["schedule"], t["name"]): t["sent"] for t in report["traffic"]}
    if sent != want[0]:
        return f"sent {sent}\nnot  {want[0]}"
    if want[1] is not None and report["resident"] != want[1]:
        return f"resident {report['resident']}, not {want[1]}"
    return None


def suite(build, options):
    tally = Tally("reports")
    runs = []
    for path in files_below(TESTS / "reports", "*.ccn"):
        found = expected(path.read_text())
        if not found:
            tally.fail(relative(path), "it expects nothing")
        runs += [(path, n, want) for n, want in found.items()]
    for (path, n, _), problem in zip(runs, in_parallel(lambda r: run_one(build, *r), runs)):
        tally.check(f"{relative(path)} -n {n}", problem)
    return tally

# schedules.py: the property test of schedules (tests/property/run.py): 1,000 graphs, 5,000 with --all, few where a
# sanitizer makes each slow. What the passes refuse is applied by force in a build of its own: refusals need a witness.
# The job `mutants` shows that the test sees wrong lines (scripts/mutants).
# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import sys

from . import jobs
from .core import CORES, ROOT, TESTS, Tally, run


def suite(build, options):
    tally = Tally("property")
    sanitized = build.folder.name == "asan"
    count = 150 if sanitized or options.quick else 5000 if options.all else 1000
    if sanitized:
        words = ["--no-read-back"]  # the library cannot be loaded into a plain Python
    else:
        words = ["--forced", jobs.make("forced", "-Dforce_refused=true", targets=["repl/ccn"]).ccn,
                 "--backend", "local:2"]
    done = run([sys.executable, TESTS / "property" / "run.py", "--count", count, "--seed", 1, "--ccn", build.ccn, "--jobs",
                CORES, "--out", ROOT / "build-test" / "property-failures", "--backend", "plan",
                *words], timeout=3600)
    m = re.search(r"^(\d+) passed, (\d+) failed$", done.out, re.M)
    if not m:
        tally.fail("tests/property/run.py", done.crashed() or done.out[-3000:] + done.err[-3000:])
        return tally
    tally.ok(int(m[1]))
    tally.failed += int(m[2])
    if done.status != 0:
        print(done.out + done.err, flush=True)
    else:
        applied = re.findall(r"^    (\w+) +(\d+) +\d+$", done.out, re.M)
        tally.note(", ".join(f"{name} {n}" for name, n in applied))
        witnesses = re.findall(r"^    with a witness: (.+: \d+ of \d+)$", done.out, re.M)
        if witnesses:
            tally.note("refusals with a witness: " + ", ".join(witnesses))
    return tally


def linear(build, options):
    """Twice the ops cost a pass at most 2.5 times the instructions."""
    tally = Tally("passes")
    if not shutil.which("valgrind"):
        tally.skip("passes", "valgrind is not there")
        return tally
    done = run([sys.executable, ROOT / "bench" / "passes.py", "--build", build.folder, "--instructions"], timeout=1200)
    for line in re.findall(r"^FAILED .*", done.out, re.M):
        tally.fail("bench/passes.py", line)
    m = re.search(r"^(\d+) passed, (\d+) failed$", done.out, re.M)
    if m:
        tally.ok(int(m[1]))
    else:
        tally.fail("bench/passes.py", done.out + done.err)
    return tally


def mutants(options):
    tally = Tally("mutants")
    done = run([sys.executable, ROOT / "scripts" / "mutants"], timeout=4 * 3600)
    for line in re.findall(r"^FAILED .*", done.out, re.M):
        tally.fail("scripts/mutants", line)
    m = re.search(r"^(\d+) passed, (\d+) failed$", done.out, re.M)
    if not m:
        tally.fail("scripts/mutants", done.out[-3000:] + done.err[-3000:])
    else:
        tally.ok(int(m[1]))
    return tally

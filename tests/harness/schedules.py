# schedules.py: the property test of schedules (tests/property/run.py): 1,000 graphs, 5,000 with --all, few where a
# sanitizer makes each slow.
# SPDX-License-Identifier: Apache-2.0
import re
import sys

from .core import CORES, ROOT, TESTS, Tally, run


def suite(build, options):
    tally = Tally("property")
    sanitized = build.folder.name == "asan"
    count = 150 if sanitized or options.quick else 5000 if options.all else 1000
    words = ["--no-read-back"] if sanitized else []  # the library cannot be loaded into a plain Python
    done = run([sys.executable, TESTS / "property" / "run.py", "--count", count, "--seed", 1, "--ccn", build.ccn, "--jobs",
                CORES, "--out", ROOT / "build-test" / "property-failures", *words], timeout=3600)
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
    return tally

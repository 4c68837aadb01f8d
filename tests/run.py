#!/usr/bin/python3
# run.py: runs the tests: jobs (each with a build of its own), or single suites in an existing build.
#
#   tests/run.py                          what CI runs
#   tests/run.py --quick                  one build, each program on one number of ranks
#   tests/run.py --all                    the long sets too (needs root and the network for `fresh`)
#   tests/run.py --job gcc --job fuzz     these jobs only
#   tests/run.py --suite ui --build build these suites only, in a build that is there
#
# The last line is `N passed, N failed, N skipped`; the exit status is not 0 if a test failed.
# SPDX-License-Identifier: Apache-2.0
import argparse
import sys
import time

from harness import jobs
from harness.core import Build, Tally


def read_options():
    p = argparse.ArgumentParser(description="Runs the tests of CCN.")
    p.add_argument("--all", action="store_true", help="the long sets too")
    p.add_argument("--quick", action="store_true", help="one build, each program on one number of ranks")
    p.add_argument("--job", action="append", choices=list(jobs.JOBS), help="only this job (may be repeated)")
    p.add_argument("--suite", action="append", choices=list(jobs.SUITES), help="only this suite, with --build")
    p.add_argument("--build", default="build", help="the build folder of --suite (default: build)")
    p.add_argument("--bless", action="store_true", help="rewrite the snapshots of tests/ui and tests/graph")
    p.add_argument("--seconds", type=int, default=0, help="seconds a fuzzer runs (default: 60, with --all 600)")
    return p.parse_args()


def main():
    options = read_options()
    total = Tally("")
    start = time.monotonic()
    if options.suite:
        total.add(jobs.run_suites(Build(options.build), options.suite, options))
    else:
        chosen = "all" if options.all else "quick" if options.quick else "ci"
        names = options.job or [n for n, (_, sets) in jobs.JOBS.items() if chosen in sets.split()]
        for name in names:
            print(f"== {name}", flush=True)
            begin = time.monotonic()
            tally = Tally(name)
            try:
                tally.add(jobs.JOBS[name][0](options))
            except jobs.BuildFailed as e:
                tally.fail("build", e)
            total.add(tally)
            print(f"== {name}: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped, "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
        print(f"all jobs: {time.monotonic() - start:.0f} s", flush=True)
    if total.passed + total.failed == 0:
        total.fail("no test was run")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

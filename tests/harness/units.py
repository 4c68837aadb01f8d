# units.py: the C tests: build/tests/test_*; each "ok" or "not ok" line is a test.
# SPDX-License-Identifier: Apache-2.0
import re

from .core import TESTS, Tally, files_below, in_parallel, run

LINE = re.compile(r"^(ok|not ok)\b(.*)$")


def program_name(source):
    """As in tests/meson.build: tests/lang/test_num.c → test_lang_num."""
    path = source.relative_to(TESTS).as_posix().replace("test_", "")[:-2]
    return "test_" + re.sub(r"[^A-Za-z0-9]", "_", path)


def count_lines(tally, name, done):
    """Adds the test lines of one program to the tally."""
    lines = [m for m in map(LINE.match, done.out.splitlines()) if m]
    failed = 0
    for m in lines:
        if m[1] == "not ok":
            failed += 1
            tally.fail(f"{name}{m[2]}")
        elif "# skip" in m[2].lower():
            tally.skip(name, m[2].strip())
        else:
            tally.ok()
    crash = done.crashed()
    if crash:
        tally.fail(name, crash)
    elif done.status == 77:
        tally.skip(name, "exit status 77")
    elif done.status != 0 and not failed:
        tally.fail(name, f"exit status {done.status}\n{done.out[-2000:]}\n{done.err[-2000:]}")
    elif failed:
        print("\n".join("      " + s for s in (done.out + done.err).splitlines() if not s.startswith("ok"))[:4000])
    elif not lines:
        tally.ok()


def suite(build, options):
    tally = Tally("units")
    sources = files_below(TESTS, "test_*.c")
    extra = ["--all"] if options.all else []
    names = [program_name(s) for s in sources]

    def work(name):
        # Only the tests of numbers know a longer form.
        words = extra if "math" in name else []
        return run([build.folder / "tests" / name, *words], timeout=7200 if words else 600)

    for name, done in zip(names, in_parallel(work, names)):
        count_lines(tally, name, done)
    return tally

# units.py: the C tests: build/tests/test_*; each "ok" or "not ok" line is a test.
# SPDX-License-Identifier: Apache-2.0
import re

from .core import TESTS, Tally, files_below, in_parallel, relative, run

LINE = re.compile(r"^(ok|not ok)\b(.*)$")


def program_name(source):
    """As in tests/meson.build: tests/lang/test_num.c → test_lang_num, tests/api/test_header.cpp → test_api_header_cpp."""
    path = source.relative_to(TESTS).as_posix().replace("test_", "").removesuffix(".c")
    return "test_" + re.sub(r"[^A-Za-z0-9]", "_", path)


def count_lines(tally, name, done):
    """Adds the test lines of one program to the tally; `# ...` lines below a "not ok" say why."""
    failures, counted, last_failed = [], 0, False
    for line in done.out.splitlines():
        m = LINE.match(line)
        if m:
            counted += 1
            last_failed = m[1] == "not ok"
            if last_failed:
                failures.append([f"{name}{m[2]}"])
            elif "# skip" in m[2].lower():
                tally.skip(name, m[2].strip())
            else:
                tally.ok()
        elif last_failed and line.startswith("#"):
            failures[-1].append(line)
    for what, *why in failures:
        tally.fail(what, "\n".join(why))
    if done.crashed():
        tally.fail(name, done.crashed())
    elif done.status == 77:
        tally.skip(name, "exit status 77")
    elif done.status != 0 and not failures:
        tally.fail(name, f"exit status {done.status}\n{done.out[-2000:]}\n{done.err[-2000:]}")
    elif not counted:
        tally.ok()


def suite(build, options):
    tally = Tally("units")
    sources = files_below(TESTS, "test_*.c")
    for source in files_below(TESTS, "test_*.cpp"):
        if (build.folder / "tests" / program_name(source)).exists():
            sources.append(source)
        else:
            tally.skip(relative(source), "there is no C++ compiler")
    extra = ["--all"] if options.all else []
    names = [program_name(s) for s in sources]

    def work(name):
        # Only the tests of numbers know a longer form.
        words = extra if "math" in name else []
        return run([build.folder / "tests" / name, *words], timeout=7200 if words else 600)

    for name, done in zip(names, in_parallel(work, names)):
        count_lines(tally, name, done)
    return tally

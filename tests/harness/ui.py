# ui.py: snapshots of what people see: tests/ui/NAME.ccn with NAME.stderr (and NAME.stdout, if anything is printed).
#
# `# command: run -n 2` in the first line chooses the command (`check` otherwise). scripts/bless rewrites snapshots.
# SPDX-License-Identifier: Apache-2.0
import difflib
import re

from .core import TESTS, Tally, files_below, in_parallel, relative

COMMAND = re.compile(r"^#\s*command:\s*(\S+)\s*(.*)$")


def run_one(build, path):
    m = COMMAND.match(path.read_text().split("\n", 1)[0])
    command, words = (m[1], m[2].split()) if m else ("check", [])
    return build.run_ccn(command, path.name, *words, cwd=path.parent)


def snapshot(path, suffix, text, bless):
    """None if the snapshot holds (after writing it, with bless)."""
    file = path.with_suffix(suffix)
    if bless:
        if text:
            file.write_text(text)
        elif file.exists():
            file.unlink()
        return None
    want = file.read_text() if file.exists() else ""
    if want == text:
        return None
    diff = difflib.unified_diff(want.splitlines(), text.splitlines(), file.name, "now", lineterm="", n=2)
    return "\n".join(diff) + "\n(scripts/bless accepts what it says now)"


def suite(build, options):
    tally = Tally("ui")
    paths = files_below(TESTS / "ui", "*.ccn")
    for path, done in zip(paths, in_parallel(lambda p: run_one(build, p), paths)):
        problem = done.crashed()
        for suffix, text in ((".stderr", done.err), (".stdout", done.out)):
            problem = problem or snapshot(path, suffix, text, options.bless)
        tally.check(relative(path), problem)
    return tally

# graphs.py: lit and FileCheck (Debian's llvm-19-tools) on graph text: tests/graph/**/*.ccn. Whole graphs stand in files
# *.graphs beside their scripts; --bless writes them anew.
# SPDX-License-Identifier: Apache-2.0
import glob
import json
import pathlib
import shutil
import sys
import tempfile

from .core import CORES, TESTS, Tally, files_below, run


def find_tools():
    """Paths of lit and FileCheck, None where there is none."""
    lits = sorted(glob.glob("/usr/lib/llvm-*/build/utils/lit/lit.py"))
    lit = [sys.executable, lits[-1]] if lits else [shutil.which("lit")] if shutil.which("lit") else None
    checks = [shutil.which("FileCheck-19"), shutil.which("FileCheck"),
              *sorted(glob.glob("/usr/lib/llvm-*/bin/FileCheck"), reverse=True)]
    return lit, next((c for c in checks if c), None)


def bless(build):
    for path in files_below(TESTS / "graph", "*.graphs"):
        done = build.run_ccn("dump", path.with_suffix(".ccn"), "--stage", "scheduled")
        if done.status == 0:
            path.write_text(done.out)


def suite(build, options):
    tally = Tally("graphs")
    if options.bless:
        bless(build)
    if not files_below(TESTS / "graph", "*.ccn"):
        return tally
    lit, filecheck = find_tools()
    if not lit or not filecheck:
        tally.skip("graph text", "lit or FileCheck is not there (Debian: llvm-19-tools)")
        return tally
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = run([*lit, "--quiet", "--workers", CORES, "--output", report, "--param", f"ccn={build.ccn}", "--param",
                    f"filecheck={filecheck}", "--param", f"output={folder}", TESTS / "graph"])
        if not report.exists():
            tally.fail("lit", done.out + done.err)
            return tally
        for test in json.loads(report.read_text())["tests"]:
            if test["code"] in ("PASS", "XFAIL"):
                tally.ok()
            elif test["code"] in ("UNSUPPORTED", "SKIPPED"):
                tally.skip(test["name"], test["code"])
            else:
                tally.fail(test["name"], test["output"])
    return tally

# jobs.py: the jobs of scripts/test: each builds in a folder of its own below build-test/ and runs suites in it.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import time
import traceback

from . import (checks, cli, embed, fresh, fuzz, graphs, pages, placements, plans, programs, repl, reports,
               schedules, tools, tune, ui, units, vectors, wrong)
from .core import CORES, ROOT, Build, Tally, run

FOLDER = ROOT / "build-test"

# In the order in which they run; each takes (build, options) and returns a Tally.
SUITES = {
    "units": units.suite,
    "programs": programs.suite,
    "wrong": wrong.suite,
    "placements": placements.suite,
    "graphs": graphs.suite,
    "vectors": vectors.suite,
    "property": schedules.suite,
    "repl": repl.suite,
    "reports": reports.suite,
    "ui": ui.suite,
    "pages": pages.suite,
    "plans": plans.suite,
    "tune": tune.suite,
    "cli": cli.suite,
    "tools": tools.suite,
    "checks": checks.suite,
    "embed": embed.suite,
    "linearity": checks.linearity,
    "passes": schedules.linear,
    "style": checks.style,
}
SANITIZED = ["units", "programs", "wrong", "placements", "property", "repl", "reports", "ui", "pages", "cli", "tools",
             "tune"]


class BuildFailed(Exception):
    pass


def make(name, *settings, compiler="gcc", targets=()):
    """Configures and builds build-test/NAME; its compiler is set in the environment, as meson wants it."""
    folder = FOLDER / name
    env = {"CC": compiler}
    if (folder / "build.ninja").exists():
        configured = run(["meson", "setup", "--reconfigure", folder, *settings], env=env)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        configured = run(["meson", "setup", folder, *settings], env=env)
    if configured.status != 0:
        raise BuildFailed(configured.out[-4000:] + configured.err[-2000:])
    built = run(["ninja", "-C", folder, "-j", CORES, *targets], timeout=1800, env=env)
    if built.status != 0:
        at = built.out.find("FAILED:")
        raise BuildFailed(f"{name}: " + built.out[max(0, at):][:6000] + built.err[-2000:])
    return Build(folder)


def run_suites(build, names, options):
    total = Tally("")
    for name in names:
        start = time.monotonic()
        try:
            tally = SUITES[name](build, options)
        except Exception:  # a defect of the runner, or what it could not expect: red, and on to the next suite
            tally = Tally(name)
            tally.fail("the suite itself", traceback.format_exc())
        notes = "; ".join([f"{time.monotonic() - start:.0f} s", *tally.notes])
        print(f"  {name}: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped ({notes})", flush=True)
        total.add(tally)
    return total


def job_gcc(options):
    return run_suites(make("gcc", "-Dwerror=true"), list(SUITES), options)


def job_clang(options):
    build = make("clang", "-Dwerror=true", "-Dreadline=disabled", compiler="clang")
    return run_suites(build, ["units", "programs", "vectors", "checks", "repl"], options)


def job_llvm(options):
    """Kernels by the other LLVM, and a build that has none."""
    total = Tally("")
    if shutil.which("llvm-config-22"):
        total.add(run_suites(make("llvm22", "-Dwerror=true", "-Dllvm=22"), ["units"], options))
    else:
        total.skip("llvm", "llvm-22-dev is not there")
    total.add(run_suites(make("nollvm", "-Dwerror=true", "-Dllvm=disabled"), ["units"], options))
    return total


def job_sanitizers(options):
    build = make("asan", "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dc_args=-fno-sanitize-recover=all",
                 compiler="gcc")
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    return run_suites(build, SANITIZED, options)


def job_fuzz(options):
    build = make("fuzz", "-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false",
                 "-Dc_args=-fno-sanitize-recover=all", compiler="clang", targets=["fuzzers"])
    return fuzz.smoke(build, plain_build(), options)


def job_coverage(options):
    build = make("coverage", "-Db_coverage=true", "-Dbuildtype=debug", targets=["fuzzers"])
    return fuzz.coverage(build, plain_build(), options)


# Tests with more than one thread, and those that pass handles between contexts.
THREADED = ["test_api_threads", "test_api_limits", "test_api_dlpack"]


def job_tsan(options):
    """Two contexts in two threads, release and interrupts from others, under ThreadSanitizer."""
    build = make("tsan", "-Db_sanitize=thread", "-Db_lundef=false", "-Dllvm=disabled",
                 targets=[f"tests/{name}" for name in THREADED])
    tally = Tally("tsan")
    for name in THREADED:
        done = run([build.folder / "tests" / name], env={"TSAN_OPTIONS": "halt_on_error=1"})
        bad = done.status != 0 or "ThreadSanitizer" in done.err
        tally.check(name, done.out[-1000:] + done.err[-4000:] if bad else None)
    return tally


def job_valgrind(options):
    return checks.memcheck(make("gcc", "-Dwerror=true"), options)


def job_mutants(options):
    return schedules.mutants(options)


def job_fresh(options):
    return fresh.job(options)


def plain_build():
    """The plain build, whose ccn makes inputs for other jobs."""
    return make("gcc", "-Dwerror=true", targets=["repl/ccn"])


# name → (function, in which sets)
JOBS = {
    "gcc": (job_gcc, "quick ci all"),
    "clang": (job_clang, "ci all"),
    "llvm": (job_llvm, "ci all"),
    "sanitizers": (job_sanitizers, "ci all"),
    "fuzz": (job_fuzz, "ci all"),
    "coverage": (job_coverage, "ci all"),
    "tsan": (job_tsan, "ci all"),
    "valgrind": (job_valgrind, "all"),
    "mutants": (job_mutants, "all"),
    "fresh": (job_fresh, "all"),
}

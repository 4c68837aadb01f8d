# core.py: what every suite uses: counting, running commands, the ccn under test, a small pool.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CASES = TESTS / "cases"
CORES = max(1, len(os.sched_getaffinity(0)))

# A command that hangs is a failure, not a hang of the tests.
TIMEOUT = 300
# Bytes of any file that a command may write.
MOST_OUTPUT = 1 << 28


class Tally:
    """Counts of one suite; failures are printed as they come, with enough text to act on."""

    def __init__(self, name):
        self.name = name
        self.passed = self.failed = self.skipped = 0
        self.notes = []

    def ok(self, count=1):
        self.passed += count

    def fail(self, what, why=""):
        self.failed += 1
        print(f"    FAILED {self.name}: {what}", flush=True)
        for line in str(why).rstrip().splitlines()[:40]:
            print(f"      {line}", flush=True)

    def check(self, what, problem):
        """`problem` is None, or what is wrong."""
        if problem is None:
            self.ok()
        else:
            self.fail(what, problem)

    def skip(self, what, why):
        self.skipped += 1
        print(f"    skipped {self.name}: {what}: {why}", flush=True)

    def note(self, text):
        self.notes.append(text)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class Finished:
    """What a command came to; status is None if it was stopped after its time."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def crashed(self):
        """A signal, a sanitizer's report, or a time-out: never right, whatever a test expects."""
        if self.status is None:
            return "it did not end in time"
        if self.status < 0:
            return f"killed by signal {-self.status}\n{self.err}"
        if re.search(r"(AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehaviorSanitizer)", self.err):
            return self.err
        return None


def run(command, cwd=ROOT, timeout=TIMEOUT, env=None, input=None):
    """Runs a command to its end, or to its time; a program that writes without end is stopped by a signal."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input or b"")
        given.seek(0)
        try:
            p = subprocess.Popen([str(c) for c in command], cwd=cwd, env=dict(os.environ, **(env or {})), stdin=given,
                                 stdout=out, stderr=err)
        except OSError as e:
            return Finished(127, "", f"cannot run {command[0]}: {e}\n", 0)
        try:
            resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
        except OSError:
            pass  # it has ended already
        try:
            status = p.wait(timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            status = None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Finished(status, *texts, time.monotonic() - start)


class Build:
    """A build folder and the programs in it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.ccn = self.folder / "repl" / "ccn"

    def run_ccn(self, *words, **settings):
        return run([self.ccn, *words], **settings)

    def diagnostics(self, *words, **settings):
        """Runs ccn with --json; returns what it came to, its diagnostics, and the stderr lines that were no JSON."""
        done = self.run_ccn(*words, **settings)
        found, rest = [], []
        for line in done.err.splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                rest.append(line)
                continue
            if isinstance(value, dict) and "severity" in value:
                found.append(value)
            elif not (isinstance(value, dict) and "watch" in value):
                rest.append(line)
        return done, found, rest


def in_parallel(work, items):
    """Applies `work` to the items on all cores; results in order."""
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(work, items))


def files_below(folder, pattern):
    return sorted(p for p in pathlib.Path(folder).rglob(pattern) if p.is_file())


def relative(path):
    try:
        return pathlib.Path(path).relative_to(ROOT).as_posix()
    except ValueError:
        return str(path)

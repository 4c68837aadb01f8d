#!/usr/bin/python3
# run.py: the property test of schedules: random programs with random legal schedules give the bits of the program
# alone, on 1, 2, 3, 4 and 8 ranks.
#
#   tests/property/run.py --count 1000 --seed 1 --ccn build/repl/ccn
#
# A failure is made small and written to --out. The last line is `N passed, N failed`.
# SPDX-License-Identifier: Apache-2.0
import argparse
import multiprocessing
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
import model
import schedules
import shrink
import witness

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 50
FEWEST = 500                 # graphs: what fewer reach says nothing
LEAST_APPLIED = 300 / 5000   # of each statement, a graph
LEAST_GRAPHS = 0.02          # with each op
LEAST_LONG = 0.30            # of the schedules have three statements or more
LEAST_KIND = 0.10            # with an `on` block, with a bundle
# No pass leaves an op that nobody reads (tested), so that `dead` has nothing to remove here: its refusals are counted.
REFUSED_ONLY = {"dead"}
NOT_COUNTED = {"conv2d", "const", "param", "host"}  # host: functions that only an embedding program has
NAMES = {"neg": "-x", "cast": "f32(x)"}


def read_options():
    p = argparse.ArgumentParser(description="Random programs with random legal schedules give the bits of the program alone.")
    p.add_argument("--count", type=int, default=1000, help="graphs (default: 1000)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--ccn", default=str(ROOT / "build" / "repl" / "ccn"), help="the command under test")
    p.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0))), help="processes at a time")
    p.add_argument("--out", default="property-failures", help="folder for small programs that fail")
    p.add_argument("--only", type=int, help="this batch only")
    p.add_argument("--keep", action="store_true", help="keep the files of each batch")
    p.add_argument("--stop", action="store_true", help="end at the first batch with a failure, without shrinking")
    p.add_argument("--no-read-back", action="store_true", help="do not load libccn.so to read graph texts back")
    p.add_argument("--backend", action="append", default=[], help="another engine that must give the same bits")
    p.add_argument("--forced", help="a command built with -Dforce_refused=true: refusals must have a witness")
    p.add_argument("--quiet", action="store_true", help="failures and the last line only")
    return p.parse_args()


def memory_folder():
    """Where the many small files of a batch go: a file system in memory, if there is one with room. Creating files on a
    disk took most of this test's time."""
    if os.environ.get("TMPDIR") or not os.access("/dev/shm", os.W_OK) or shutil.disk_usage("/dev/shm").free < 1 << 31:
        return None
    return "/dev/shm"


def library_of(ccn):
    found = sorted(pathlib.Path(ccn).resolve().parents[1].glob("libccn.so*"))
    return next((f for f in found if f.is_file()), None)


def work(job):
    """One batch: makes it, checks it, runs it. Returns plain data and failures."""
    o, number, count = job
    mesh = "one" if number % 5 < 3 else "two"
    result = {"number": number, "broken": None, "failures": [], "programs": [], "refused": [], "runs": 0, "errors": {},
              "witnesses": []}
    folder = tempfile.mkdtemp(prefix=f"ccn-property{number}-", dir=memory_folder())
    try:
        library = None if o.no_read_back else library_of(o.ccn)
        if library and not engine.READ_BACK:
            engine.use_library(library)
        engine.BACKENDS = o.backend
        b = engine.Batch(o.ccn, folder, mesh, f"{o.seed}/{number}", count, number * BATCH)
        b.make_programs()
        b.make_schedules()
        b.run_all()
        if o.forced:
            result["witnesses"] = witness.witnesses(o.forced, b)
        result.update(failures=b.failures, refused=[(k, c, m) for k, c, m, *_ in b.refused], runs=b.runs, errors=b.run_errors)
        for p in b.programs:
            result["programs"].append({"ops": {x for s in p.body for x in s.ops} | {n.op for n in p.graph.nodes},
                                       "bundle": p.kind == "bundle", "steps": [s.kind for s in p.schedule],
                                       "exact": all(s.exact for s in p.schedule)})
    except engine.Broken as e:
        result["broken"] = str(e)
    except Exception:
        result["broken"] = traceback.format_exc()
    if not o.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return result


class Summary:
    def __init__(self):
        self.graphs = self.runs = self.bundles = self.reassociating = self.read_back = 0
        self.ops, self.steps, self.lengths, self.refused, self.errors = {}, {}, {}, {}, {}
        self.witnesses, self.without = {}, []

    def add(self, r):
        def count(table, key, n=1):
            table[key] = table.get(key, 0) + n
        for p in r["programs"]:
            self.graphs += 1
            self.bundles += p["bundle"]
            self.reassociating += not p["exact"]
            for op in p["ops"]:
                count(self.ops, op)
            for s in p["steps"]:
                count(self.steps, s)
            count(self.lengths, len(p["steps"]))
        for kind, code, message in r["refused"]:
            count(self.refused, (kind, code, re.sub("`[^`]*`", "`..`", message)))
        for what, how, text in r["witnesses"]:
            count(self.witnesses.setdefault(what, {}), how)
            if not how:
                self.without.append((what, text))
        self.runs += r["runs"]
        for code, n in r["errors"].items():
            count(self.errors, code, n)

    def refused_with(self, kind):
        return sum(n for (k, _, _), n in self.refused.items() if k == kind)

    def print(self):
        print(f"    {self.graphs} graphs, {self.runs} runs; {self.bundles} with bundles, {self.ops.get('on', 0)} with `on`, "
              f"{self.reassociating} reassociating")
        print("    statement      applied   refused")
        for s in schedules.STATEMENTS:
            print(f"    {s:12} {self.steps.get(s, 0):9} {self.refused_with(s):9}")
        print("    statements a schedule: " + ", ".join(f"{k}: {n}" for k, n in sorted(self.lengths.items())))
        rows = sorted(self.ops.items(), key=lambda x: x[1])
        for k in range(0, len(rows), 8):
            print("    " + "  ".join(f"{op} {n}" for op, n in rows[k:k + 8]))
        for (kind, code, message), n in sorted(self.refused.items()):
            print(f"    {n:6} x {kind} {code} {message}")
        if self.witnesses:
            print("    refusals that need a witness: verifier, type rule, result, none")
        for what, (seen, of) in sorted(self.with_witness().items()):
            print(f"    with a witness: {what}: {seen} of {of}")
        for what, hows in sorted(self.witnesses.items()):
            print("    " + " ".join(f"{hows.get(h, 0):6}" for h in ("verifier", "type rule", "result", None)), *what)
        if self.errors:
            print(f"    programs that failed while they ran, scheduled or not: {self.errors}")

    def with_witness(self):
        """{kind and code: (refusals with a witness, refusals)}"""
        table = {}
        for (kind, code, _), hows in self.witnesses.items():
            seen, of = table.get(f"{kind} {code}", (0, 0))
            n = sum(hows.values())
            table[f"{kind} {code}"] = (seen + n - hows.get(None, 0), of + n)
        return table

    def problems(self):
        """What the test did not reach."""
        known = model.ops_of(ROOT / "lang" / "ops.def")
        if self.graphs < FEWEST:
            return
        for s in schedules.STATEMENTS:
            n = self.refused_with(s) if s in REFUSED_ONLY else self.steps.get(s, 0)
            least = LEAST_APPLIED * self.graphs
            if n < least:
                yield f"`{s}` was {'refused' if s in REFUSED_ONLY else 'applied'} {n} times, less than {least:.0f}"
        for op in known:
            if op not in NOT_COUNTED and self.ops.get(op, 0) < LEAST_GRAPHS * self.graphs:
                yield f"op `{op}` occurs in {self.ops.get(op, 0)} graphs, less than {LEAST_GRAPHS * self.graphs:.0f}"
        for code, (seen, of) in sorted(self.with_witness().items()):
            if seen < witness.LEAST * of:
                yield f"{seen} of {of} refusals {code} have a witness, less than {witness.LEAST:.0%}"
        long = sum(n for k, n in self.lengths.items() if k >= 3)
        if long < LEAST_LONG * self.graphs:
            yield f"{long} schedules have three statements or more, less than {LEAST_LONG * self.graphs:.0f}"
        for what, n in (("a bundle", self.bundles), ("an `on` block", self.ops.get("on", 0))):
            if n < LEAST_KIND * self.graphs:
                yield f"{n} graphs have {what}, less than {LEAST_KIND * self.graphs:.0f}"


def report(o, failures):
    """Prints failures; the first of each kind are made small."""
    out, seen = pathlib.Path(o.out), {}
    for f in failures:
        seen[f.kind] = seen.get(f.kind, 0) + 1
        if seen[f.kind] > 2:
            continue
        print(f"    FAILED {f.kind}: {f.program.name} on {f.n} ranks: {f.why[:1000]}")
        p, n, mesh, sizes, found = shrink.shrink(o.ccn, f)
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{f.kind.split()[0]}-{o.seed}-{f.program.index}.ccn"
        path.write_text(shrink.text(p, n, mesh, sizes, found))
        print(f"      made small, in {path}:")
        for line in path.read_text().splitlines():
            print("      " + line)
    for kind, n in seen.items():
        print(f"    {n} x {kind}")


def main():
    o = read_options()
    start = time.monotonic()
    jobs = [(o, k, min(BATCH, o.count - k * BATCH)) for k in range((o.count + BATCH - 1) // BATCH)]
    if o.only is not None:
        jobs = [j for j in jobs if j[1] == o.only]
    total, failures, broken = Summary(), [], 0
    with multiprocessing.get_context("fork").Pool(o.jobs) as pool:
        for r in pool.imap(work, jobs, 1):
            total.add(r)
            failures += r["failures"]
            if r["broken"]:
                broken += 1
                print(f"    FAILED batch {r['number']} of seed {o.seed}: {r['broken'][:6000]}", flush=True)
            if o.stop and (failures or broken):
                pool.terminate()
                break
    if o.stop:
        for f in failures[:3]:
            print(f"    FAILED {f.kind}: {f.program.name} on {f.n} ranks: {f.why[:400]}")
    else:
        report(o, failures)
    if not o.quiet:
        total.print()
    problems = [] if o.stop or o.only is not None else list(total.problems())
    for p in problems:
        print(f"    FAILED {p}")
    for what, text in total.without[:2 if o.quiet else 6]:
        print("    without a witness: " + " ".join(what) + "\n      " + text.replace("\n", "\n      "))
    if not library_of(o.ccn):
        print("    there is no libccn.so beside the command: texts were not read back")
    bad = {f.program.index for f in failures}
    passed = max(0, total.graphs - len(bad))
    failed = len(bad) + broken + len(problems)
    print(f"    {time.monotonic() - start:.0f} s")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# run.py: the property test of schedules: random programs with random legal schedules give the bits of the program alone.
#
#   tests/property/run.py --count 1000 --seed 1 --ccn build/repl/ccn
#
# SPDX-License-Identifier: Apache-2.0
import argparse
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import engine
import model

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 50


def options():
    p = argparse.ArgumentParser(description="Random programs, random legal schedules, equal bits.")
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--ccn", default=str(ROOT / "build" / "repl" / "ccn"))
    p.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0))))
    p.add_argument("--out", default="property-failures", help="folder for shrunk failures")
    p.add_argument("--keep", action="store_true")
    return p.parse_args()


def work(job):
    exe, seed, number, count, keep = job
    mesh = "one" if number % 5 < 3 else "two"
    result = {"broken": None, "failures": [], "programs": []}
    folder = tempfile.mkdtemp(prefix=f"property{number}-")
    try:
        b = engine.Batch(exe, folder, mesh, f"{seed}/{number}", count, number * BATCH)
        b.make_programs()
        b.make_schedules()
        b.run_all()
        result.update(failures=b.failures, refused=[(k, c, m) for k, c, m, *_ in b.refused], runs=b.runs,
                      errors=b.run_errors, dropped=b.dropped)
        for p in b.programs:
            result["programs"].append({"ops": sorted({o for s in p.body for o in s.ops}), "kind": p.kind,
                                       "nodes": sorted({n.op for n in p.graph.nodes}),
                                       "steps": [s.kind for s in p.schedule]})
    except engine.Broken as e:
        result["broken"] = str(e)
    except Exception:
        result["broken"] = traceback.format_exc()
    result["folder"] = folder
    return result
    

def main():
    o = options()
    start = time.monotonic()
    jobs = [(o.ccn, o.seed, k, min(BATCH, o.count - k * BATCH), o.keep) for k in range((o.count + BATCH - 1) // BATCH)]
    with multiprocessing.get_context("fork").Pool(o.jobs) as pool:
        results = pool.map(work, jobs, 1)
    used, steps, refused, errors, failures, lengths = {}, {}, {}, {}, [], {}
    graphs = runs = 0
    for r in results:
        if r["broken"]:
            print("BROKEN", r["folder"], r["broken"])
        for p in r["programs"]:
            graphs += 1
            for op in set(p["ops"]) | set(p["nodes"]):
                used[op] = used.get(op, 0) + 1
            for s in p["steps"]:
                steps[s] = steps.get(s, 0) + 1
            lengths[len(p["steps"])] = lengths.get(len(p["steps"]), 0) + 1
        for k, c, _ in r.get("refused", []):
            refused[k, c] = refused.get((k, c), 0) + 1
        runs += r.get("runs", 0)
        for c, n in r.get("errors", {}).items():
            errors[c] = errors.get(c, 0) + n
        failures += [(f, r["folder"]) for f in r["failures"]]
    print(graphs, "graphs", runs, "runs", f"{time.monotonic() - start:.0f} s")
    ops = model.ops_of(ROOT / "lang" / "ops.def")
    print("rare:", {x: used.get(x, 0) for x in ops if used.get(x, 0) < 0.04 * graphs})
    print("steps:", steps)
    print("lengths:", dict(sorted(lengths.items())))
    print("refused:", dict(sorted(refused.items())))
    messages = {}
    import re
    for r in results:
        for k, c, m in r.get("refused", []):
            m = re.sub("`[^`]*`", "X", m)
            messages[k, c, m] = messages.get((k, c, m), 0) + 1
    for (k, c, m), n in sorted(messages.items()):
        print(f"  {n:4} {k} {c} {m}")
    print("run errors:", errors)
    print(len(failures), "failures")
    kinds = {}
    for f, folder in failures:
        kinds[f.kind] = kinds.get(f.kind, 0) + 1
    print(kinds)
    seen = {}
    for f, folder in failures:
        seen[f.kind] = seen.get(f.kind, 0) + 1
        if seen[f.kind] > 4:
            continue
        print("FAILED", f.kind, f.program.name, "n =", f.n, f.mesh, f.why[:600], folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""passes.py: how long each statement of a schedule takes on 1,000 and 10,000 ops, the verifier behind it included.

    bench/passes.py --build build                  times: milliseconds, the best of a few runs
    bench/passes.py --build build --instructions   exact counts (valgrind): 2n ops may cost 2.5 times what n cost

The last line of the second form is `N passed, N failed`.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP = 10       # ops for each parameter
MOST = 2.5       # times the instructions for twice the ops
AIMS = {1000: 10, 10000: 200}  # milliseconds


def program(n):
    """n ops in groups: each makes a new value of a parameter from one sum."""
    groups = range(n // GROUP)
    lines = ["mesh (dp)", f"program f(g: f32[N] local, {', '.join(f'p{i}: f32[N]' for i in groups)}) {{",
             "  gsum = allreduce(sum, g)"]
    for i in groups:
        lines.append(f"  a{i}_0 = gsum * p{i}")
        lines += [f"  a{i}_{k} = a{i}_{k - 1} {'+-*'[k % 3]} gsum" for k in range(1, GROUP - 1)]
        lines.append(f"  new{i} = update(p{i}, a{i}_{GROUP - 2})")
    return "\n".join(lines + ["}"]) + "\n"


def kernels(n, count):
    """`count` kernels, the ops of each parameter one."""
    step = max(1, n // GROUP // count)
    return "".join(f"  fuse({', '.join(f'a{i}_{k}' for k in range(GROUP - 1))})\n" for i in range(0, n // GROUP, step))


def schedules(n):
    """name → (statements before, the statement)"""
    split, reorder = "  (rs, ag) = split(gsum)\n", "  (c, gs) = reorder(after(ag), ag)\n"
    last = n // GROUP - 1
    return {
        "split": ("", "split(gsum)"),
        "reorder": (split, "reorder(after(ag), ag)"),
        "shard": (split + reorder, "shard(updated(c))"),
        "fuse": (split + reorder, "fuse(rs, c, gs)"),
        "fuse, beside 50 kernels": (kernels(n, 50), f"fuse(a{last}_0, a{last}_1, a{last}_2)"),
        "overlap": (split + reorder + "  k = fuse(c, gs)\n", "overlap(rs, k)"),
        "algorithm": ("", "algorithm(gsum, ring)"),
        "chunks": ("", "chunks(gsum, 4)"),
        "fast": ("", "fast(after(gsum))"),
    }


def text(n, before, statement):
    return program(n) + f"schedule s for f {{\n{before}  {statement}\n}}\nlet q = f with s\n"


def milliseconds(ccn, path, runs):
    best = None
    for _ in range(runs):
        done = subprocess.run([ccn, "dump", path, "--time-passes"], capture_output=True, text=True)
        found = re.findall(r"^ *([\d.]+) +\d+  f, step", done.stderr, re.M)
        if done.returncode or not found:
            sys.exit(done.stderr[-2000:])
        best = min(best or 1e9, float(found[-1]))
    return best


def times(ccn, folder):
    print(f"{'ms, on ops':28}" + "".join(f"{n:>10}" for n in AIMS))
    for name in schedules(1000):
        row = f"{name:28}"
        for n, aim in AIMS.items():
            path = folder / "passes.ccn"
            path.write_text(text(n, *schedules(n)[name]))
            took = milliseconds(ccn, path, 5 if n < 5000 else 2)
            row += f"{took:10.2f}" + ("" if took <= aim else " (aim: " + str(aim) + ")")
        print(row, flush=True)


def counted(ccn, path):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                           "--toggle-collect=ccn__schedule_apply", ccn, "dump", path, "--stage", "scheduled"],
                          capture_output=True, text=True)
    m = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not m or int(m[1]) == 0:
        sys.exit(done.stderr[-2000:])
    return int(m[1])


def instructions(ccn, folder):
    failed, n = 0, 500
    cases = {name: [text(k, *schedules(k)[name]) for k in (n, 2 * n)] for name in schedules(n)
             if name != "fuse, beside 50 kernels"}
    same = program(1000)  # each `fuse` walks the graph; what it costs must not grow with the kernels that are there
    cases["fuse, twice as many kernels"] = [f"{same}schedule s for f {{\n{kernels(1000, k)}}}\nlet q = f with s\n"
                                            for k in (50, 100)]
    for name, pair in cases.items():
        cost = []
        for t in pair:
            path = folder / "passes.ccn"
            path.write_text(t)
            cost.append(counted(ccn, path))
        bad = cost[1] > MOST * cost[0]
        failed += bad
        print(f"{'FAILED ' if bad else ''}{name}: {cost[0]} instructions, twice as much: {cost[1]}, "
              f"{cost[1] / cost[0]:.2f} times", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    p = argparse.ArgumentParser(description="How long the statements of schedules take.")
    p.add_argument("--build", default=str(ROOT / "build"))
    p.add_argument("--instructions", action="store_true", help="exact counts for n and 2n ops")
    o = p.parse_args()
    ccn = pathlib.Path(o.build) / "repl" / "ccn"
    with tempfile.TemporaryDirectory() as folder:
        return (instructions if o.instructions else times)(ccn, pathlib.Path(folder)) or 0


if __name__ == "__main__":
    sys.exit(main())

# plans.py: what plans cost: the bytes against what the interpreter counts, the figures of adam_mixed, overlap in virtual
# time, scripts on many ranks, what stops a recording.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import tempfile

from .core import ROOT, TESTS, Tally, files_below, in_parallel, relative

RANKS = [1, 2, 3, 4, 8]
ADAM = ROOT / "examples" / "adam_mixed.ccn"
ATTENTION = ROOT / "examples" / "attention_out.ccn"

# Program, options, milliseconds: N = 1e9 on 8 H200. Of the n - 1 messages by which a ring reduces, the first one is a
# contribution, in f16; the others are sums, in f32 (all in f32 would be 17.5).
FIGURES = [
    ("adam_mixed@schedules.ar_c(gsum)", [], 13.6),
    ("adam_mixed@schedules.rs_c_ag(gsum)", [], 8.5),
    ("adam_mixed@schedules.zero(gsum)", [], 7.8),
    ("adam_mixed@schedules.ar_c(gsum)", ["--algorithm", "ring"], 16.9),
]

# A machine on which the matmul of attention and its collective take about as long, with links of 1 GB/s.
SLOW = """machine slow
memory 64e9
bandwidth 1e12
launch 1e-7
flops f32 1e12
flops f16 {flops}
link wire latency 1e-7 bandwidth 1e9 direct
"""
SIZES = ["-D", "B=4", "-D", "S=512", "-D", "H=1024"]


def plans(build, *words, **settings):
    """The plans as JSON, or what is wrong."""
    done = build.run_ccn("plan", *words, "--json", **settings)
    problem = done.crashed()
    if problem or done.status != 0:
        return None, problem or f"exit status {done.status}\n{done.err}"
    return [json.loads(line) for line in done.out.splitlines()], None


def counted(build, path, ranks, folder):
    """{(program, name, op): bytes of each rank}, by the interpreter; None if it does not run on so many ranks."""
    report = pathlib.Path(folder) / "report.json"
    done = build.run_ccn("run", path, "-n", ranks, "--report", report)
    if done.status != 0:
        return None
    out = {}
    for t in json.loads(report.read_text())["traffic"]:
        out[(t["program"] + ("@" + t["schedule"] if t["schedule"] else ""), t["name"], t["op"])] = t["sent"]
    return out


def predicted(found):
    out = {}
    for plan in found:
        for c in plan["collectives"]:
            key = (plan["program"], c["name"], c["op"])
            sent = [plan["calls"] * x for x in c["sent"]]
            out[key] = [x + y for x, y in zip(out[key], sent)] if key in out else sent
    return out


def compare(build, path, ranks):
    """The number of collectives compared, and what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        want = counted(build, path, ranks, folder)
    if want is None:
        return 0, None
    found, problem = plans(build, path, "-n", ranks)
    if problem:
        return 0, problem
    got = predicted(found)
    programs = {p["program"] for p in found}
    want = {k: v for k, v in want.items() if k[0] in programs}  # ops of the script are no programs
    for key in sorted(set(got) | set(want)):
        x, y = got.get(key, [0] * ranks), want.get(key, [0] * ranks)
        if x != y:
            return 0, f"{key}: the plan says {x}, the interpreter {y}"
    return len(want), None


def check_bytes(build, tally):
    paths = sorted((ROOT / "examples").glob("*.ccn")) + files_below(TESTS / "plans", "*.ccn") + \
        files_below(TESTS / "reports", "*.ccn")
    items = [(path, n) for path in paths for n in RANKS]
    total = 0
    for (path, n), (count, problem) in zip(items, in_parallel(lambda i: compare(build, *i), items)):
        tally.check(f"bytes of {relative(path)} -n {n}", problem)
        total += count
    tally.check("collectives compared", None if total >= 200 else f"only {total}")
    tally.note(f"{total} collectives")


def check_figures(build, tally):
    for program, options, want in FIGURES:
        found, problem = plans(build, ADAM, program, "-n", "8", "-D", "N=1000000000", *options)
        if not problem and abs(found[0]["time"] * 1e3 - want) > 0.1:
            problem = f"{found[0]['time'] * 1e3:.2f} ms, not {want}"
        tally.check(f"{program} {' '.join(options)}", problem)


def overlap(build, folder, flops):
    """Virtual time of the overlapped attention against its bound; chunk k + 1 computes while chunk k is in flight."""
    machine, trace = folder / "slow.txt", folder / "trace.json"
    machine.write_text(SLOW.format(flops=flops))
    found, problem = plans(build, ATTENTION, "out@overlapped", "-n", "4", *SIZES, "--machine", machine, "--trace", trace)
    if problem:
        return problem
    matmul = [s for s in found[0]["steps"] if s["kind"] == "matmul"]
    kernel = [s for s in found[0]["steps"] if s["kind"] == "kernel"]
    tg, tc = sum(s["time"] for s in matmul), sum(s["time"] for s in kernel)
    bound = 1.05 * (max(tg, tc) + min(tg, tc) / len(matmul))
    if len(matmul) < 2 or found[0]["time"] > bound:
        return f"{found[0]['time']:.6f} s in {len(matmul)} chunks, more than {bound:.6f}"
    if found[0]["time"] < max(tg, tc):
        return f"{found[0]['time']:.6f} s, less than one of its parts"
    events = json.loads(trace.read_text())
    at = {(e["cat"], e["args"]["chunk"]): (e["ts"], e["ts"] + e["dur"]) for e in events if e["pid"] == 0}
    for k in range(len(matmul) - 1 if tg > tc else 1):  # a faster matmul is soon ahead of the links
        if not at[("matmul", k + 1)][0] < at[("kernel", k)][1] or not at[("kernel", k)][0] < at[("matmul", k + 1)][1]:
            return f"chunk {k + 1} does not compute while chunk {k} is in flight: {at}"
    return None


def check_simulator(build, tally, folder):
    for flops in ["1e11", "1.6e11", "1e12"]:
        tally.check(f"overlap at {flops}", overlap(build, folder, flops))
    trace = folder / "t.json"
    done = build.run_ccn("run", ATTENTION, "--backend", "sim", "-n", "1024", "--trace", trace)
    problem = done.crashed() or (None if done.status == 0 else done.err)
    if not problem and "virtual time of 1024 ranks" not in done.out:
        problem = done.out
    if not problem and len({e["pid"] for e in json.loads(trace.read_text())}) != 1024:
        problem = "the trace does not have all ranks"
    tally.check("attention on 1,024 ranks", problem)
    tally.note(f"1,024 ranks in {done.seconds:.1f} s")
    straight = build.run_ccn("run", ROOT / "examples" / "digits.ccn", "--backend", "sim", "-n", "100")
    tally.check("digits on 100 ranks", straight.crashed() or (None if straight.status == 0 else straight.err))


# Script, words behind it, the code, what the message must say.
REFUSED = [
    ("let x = ones(f32[3])\nif sum(x) > 1.0 { print(\"y\") }\n", [], "CCN0510", "number out of a tensor"),
    ("let x = ones(f32[3])\nlet n = int(sum(x))\n", [], "CCN0510", "number out of a tensor"),
    ("program f(x: f32[N]) { return x + x }\n", ["f", "-D", "M=3"], "CCN0510", "`N` of parameter `x`"),
    ("program f(x: [f32[N]]) { return x[0] }\n", ["f", "-D", "N=3"], "CCN0510", "list `x`"),
    ("program f(x: f32[N]) { return x + x }\n", ["f", "-D", "N=x"], "CCN0510", "is no size"),
    ("program f(x: f32[N]) { return x + x }\n", ["f", "-D", "N=3", "--machine", "abacus"], "CCN0501", "abacus"),
    ("program f(x: f32[N]) { return x + x }\n", ["f", "-D", "N=3", "--algorithm", "magic"], "CCN0501", "magic"),
    ("program f(x: f32[N]) { return x + x }\n", ["g", "-D", "N=3"], "CCN0801", "g"),
]


def check_optimizers(build, tally):
    """Optimizers that no example has: one kernel in the plan from the generic schedule, and the unscheduled bits."""
    path = TESTS / "plans" / "optimizers.ccn"
    found, problem = plans(build, path, "-n", "3")
    for plan in [] if problem else [p for p in found if p["program"].endswith("@zero")]:
        kinds = [s["kind"] for s in plan["steps"]]
        tally.check(f"{plan['program']}: one kernel", None if kinds == ["kernel"] else f"steps {kinds}")
    tally.check("plans of optimizers", problem)
    count = len(re.findall(r"^program ", path.read_text(), re.M))
    items = [(backend, n) for backend in ["reference", "local"] for n in RANKS]
    for (backend, n), done in zip(items, in_parallel(lambda i: build.run_ccn("run", path, "--backend", i[0], "-n", i[1]), items)):
        good = re.findall(r"^\w+(?: true)+$", done.out, re.M)
        problem = done.crashed() or (None if done.status == 0 and len(good) == count else done.out + done.err)
        tally.check(f"bits of optimizers on {n} ranks, {backend}", problem)


def check_parts(build, tally):
    """The script compares schedules with their programs itself."""
    items = [(backend, n) for backend in ["plan", "local"] for n in RANKS]
    for (backend, n), done in zip(items, in_parallel(
            lambda i: build.run_ccn("run", TESTS / "plans" / "parts.ccn", "--backend", i[0], "-n", i[1]), items)):
        tally.check(f"parts on {n} ranks, {backend}", done.crashed() or (None if done.status == 0 else done.err))


def check_refusals(build, tally, folder):
    for number, (text, words, code, says) in enumerate(REFUSED):
        path = folder / f"refused{number}.ccn"
        path.write_text(text)
        done, found, _ = build.diagnostics("plan", path, *words, "--json")
        problem = done.crashed()
        if not problem and (done.status == 0 or not found or found[0]["code"] != code or says not in found[0]["message"]):
            problem = f"status {done.status}: {found} {done.err}"
        tally.check(f"{text.splitlines()[0]} {' '.join(words)}", problem)


def suite(build, options):
    tally = Tally("plans")
    check_bytes(build, tally)
    check_optimizers(build, tally)
    check_parts(build, tally)
    with tempfile.TemporaryDirectory() as name:
        check_figures(build, tally)
        check_simulator(build, tally, pathlib.Path(name))
        check_refusals(build, tally, pathlib.Path(name))
    return tally

# tune.py: the search for schedules: what it visits parses, makes other graphs and takes the time that it says; published
# schedules are among it; it ends on all examples; results are kept and looked up.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import tempfile

from .core import ROOT, Tally, in_parallel

EXAMPLES = ROOT / "examples"
# Example, program, ranks, schedules of std/schedules or of the example that must be among what is visited.
OPTIMIZER = ["schedules.ar_c({p}.{x})", "schedules.rs_c_ag({p}.{x})", "schedules.zero({p}.{x})"]
LAYER = ["schedules.ar_c({p}.{x})", "schedules.rs_c_ag_along({p}.{x}, {d})", "schedules.zero_along({p}.{x}, {d})",
         "schedules.overlapped({p}.{mm}, {p}.{x}, {d})", "overlapped"]
PUBLISHED = [
    ("sgd", "sgd", dict(x="gsum"), OPTIMIZER),
    ("sgd_momentum", "sgd_momentum", dict(x="gsum"), OPTIMIZER),
    ("adam", "adam", dict(x="gsum"), OPTIMIZER + ["zero"]),
    ("adam_mixed", "adam_mixed", dict(x="gsum"), OPTIMIZER),
    ("lamb", "lamb", dict(x="gsum"), OPTIMIZER),
    ("attention_out", "out", dict(x="lsum", mm="layer", d=1), LAYER),
    ("mlp", "mlp", dict(x="zsum", mm="z", d=1), LAYER),
    ("pipeline_edge", "edge", dict(x="xsum", d=2),
     ["schedules.ar_c({p}.{x})", "schedules.sliced_hop({p}.{x}, {d})", "schedules.overlapped_hop({p}.{x}, {d})", "sliced_hop"]),
    ("mlp_2d", "model", {}, ["ov"]),
]


def tuned(build, *words, **settings):
    """What was seen, one object a program; or what is wrong."""
    done = build.run_ccn("tune", *words, "--json", **settings)
    problem = done.crashed() or (None if done.status == 0 else done.err)
    return (None, problem) if problem else ([json.loads(line) for line in done.out.splitlines()], None)


def definitions(path):
    """The example up to its first statement that computes: mesh, imports, programs, schedules."""
    text = re.split(r"^(?:let|for|fn|print|assert)\b", path.read_text(), maxsplit=1, flags=re.M)[0]
    return text if "std/schedules" in text else re.sub(r"^(mesh .*)$", r'\1\nimport "std/schedules" as schedules', text,
                                                       count=1, flags=re.M)


def graphs_of(build, path, text):
    path.write_text(text)
    done = build.run_ccn("dump", path, "--stage", "scheduled", "-n", 4)
    if done.status != 0:
        return None, done.err
    return re.split(r"^(?=graph )", done.out, flags=re.M)[1:], None


def check_published(build, item, folder):
    """All that was visited parses and makes graphs that differ; the published schedules are some of them."""
    example, program, names, published = item
    found, problem = tuned(build, EXAMPLES / f"{example}.ccn", program, "-n", 4, "--no-cache")
    if problem:
        return problem
    seen = found[0]["seen"]
    text = definitions(EXAMPLES / f"{example}.ccn")
    for i, s in enumerate(seen[1:]):
        text += f"schedule seen{i} for {program} {{\n{s['schedule']}}}\nlet q{i} = {program} with seen{i}\n"
    for i, s in enumerate(published):
        text += f"let p{i} = {program} with {s.format(p=program, **names)}\n"
    graphs, problem = graphs_of(build, folder / f"{example}.ccn", text)
    if problem:
        return problem
    if len(graphs) != len(seen) - 1 + len(published):
        return f"{len(graphs)} graphs of {len(seen) - 1} + {len(published)} schedules"
    mine, theirs = graphs[:len(seen) - 1], graphs[len(seen) - 1:]
    if len(set(mine)) != len(mine):
        return "two schedules of the search make one graph"
    return next((f"{s} was not visited" for s, g in zip(published, theirs) if g not in mine), None)


def check_times(build, item, folder):
    """`ccn plan` gives each schedule the time that the search gave it; the best is the least."""
    example, program, _, _ = item
    path = EXAMPLES / f"{example}.ccn"
    found, problem = tuned(build, path, program, "-n", 4, "--no-cache")
    if problem:
        return problem
    seen, best = found[0]["seen"], found[0]["best"]
    if any(s["seconds"] is None for s in seen) or min(s["seconds"] for s in seen) != seen[best]["seconds"]:
        return f"{seen[best]} is not the least"
    tried = sorted({best, 0, *range(1, len(seen), max(1, len(seen) // 8))})
    call = re.sub(rf"\({program} with [\w.]+\)|\b{program} with [\w.]+(\([^)]*\))?", program, path.read_text())
    for i in tried:
        script = folder / f"{example}-{i}.ccn"
        text = call
        if i:  # every call goes through this schedule: the program gets another name for its definition
            text = re.sub(rf"(?<![\w.]){program}(?=\()", "tuned_program", call)
            text = re.sub(rf"^(program )tuned_program\(", rf"\1{program}(", text, flags=re.M)
            at = re.search(rf"^let |^for |^fn ", text, flags=re.M).start()
            text = f"{text[:at]}schedule tried for {program} {{\n{seen[i]['schedule']}}}\n" \
                   f"let tuned_program = {program} with tried\n{text[at:]}"
            text = re.sub(rf"= {program}( *(?:#.*)?)$", r"= tuned_program\1", text, flags=re.M)
        script.write_text(text)
        done = build.run_ccn("plan", script, "-n", 4, "--json")
        if done.status != 0:
            return f"schedule {i}: {done.err}"
        name = program + ("@tried" if i else "")
        times = {round(p["time"] / seen[i]["seconds"], 6) for p in map(json.loads, done.out.splitlines()) if p["program"] == name}
        if times != {1.0}:
            return f"schedule {i}: `ccn plan` gives {times} times what the search says"
    return None


def check_all_end(build, tally):
    paths = sorted(EXAMPLES.glob("*.ccn"))
    for path, (found, problem) in zip(paths, in_parallel(lambda p: tuned(build, p, "-n", 4, "--no-cache"), paths)):
        cut = [p["program"] for p in found or [] if not p["whole"]]
        tally.check(f"{path.name}: everything is tried", problem or (f"not of {cut}" if cut else None))
        for p in found or []:
            if len(p["seen"]) > 1:
                tally.note(f"{p['program']} {len(p['seen'])}")


def check_output(build, tally, folder):
    adam, out = EXAMPLES / "adam.ccn", folder / "out.ccn"
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    first = build.run_ccn("tune", adam, "-n", 4, env=cache)
    tally.check("a schedule is printed", first.crashed() or (None if "schedule adam_tuned for adam {" in first.out else first.out))
    kept = sorted((folder / "cache" / "ccn").iterdir()) if (folder / "cache" / "ccn").is_dir() else []
    tally.check("the result is kept", None if len(kept) == 1 else f"{kept}")
    if kept:  # what is kept is what is said: a mark in it shows, until it is damaged
        again = build.run_ccn("tune", adam, "-n", 4, "--json", env=cache)
        tally.check("kept for all formats", None if json.loads(again.out)["program"] == "adam" else again.out)
        data = bytearray(kept[0].read_bytes())
        data[len(data) // 2] ^= 1
        kept[0].write_bytes(data)
        damaged = build.run_ccn("tune", adam, "-n", 4, env=cache)
        tally.check("a damaged result is made anew", None if damaged.out == first.out else damaged.out)
        other = build.run_ccn("tune", adam, "-n", 8, env=cache)
        tally.check("other ranks, another result", None if "on 8 ranks" in other.out else other.out)
    done = build.run_ccn("tune", adam, "-n", 4, "-o", out, "--no-cache")
    script = folder / "pasted.ccn"
    text = adam.read_text().replace("let step = adam with zero(adam.gsum)", "let step = adam with adam_tuned")
    at = text.index("schedule zero")
    script.write_text(text[:at] + (out.read_text() if out.exists() else "") + text[at:])
    ran, want = build.run_ccn("run", script, "-n", 4), build.run_ccn("run", adam, "-n", 4)
    tally.check("what -o writes runs, with the same result",
                done.crashed() or (None if ran.status == 0 and ran.out == want.out and not done.out else ran.err + done.out))
    explained = build.run_ccn("tune", adam, "-n", 4, "--explain", "--no-cache")
    missing = [w for w in ["# with this schedule:", "# with the next best:", "# alone:", "% of its limit", "bound"]
               if w not in explained.out]
    tally.check("--explain", f"without {missing}" if missing else None)
    inexact, problem = tuned(build, adam, "-n", 4, "--no-cache", "--reassociate")
    words = {w for s in (inexact[0]["seen"] if inexact else []) for w in re.findall(r"algorithm\(gsum, (\w+)\)", s["schedule"])}
    wrong = [s for s in (inexact[0]["seen"] if inexact else []) if s["exact"] == ("algorithm" in s["schedule"])]
    tally.check("--reassociate tries algorithms", problem or (None if {"ring", "tree", "halving"} <= words and not wrong else f"{words} {wrong}"))
    exact, problem = tuned(build, adam, "-n", 4, "--no-cache")
    tally.check("without it all is exact", problem or (None if all(s["exact"] for s in exact[0]["seen"]) else "not all"))
    for words, code in [(["--machine", "abacus"], "CCN0501"), (["nothing", "-D", "N=3"], "CCN0801"), (["adam", "-D", "M=3"], "CCN0510")]:
        done, diags, _ = build.diagnostics("tune", adam, *words, "--json", "--no-cache")
        tally.check(f"tune {' '.join(words)}", done.crashed() or (None if done.status and diags and diags[0]["code"] == code else done.err))


def suite(build, options):
    tally = Tally("tune")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for item, problem in zip(PUBLISHED, in_parallel(lambda i: check_published(build, i, folder), PUBLISHED)):
            tally.check(f"{item[0]}: what is visited, and published schedules among it", problem)
        for item, problem in zip(PUBLISHED, in_parallel(lambda i: check_times(build, i, folder), PUBLISHED)):
            tally.check(f"{item[0]}: times", problem)
        check_all_end(build, tally)
        check_output(build, tally, folder)
    return tally

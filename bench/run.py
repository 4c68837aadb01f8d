#!/usr/bin/env python3
"""run.py: the figures of docs/performance.md.

    meson setup build && ninja -C build && bench/run.py [--build build]

Each figure is the best of a few runs, on one core. Times of commands include the start of the process.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# One op many times on f32; `repeat 0` measures what is not the op.
OPS = [
    ("x + w", "x + w", 2**20, 400, "elements"),
    ("x + w, out of cache", "x + w", 2**24, 20, "elements"),
    ("x * s, s a scalar", "x * s", 2**20, 400, "elements"),
    ("exp(x)", "exp(x)", 2**20, 60, "elements"),
    ("tanh(x)", "tanh(x)", 2**20, 60, "elements"),
    ("gelu(x)", "gelu(x)", 2**20, 60, "elements"),
    ("sum(x)", "x * 0 + sum(x)", 2**20, 100, "elements"),  # with two elementwise ops
]
SCRIPT = """mesh (dp)
program op(x: f32[N], w: f32[N], s: f32) {{
  y = x
  repeat {turns} {{ y = {op} }}
  return sum(y)
}}
let x = rand(f32[{n}], seed: 1)
let w = rand(f32[{n}], seed: 2)
for i in 0..{calls} {{ op(x, w, 0.5) }}
"""
MATMUL = """mesh (dp)
program op(x: f32[M, M]) {{
  y = x
  repeat {turns} {{ y = matmul(x, x) }}
  return sum(y)
}}
for i in 0..1 {{ op(rand(f32[512, 512], seed: 1)) }}
"""


def timed(command, runs=5):
    best = 1e9
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        best = min(best, time.perf_counter() - start)
    return best


def many_statements(n):
    lines = ["mesh (dp)", "program long(x: f32[N] sliced(0), w: f32[N], k: f32) {", "  v0 = x"]
    forms = ["v{p} * w + k", "maximum(v{p}, w) / 2", "where(v{p} > 0, v{p}, w)", "exp(-v{p}) - 1", "v{p} + sqrt(w)"]
    lines += [f"  v{i} = {forms[i % len(forms)].format(p=i - 1)}" for i in range(1, n + 1)]
    return "\n".join(lines + [f"  return allreduce(sum, sum(v{n}))", "}"]) + "\n"


def parser_speed(build, folder, text):
    source, binary = folder / "parse.ccn", folder / "parse"
    source.write_text(text)
    libraries = [build / "parser" / "libparser.a", build / "lang" / "liblang.a"]
    subprocess.run(["cc", "-O2", "-std=c11", f"-I{ROOT}/include", "-iquote", ROOT / "lang", "-iquote", ROOT / "parser",
                    ROOT / "bench" / "parse.c", *libraries, *libraries, "-lm", "-o", binary], check=True)
    return subprocess.run([binary, source], check=True, capture_output=True, text=True).stdout.strip()


def op_speed(ccn, folder, op, n, turns):
    times = []
    for k in (0, turns):
        source = folder / "op.ccn"
        source.write_text(SCRIPT.format(op=op, n=n, turns=k, calls=1))
        times.append(timed([ccn, "run", source], 4))
    return n * turns / (times[1] - times[0])


def matmul_speed(ccn, folder):
    times = []
    for k in (0, 20):
        source = folder / "matmul.ccn"
        source.write_text(MATMUL.format(turns=k))
        times.append(timed([ccn, "run", source], 4))
    return 2 * 512**3 * 20 / (times[1] - times[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    build = parser.parse_args().build.resolve()
    ccn = build / "repl" / "ccn"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        examples = "".join(p.read_text().replace("mesh (", "# mesh (") for p in sorted((ROOT / "examples").glob("*.ccn")))
        text = examples * (10_000_000 // len(examples.encode()))
        print(f"parser, {len(text.encode()) / 1e6:.1f} MB of the examples' text: {parser_speed(build, folder, text)}")
        empty = folder / "empty.ccn"
        empty.write_text("")
        print(f"ccn check of an empty file: {1e3 * timed([ccn, 'check', empty], 20):.1f} ms")
        for example in ("adam", "digits"):
            print(f"ccn check examples/{example}.ccn: {1e3 * timed([ccn, 'check', ROOT / 'examples' / (example + '.ccn')], 20):.1f} ms")
        for n in (10_000, 20_000):
            source = folder / "many.ccn"
            source.write_text(many_statements(n))
            print(f"ccn check of a program of {n} statements: {timed([ccn, 'check', source], 3):.3f} s")
        for what, op, n, turns, unit in OPS:
            print(f"interpreter, {what}, {n} f32: {op_speed(ccn, folder, op, n, turns) / 1e6:.0f} M {unit}/s")
        print(f"interpreter, matmul 512 x 512, f32: {matmul_speed(ccn, folder) / 1e9:.1f} GFlop/s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

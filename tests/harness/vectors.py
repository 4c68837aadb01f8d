# vectors.py: answers computed by NumPy against what .ccn programs save: tests/cases/*, tests/vectors/*.ccn.
#
# Each case also names wrong variants of its rule (`rejects`): the same script with one text replaced must fall outside
# the tolerance. Further cases of other sizes and ranks are made here.
# SPDX-License-Identifier: Apache-2.0
import json
import math
import pathlib
import re
import shutil
import tempfile

import numpy

from .core import CASES, ROOT, TESTS, Tally, in_parallel

# What each script saves, in the order in which a difference is reported.
OPTIMIZERS = {"adam": ["p", "m", "v"], "lamb": ["p", "m", "v"], "sgd_momentum": ["p", "m"]}

# Wrong variants: pairs of texts, the second put in the place of the first.
MUTANTS = {
    "no eps": [("(sqrt(vh) + eps)", "sqrt(vh)")],
    "eps inside the root": [("(sqrt(vh) + eps)", "sqrt(vh + eps)")],
    "no bias correction": [("m1 / (1 - beta1 ** t)", "m1"), ("v1 / (1 - beta2 ** t)", "v1")],
    "betas swapped": [("beta1", "beta3"), ("beta2", "beta1"), ("beta3", "beta2")],
    "step off by one": [("lr, t)\n}", "lr, t + 1)\n}")],
    "sum instead of average": [("allreduce(avg,", "allreduce(sum,")],
    "no trust ratio": [("lr * ratio * u", "lr * u")],
    "no weight decay": [(" + weight_decay * p", "")],
    "no momentum": [("momentum * m + gavg", "gavg")],
}


def set_constants(text, values):
    """Replaces the `let NAME = ...` lines at the top of a script."""
    for name, value in values.items():
        text, n = re.subn(rf"(?m)^let {name} = .*$", f"let {name} = {value!r}", text)
        if n != 1:
            raise ValueError(f"no line `let {name} = ...`")
    return text


def mutate(text, pairs):
    head, _, body = text.partition("\nprogram ")  # the constants stay
    body = "\nprogram " + body
    for old, new in pairs:
        if old not in body:
            raise ValueError(f"{old!r} is not in the script")
        body = body.replace(old, new)
    return head + body


def run_script(build, text, ranks, words, out):
    """Runs a script; None, or what went wrong."""
    path = pathlib.Path(out) / "script.ccn"
    path.write_text(text)
    done = build.run_ccn("run", path, "-n", ranks, "--", *words)
    if done.crashed():
        return done.crashed()
    return None if done.status == 0 else f"exit status {done.status}\n{done.err}"


def difference(got_file, want, rtol, atol):
    """None if every element passes: |got - want| <= atol + rtol*|want|."""
    if not got_file.exists():
        return f"{got_file.name} was not saved"
    got = numpy.load(got_file)
    if got.shape != want.shape:
        return f"{got_file.name}: shape {got.shape}, expected {want.shape}"
    got, want = got.astype("f8"), want.astype("f8")
    bad = ~(numpy.abs(got - want) <= atol + rtol * numpy.abs(want))
    if not bad.any():
        return None
    i = numpy.unravel_index(numpy.argmax(bad), bad.shape)
    return f"{got_file.name}: {bad.sum()} of {bad.size} elements differ; first at {tuple(map(int, i))}: " \
           f"{got[i]!r}, expected {want[i]!r}"


# ---- optimizers ---------------------------------------------------------------------------------------------------

def optimizer_text(rule, case, dtype, mutant=None):
    text = (TESTS / "vectors" / f"{rule}.ccn").read_text()
    text = set_constants(text, {"steps": case["steps"], **case["constants"]})
    if dtype == "float16":
        text = text.replace("g: f32[N] local", "g: f16[N] local")
    return mutate(text, MUTANTS[mutant]) if mutant else text


def run_optimizer(build, rule, folder, case, mutant):
    dtype = str(numpy.load(folder / "g.step1.rank0.npy").dtype)
    with tempfile.TemporaryDirectory() as out:
        problem = run_script(build, optimizer_text(rule, case, dtype, mutant), case["ranks"], [folder, out], out)
        if problem:
            return problem, True
        for name in OPTIMIZERS[rule]:
            t = case["tolerance"][name]
            problem = difference(pathlib.Path(out) / f"{name}.npy", numpy.load(folder / f"{name}.npy"), t["rtol"],
                                 t["atol"])
            if problem:
                return problem, False
    return None, False


def optimizer_tasks():
    for rule in OPTIMIZERS:
        for folder in (CASES / rule, CASES / f"{rule}_f32"):
            case = json.loads((folder / "case.json").read_text())
            yield rule, folder, case, None
            for mutant in case["rejects"]:
                yield rule, folder, case, mutant


def optimizers(build, tally):
    tasks = list(optimizer_tasks())
    results = in_parallel(lambda t: run_optimizer(build, *t), tasks)
    for (_, folder, _, mutant), (problem, did_not_run) in zip(tasks, results):
        if not mutant:
            tally.check(folder.name, problem)
        elif did_not_run:
            tally.fail(f"{folder.name}, {mutant}", problem)
        else:
            tally.check(f"{folder.name}, {mutant}", None if problem else "this wrong variant passes")


# ---- other sizes and ranks, made here -----------------------------------------------------------------------------

def make_case(rule, folder, n, ranks, seed):
    """A case like the recorded ones, with other sizes; the rule computed in float64."""
    rng = numpy.random.default_rng(seed)
    adam = {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-3}
    c = {"lr": 0.02, "momentum": 0.8} if rule == "sgd_momentum" else adam
    if rule == "lamb":
        c["weight_decay"] = 0.05
    steps = 4
    p, m, v = rng.normal(size=n), rng.normal(size=n) * 0.1, rng.random(n) * 0.1
    for name, x in (("p0", p), ("m0", m), ("v0", v)):
        numpy.save(folder / f"{name}.npy", x.astype("f4"))
    p, m, v = (numpy.load(folder / f"{name}.npy").astype("f8") for name in ("p0", "m0", "v0"))
    for t in range(1, steps + 1):
        g = [rng.normal(size=n).astype("f4") for _ in range(ranks)]
        for r in range(ranks):
            numpy.save(folder / f"g.step{t}.rank{r}.npy", g[r])
        mean = numpy.mean([x.astype("f8") for x in g], axis=0)
        if rule == "sgd_momentum":
            m = c["momentum"] * m + mean
            p = p - c["lr"] * m
            continue
        m = c["beta1"] * m + (1 - c["beta1"]) * mean
        v = c["beta2"] * v + (1 - c["beta2"]) * mean * mean
        u = (m / (1 - c["beta1"] ** t)) / (numpy.sqrt(v / (1 - c["beta2"] ** t)) + c["eps"])
        if rule == "lamb":
            u = u + c["weight_decay"] * p
            u = u * numpy.linalg.norm(p) / numpy.linalg.norm(u)
        p = p - c["lr"] * u
    for name, x in (("p", p), ("m", m), ("v", v)):
        numpy.save(folder / f"{name}.npy", x)
    close = {"rtol": 2e-5, "atol": 2e-6}
    return {"ranks": ranks, "steps": steps, "constants": c, "tolerance": {k: close for k in "pmv"}}


def run_made(build, rule, n, ranks):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case = make_case(rule, folder, n, ranks, 1000 * n + ranks)
        return run_optimizer(build, rule, folder, case, None)[0]


def made_cases(build, tally, options):
    sizes = [(1, 1), (5, 4), (64, 3)] if options.quick else [(1, 1), (1, 3), (2, 3), (5, 4), (7, 8), (64, 3), (997, 2),
                                                             (1009, 5), (4096, 8)]
    tasks = [(rule, n, ranks) for rule in OPTIMIZERS for n, ranks in sizes]
    for task, problem in zip(tasks, in_parallel(lambda t: run_made(build, *t), tasks)):
        tally.check("{}, {} elements on {} ranks".format(*task), problem)


# ---- the others ---------------------------------------------------------------------------------------------------

def run_case(build, script, folder, constants, outputs):
    """Runs tests/vectors/SCRIPT on a folder; outputs: name saved → file of the folder it must equal."""
    case = json.loads((folder / "case.json").read_text())
    with tempfile.TemporaryDirectory() as out:
        text = set_constants((TESTS / "vectors" / script).read_text(), constants)
        problem = run_script(build, text, case["ranks"], [folder, out], out)
        for name, want in outputs.items():
            problem = problem or difference(pathlib.Path(out) / f"{name}.npy", numpy.load(folder / f"{want}.npy"),
                                            case["rtol"], case["atol"])
        return problem


def other_tasks():
    yield "attention_out", ("attention_out.ccn", CASES / "attention_out", {}, {"y": "y"})
    yield "mlp", ("mlp.ccn", CASES / "mlp", {}, {"y": "y"})
    each = [f"y.rank{k}" for k in range(4)]
    yield "pipeline_edge", ("pipeline_edge.ccn", CASES / "pipeline_edge", {"ranks": 4}, {y: y for y in each})
    for folder in sorted((CASES / "collectives").iterdir()):
        ranks = json.loads((folder / "case.json").read_text())["ranks"]
        saved = {p.stem: p.stem for p in folder.glob("*.npy") if not p.name.startswith("x.")}
        if folder.name.endswith("alltoall"):
            yield folder.name, ("alltoall.ccn", folder, {"ranks": ranks}, saved)
        else:
            saved["again"] = "allreduce_sum"
            yield folder.name, ("collectives.ccn", folder, {"ranks": ranks}, saved)


# ---- Philox ---------------------------------------------------------------------------------------------------------

def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def coordinate_hash(coordinates):
    h = 0x811C9DC5
    for x in coordinates:
        for b in int(x).to_bytes(4, "little"):
            h = ((h ^ b) * 0x01000193) & 0xFFFFFFFF
    return h if coordinates else 0


def uniform(size, seed, step, coordinates=()):
    key = [seed & 0xFFFFFFFF, seed >> 32]
    h = coordinate_hash(coordinates)
    return numpy.array([(philox([i & 0xFFFFFFFF, i >> 32, step, h], key)[0] >> 8) * 2.0 ** -24 for i in range(size)],
                       dtype="f4")


def run_random(build, seed, step, size):
    with tempfile.TemporaryDirectory() as out:
        text = set_constants((TESTS / "vectors" / "random.ccn").read_text(),
                             {"ranks": 4, "key": seed, "turn": step, "count": size})
        problem = run_script(build, text, 4, [out], out)
        wants = {"whole": uniform(size, seed, step), "cut": uniform(size, seed, step)}
        for k in range(4):
            wants[f"own.rank{k}"] = uniform(size, seed, step, (k // 2, k % 2))
            wants[f"own_b.rank{k}"] = uniform(size, seed, step, (k % 2,))
        for name, want in wants.items():
            problem = problem or difference(pathlib.Path(out) / f"{name}.npy", want, 0, 0)
        return problem


def random_numbers(build, tally):
    for v in json.loads((CASES / "philox" / "case.json").read_text())["vectors"]:
        want, counter, key = ([int(x, 16) for x in v[k]] for k in ("out", "counter", "key"))
        tally.check("philox in Python", None if philox(counter, key) == want else f"{v}")
    tasks = [(0, 0, 5), (1, 2, 100), (0xFFFFFFFF, 7, 33), ((5 << 32) + 9, 2 ** 31 - 1, 17)]
    for task, problem in zip(tasks, in_parallel(lambda t: run_random(build, *t), tasks)):
        tally.check("rand, seed {} step {} size {}".format(*task), problem)


# ---- .npy files, byte for byte --------------------------------------------------------------------------------------

def npy_files():
    for dtype in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"):
        for shape in ((), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4, 5)):
            x = (numpy.arange(math.prod(shape)) % 5 - (0 if dtype in ("u1", "?") else 2)).reshape(shape).astype(dtype)
            yield f"{x.dtype} {shape}", x, x
    x = numpy.arange(12, dtype="f4").reshape(3, 4)
    yield "column order", numpy.asfortranarray(x), x
    yield "big-endian", x.astype(">f4"), x
    yield "big-endian i8", numpy.arange(5, dtype=">i8"), numpy.arange(5, dtype="<i8")
    special = numpy.array([0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1e-45, 3.4e38], dtype="f4")
    yield "special values", special, special


def copy_npy(build, given, want):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        numpy.save(folder / "in.npy", given)
        numpy.save(folder / "want.npy", want)
        done = build.run_ccn("run", TESTS / "vectors" / "copy.ccn", "--", folder / "in.npy", folder / "out.npy")
        if done.crashed() or done.status != 0:
            return done.crashed() or done.err
        got = (folder / "out.npy").read_bytes()
        return None if got == (folder / "want.npy").read_bytes() else f"other bytes: {got[:128]!r}"


def npy(build, tally):
    tasks = list(npy_files())
    for (name, _, _), problem in zip(tasks, in_parallel(lambda t: copy_npy(build, *t[1:]), tasks)):
        tally.check(f".npy {name}", problem)


# ---- digits ---------------------------------------------------------------------------------------------------------

def saved_weights(folder, before):
    """The four arrays of a 64-128-10 network among the new .npy files, by shape."""
    found = {}
    for path in sorted(folder.rglob("*.npy")):
        if path not in before:
            x = numpy.load(path)
            found[x.shape] = x
    return [found[s] for s in ((64, 128), (128,), (128, 10), (10,))]


def digits(build, tally, ranks):
    """Trains as the README says; what it prints and what its weights reach in NumPy must agree."""
    name = f"digits on {ranks} ranks"
    with tempfile.TemporaryDirectory() as held:
        folder = pathlib.Path(held)
        shutil.copytree(ROOT / "examples", folder / "examples")
        before = set(folder.rglob("*.npy"))
        done = build.run_ccn("run", "examples/digits.ccn", "-n", ranks, cwd=folder)
        if done.crashed() or done.status != 0:
            tally.fail(name, done.crashed() or done.err)
            return
        shown = re.findall(r"accuracy\D*([01]\.\d+)", done.out)
        try:
            w1, b1, w2, b2 = saved_weights(folder, before)
        except KeyError as e:
            tally.fail(name, f"no saved array of shape {e}")
            return
        x, y = (numpy.load(CASES / "digits" / f"{k}_test.npy") for k in ("x", "y"))
        logits = numpy.maximum(x.astype("f8") @ w1 + b1, 0) @ w2 + b2
        accuracy = float((logits.argmax(axis=1) == y).mean())
        problem = None
        if not shown or float(shown[-1]) < 0.96 or accuracy < 0.96 or abs(float(shown[-1]) - accuracy) > 0.004:
            problem = f"accuracy shown {shown[-1:]}, in NumPy {accuracy:.4f}\n{done.out[-500:]}"
        tally.check(name, problem)
        tally.note(f"{name}: {done.seconds:.1f} s, accuracy {accuracy:.4f}")


def suite(build, options):
    tally = Tally("vectors")
    optimizers(build, tally)
    made_cases(build, tally, options)
    tasks = list(other_tasks())
    for (name, _), problem in zip(tasks, in_parallel(lambda t: run_case(build, *t[1]), tasks)):
        tally.check(name, problem)
    random_numbers(build, tally)
    npy(build, tally)
    digits(build, tally, 4)
    return tally

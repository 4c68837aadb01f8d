# engine.py: batches of programs in one file, so that a thousand graphs cost a few hundred processes: check, dump, run on
# every number of ranks, and byte comparison of what the two versions saved.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import random
import shutil
import struct
import subprocess

import generate
import schedules
import structure
from generate import CHECKED, MESHES, Program, Quota
from model import A, R, S, parse_graphs

RANKS = (1, 2, 3, 4, 8)
TIMEOUT = 300
# Codes that a proposed statement of a schedule may be refused with; any other is looked at.
REFUSALS = {"CCN0401", "CCN0402", "CCN0403", "CCN0404", "CCN0405", "CCN0406", "CCN0407", "CCN0408", "CCN0400",
            "CCN0309", "CCN0104", "CCN0218", "CCN0308", "CCN0305"}
DEFECTS = {"CCN0499", "CCN0699"}
HELPERS = """fn special(x, u) {
  return where(u < 0.1, x * 0, where(u < 0.2, x / (x * 0), where(u < 0.25, x / (x * 0) - x / (x * 0), x)))
}
"""


BACKENDS = []  # that run the same script again and must give the interpreter's bits
READ_BACK = None  # text of a graph → what is wrong; set by use_library


def use_library(path):
    """Graph text is read by the library itself (ccn_graph_read), through ctypes."""
    global READ_BACK
    import ctypes
    lib = ctypes.CDLL(str(path))
    write_fn = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p)
    lib.ccn_context_create.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    lib.ccn_context_free.argtypes = [ctypes.c_void_p]
    lib.ccn_context_free.restype = None
    lib.ccn_graph_read.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, write_fn,
                                   ctypes.c_void_p]
    lib.ccn_diagnostics_write.argtypes = [ctypes.c_void_p, ctypes.c_int, write_fn, ctypes.c_void_p]
    lib.ccn_diagnostics_write.restype = None

    def read_back(text):
        context, parts = ctypes.c_void_p(), []
        put = write_fn(lambda data, size, user: parts.append(ctypes.string_at(data, size)))
        if lib.ccn_context_create(None, ctypes.byref(context)) != 0:
            return "no context"
        try:
            data = text.encode()
            if lib.ccn_graph_read(context, b"graph", data, len(data), put, None) != 0:
                lib.ccn_diagnostics_write(context, 0, put, None)
                return b"".join(parts).decode("utf-8", "replace")[:1500] + text
            again = b"".join(parts).decode()
            return None if again == text else f"reads back as another text:\n{text}\n{again}"
        finally:
            lib.ccn_context_free(context)

    READ_BACK = read_back


class Broken(Exception):
    """ccn crashed or did what no program should make it do."""


class Failure:
    def __init__(self, kind, program, n, mesh, why):
        self.kind, self.program, self.n, self.mesh, self.why = kind, program, n, mesh, why


def ccn(path, *words, cwd=None):
    try:
        p = subprocess.run([str(path), *map(str, words)], cwd=cwd, timeout=TIMEOUT, capture_output=True,
                           stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Broken(f"ccn {' '.join(map(str, words))}: did not end in {TIMEOUT} s") from None
    err = p.stderr.decode("utf-8", "replace")
    if p.returncode < 0 or p.returncode not in (0, 1) or "Sanitizer" in err or "runtime error:" in err:
        raise Broken(f"ccn {' '.join(map(str, words))}: exit status {p.returncode}\n{err[-4000:]}")
    return p.returncode, p.stdout.decode("utf-8", "replace"), err


class Text:
    """Lines of a file, and whose they are."""

    def __init__(self, mesh):
        self.lines, self.owner = [], {}
        self.put(mesh)

    def put(self, line, owner=None):
        for part in line.split("\n"):
            self.lines.append(part)
            if owner is not None:
                self.owner[len(self.lines)] = owner

    def text(self):
        return "\n".join(self.lines) + "\n"


def write_program(t, p, outputs):
    t.put(p.header(), (p, "head"))
    for s in p.body:
        for line in s.lines:
            t.put("  " + line, (p, s))
    t.put(f"  return {', '.join(outputs)}", (p, "return"))
    t.put("}", (p, "head"))


def write_schedule(t, p, steps=None):
    t.put(f"schedule s{p.index} for {p.name} {{", (p, "schedule"))
    for s in p.schedule if steps is None else steps:
        t.put("  " + s.line(), (p, s))
    t.put("}", (p, "schedule"))
    t.put(f"let q{p.index} = {p.name} with s{p.index}", (p, "with"))


def diagnostics(err):
    found = []
    for line in err.splitlines():
        if line.startswith("{"):
            d = json.loads(line)
            if d.get("severity") == "error":
                found.append(d)
    return found


class Batch:
    def __init__(self, exe, folder, mesh, seed, count, first):
        self.exe, self.folder, self.mesh = exe, pathlib.Path(folder), mesh
        self.rng = random.Random(seed)
        self.quota = Quota()
        self.programs = []
        for i in range(count):
            rng = random.Random(f"{seed}/{i}")
            self.programs.append(Program(first + i, mesh, rng, self.quota, exact=rng.random() < 0.2))
        self.failures, self.refused, self.runs, self.dropped = [], [], 0, 0
        self.run_errors = {}

    def file(self, name, t):
        path = self.folder / name
        path.write_text(t.text())
        return path

    # -- programs --

    def make_programs(self, rounds=6):
        for k in range(rounds):
            for p in self.programs:
                if k == 0 or p.ops() < p.rng.choice([6, 9, 12]):
                    generate.grow(p, p.rng.choice([2, 3]) if k else 3)
            self.settle(every=True)
        for p in self.programs:
            p.choose_outputs()
            p.prune()
        self.programs = [p for p in self.programs if p.body and p.outputs]
        self.settle(every=False)
        self.programs = [p for p in self.programs if p.body and p.outputs]

    def settle(self, every):
        """Drops refused statements until `ccn check` is content; then reads the types."""
        for _ in range(12):
            t = Text(CHECKED[self.mesh])
            for p in self.programs:
                names = [n for n in dict.fromkeys(p.bound())] if every else p.outputs
                write_program(t, p, names or [p.params[0].name])
            path = self.file("programs.ccn", t)
            _, _, err = ccn(self.exe, "check", path, "--json")
            bad = {}
            for d in diagnostics(err):
                owner = t.owner.get(d.get("line"))
                if not owner or d["code"] in DEFECTS:
                    raise Broken(f"check: {d}")
                bad.setdefault(owner[0].index, (owner[0], []))[1].append((owner[1], d))
            if not bad:
                break
            for p, wrong in bad.values():
                statements = [s for s, _ in wrong if not isinstance(s, str)]
                if not statements:
                    p.body, p.outputs = [], []
                    p.params = p.params[:1]
                    p.params[0].place = {a: (R,) for a in p.axes}
                    p.wrong = wrong[0][1]
                    self.dropped += 1
                p.remove(statements)
                if not every and not p.outputs:
                    p.choose_outputs()
        else:
            raise Broken("check: statements are refused without end")
        status, out, err = ccn(self.exe, "dump", path, "--stage", "graph")
        if status != 0:
            raise Broken(f"dump --stage graph: {err[:2000]}")
        graphs = parse_graphs(out)
        for p in self.programs:
            g = p.graph = graphs[p.name]
            p.types = {q.name: q.type() for q in p.params}
            names = p.outputs if not every else list(dict.fromkeys(p.bound()))
            for name, i in zip(names or [p.params[0].name], g.outputs):
                if g.by_id[i].type:
                    p.types[name] = g.by_id[i].type

    # -- schedules --

    def make_schedules(self, rounds=3):
        for p in self.programs:
            p.maker = schedules.Maker(p)
            p.scheduled = p.graph
            p.schedule = []
        for k in range(rounds):
            fresh = {}
            for p in self.programs:
                if k and p.rng.random() < 0.25:
                    continue
                p.before = p.scheduled
                for step in p.maker.propose(p.scheduled):
                    p.schedule.append(step)
                    fresh.setdefault(p.index, []).append(step)
            self.settle_schedules()
            for p in self.programs:
                for step in fresh.get(p.index, []):
                    if step in p.schedule:
                        p.maker.accepted(step)
        self.check_graphs()

    def settle_schedules(self):
        todo = [p for p in self.programs if p.schedule]
        for _ in range(40):
            t = Text(CHECKED[self.mesh])
            for p in todo:
                write_program(t, p, p.outputs)
                write_schedule(t, p)
            path = self.file("schedules.ccn", t)
            _, _, err = ccn(self.exe, "check", path, "--json")
            bad = {}
            for d in diagnostics(err):
                owner = t.owner.get(d.get("line"))
                if not owner:
                    raise Broken(f"check: {d}")
                bad.setdefault(owner[0].index, (owner[0], owner[1], d))
            if not bad:
                break
            for p, step, d in bad.values():
                if isinstance(step, str):
                    raise Broken(f"check of a schedule: {d}\n{t.text() if len(todo) < 3 else p.name}")
                if d["code"] == "CCN0401":
                    p.maker.gone.add(d["message"].split("`")[1])
                self.refused.append((step.kind, d["code"], d["message"], p, list(p.schedule), step))
                if step.kind == "reorder" and d["code"] == "CCN0402" and structure.must_be_legal(p.scheduled, step, p.schedule):
                    self.failures.append(Failure("refused though legal", snapshot(p, step), 2, CHECKED[self.mesh],
                                                 d["message"]))
                if d["code"] not in REFUSALS:
                    self.failures.append(Failure("refused with " + d["code"], snapshot(p, step), 2, CHECKED[self.mesh],
                                                 json.dumps(d)))
                gone = set(step.gives)
                kept = []
                for s in p.schedule:
                    if s is step or any(x in gone for x in s.needs):
                        gone.update(s.gives)
                    else:
                        kept.append(s)
                p.schedule = kept
        else:
            raise Broken("schedules are refused without end")
        status, out, err = ccn(self.exe, "dump", path, "--stage", "scheduled")
        if status != 0:
            raise Broken(f"dump --stage scheduled: {err[:2000]}")
        graphs = parse_graphs(out)
        self.scheduled_text = out
        for p in todo:
            p.scheduled = graphs[p.name]

    def check_graphs(self):
        """Of the scheduled graphs: callers see the types of the program alone; no pass leaves an op that nobody reads;
        the text reads back."""
        for p in self.programs:
            if not p.schedule:
                continue
            for name, i, j in zip(p.outputs, p.graph.outputs, p.scheduled.outputs):
                x, y = p.graph.by_id[i].type, p.scheduled.by_id[j].type
                if (x.dtype, x.bundle, x.place) != (y.dtype, y.bundle, y.place) or (x.dims != y.dims):
                    self.fail("type changed", p, f"{name} is {x.text}, and scheduled {y.text}")
            for n in p.scheduled.nodes:
                if n.op not in ("param", "update", "on", "repeat", "result", "carry", "enter", "const") \
                        and not p.scheduled.read(n.id):
                    self.fail("left unread", p, f"%{n.id} {n.name} = {n.op}")
            for kind, why in structure.problems(p):
                self.fail(kind, p, why)
            if READ_BACK:
                why = READ_BACK(p.scheduled.text)
                if why:
                    self.fail("text does not read back", p, why)

    def fail(self, kind, p, why):
        self.failures.append(Failure(kind, p, 2, CHECKED[self.mesh], why))

    # -- running --

    def run_all(self, ranks=RANKS):
        """Both versions on every number of ranks."""
        for n in ranks:
            mesh, sizes = self.rng.choice(MESHES[self.mesh][n])
            self.run_on(n, mesh, sizes)

    def run_on(self, n, mesh, sizes):
        todo = [p for p in self.programs if p.schedule and fits(p, sizes)]
        for _ in range(1 + len(todo)):
            if not todo:
                return
            folder = self.folder / f"n{n}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            t = Text(mesh)
            t.put(HELPERS.rstrip())
            for p in todo:
                write_script(t, p, n, sizes)
            path = folder / "run.ccn"
            path.write_text(t.text())
            status, out, err = ccn(self.exe, "run", path.name, "-n", n, "--json", cwd=folder)
            if status == 0:
                break
            found = diagnostics(err)
            if not found:
                raise Broken(f"run: exit status {status}, no diagnostic\n{err[:2000]}")
            d = found[0]
            owner, role = find_owner(t, d)
            if not owner:
                raise Broken(f"run: {d}")
            code = d["code"]
            if role in ("base", "make") and code not in DEFECTS:
                self.run_errors[code] = self.run_errors.get(code, 0) + 1
                if code not in ("CCN0214", "CCN0604", "CCN0605", "CCN0606", "CCN0309", "CCN0305", "CCN0308"):
                    self.failures.append(Failure(f"cannot run: {code}", owner, n, (mesh, sizes), json.dumps(d)))
            else:
                self.failures.append(Failure(f"scheduled fails: {code}", owner, n, (mesh, sizes), json.dumps(d)))
            todo = [p for p in todo if p is not owner]
        for p in todo:
            self.runs += 1
            why = compare(folder, p)
            if why:
                self.failures.append(Failure("bits differ", p, n, (mesh, sizes), why))
        for backend in BACKENDS:
            self.run_backend(backend, folder, todo, n, mesh, sizes)

    def run_backend(self, backend, folder, todo, n, mesh, sizes):
        """Promise E: what another engine saves has the bits of what the interpreter saved."""
        if not todo:
            return
        other = folder / backend.replace(":", "-")
        other.mkdir()
        shutil.copy(folder / "run.ccn", other)
        name, _, workers = backend.partition(":")  # "local:3": by three threads
        more = ("--workers", workers) if workers else ()
        status, out, err = ccn(self.exe, "run", "run.ccn", "-n", n, "--backend", name, *more, "--json", cwd=other)
        if status != 0:
            found = diagnostics(err)
            self.failures.append(Failure(f"backend {backend} fails", todo[0], n, (mesh, sizes),
                                         json.dumps(found[0]) if found else f"status {status} {err[:500]}"))
            return
        for p in todo:
            why = None
            for x in sorted(folder.glob(f"{p.index}.*.npy")):
                y = other / x.name
                if not y.exists():
                    why = f"{x.name} was not saved"
                elif x.read_bytes() != y.read_bytes():
                    differs = first_difference(x.read_bytes(), y.read_bytes(), None)
                    why = why or (differs and f"{x.name}: reference against {backend}: {differs}")
            if why:
                self.failures.append(Failure(f"backend {backend} differs", p, n, (mesh, sizes), why))


def snapshot(p, step):
    """The program with its schedule as it was when `step` was refused."""
    import copy
    q = copy.copy(p)
    q.schedule = list(p.schedule)
    return q


def fits(p, sizes):
    return all(sizes[a] >= k for a, k in p.least.items()) and all(sizes[a] == k for a, k in p.size_is.items())


def find_owner(t, d):
    places = [d.get("line"), *(note.get("line") for note in d.get("notes", []))]
    owners = [t.owner.get(line) for line in places if line in t.owner]
    role = next((r for _, r in owners if r in ("base", "scheduled", "make", "save")), "scheduled")
    return (owners[0][0], role) if owners else (None, None)


def coord(rank, axis, sizes):
    axes = list(sizes)
    for a in reversed(axes):
        if a == axis:
            return rank % sizes[a]
        rank //= sizes[a]
    raise KeyError(axis)


def one_save(x, dtype, scalar, file):
    if scalar:  # x.on(r) of a scalar is a number
        wide = "bool" if dtype == "bool" else "i64" if dtype in generate.INTS else "f64"
        return f'save("{file}.npy", tensor([{x}], {wide}))'
    return f'save("{file}.npy", {f"f32({x})" if dtype == "bf16" else x})'


def saves(p, value, t, stem, n, sizes, shapes=None):
    """Lines that save a value so that every bit of every rank's is seen. `shapes`: of a bundle's members."""
    parts = [(value, stem, not t.dims)]
    if t.bundle:
        parts = [(f"{value}[{i}]", f"{stem}.{i}", t.bundle == "scalars" or not s) for i, s in enumerate(shapes)]
    if t.bundle and S in t.kinds() and not t.kinds() <= {R, S}:
        return []  # its members are cut apart
    if t.kinds() <= {R, S}:
        return [one_save(x, t.dtype, False, file) for x, file, _ in parts]
    here = [r for r in range(n) if all(q[0] != A or coord(r, a, sizes) == q[1] % sizes[a] for a, q in t.place.items())]
    return [one_save(f"{x}.on({r})", t.dtype, scalar, f"{file}.r{r}") for x, file, scalar in parts for r in here]


def bundle_shapes(p):
    return next((q.bundle for q in p.params if q.bundle), None)


def write_script(t, p, n, sizes):
    i = p.index
    write_program(t, p, p.outputs)
    write_schedule(t, p)
    updated = set(p.updated())
    args = {}
    for k, q in enumerate(p.params):
        seed = 17 * k + 3
        if q.bundle:
            made = ", ".join(q.initial(f"{q.dtype}[{', '.join(map(str, s))}]{place_of(q)}" if s else
                                    f"{q.dtype}{place_of(q)}", seed + j) for j, s in enumerate(q.bundle))
            t.put(f"let {q.name}_{i} = [{made}]", (p, "make"))
        else:
            t.put(f"let {q.name}_{i} = {q.initial(q.type_text(p.value), seed)}", (p, "make"))
        args[q.name] = f"{q.name}_{i}"
        if q.name in updated:
            if q.bundle:
                t.put(f"let {q.name}_{i}s = [{', '.join(f'copy({q.name}_{i}[{j}])' for j in range(len(q.bundle)))}]", (p, "make"))
            else:
                t.put(f"let {q.name}_{i}s = copy({q.name}_{i})", (p, "make"))
    shapes = bundle_shapes(p)
    for version, suffix, role in ((p.name, "", "base"), (f"q{i}", "s", "scheduled")):
        words = [f"{args[q.name]}{suffix if q.name in updated else ''}" for q in p.params]
        call = f"{version}({', '.join(words)})"
        if p.twice and updated:
            t.put(call, (p, role))
        outs = [f"o{i}{suffix}_{k}" for k in range(len(p.outputs))]
        left = outs[0] if len(outs) == 1 else f"({', '.join(outs)})"
        t.put(f"let {left} = {call}", (p, role))
        v = "s" if suffix else "b"
        for k, (name, var) in enumerate(zip(p.outputs, outs)):
            for line in saves(p, var, p.types[name], f"{i}.{v}.o{k}", n, sizes, shapes):
                t.put(line, (p, "save"))
        for q in p.params:
            if q.name in updated:
                if q.bundle:
                    for j, _ in enumerate(q.bundle):
                        for line in saves(p, f"{q.name}_{i}{suffix}[{j}]", member_type(q, j), f"{i}.{v}.u{q.name}.{j}", n, sizes):
                            t.put(line, (p, "save"))
                else:
                    for line in saves(p, f"{q.name}_{i}{suffix}", q.type(), f"{i}.{v}.u{q.name}", n, sizes):
                        t.put(line, (p, "save"))


def member_type(q, j):
    t = q.type()
    t.bundle, t.dims = "", [str(d) for d in q.bundle[j]]
    return t


def place_of(q):
    return generate.place_text(q.place)


def compare(folder, p):
    """What differs between the files of the two versions; None if nothing."""
    base = sorted(folder.glob(f"{p.index}.b.*.npy"))
    bound = None
    if getattr(p, "bounded", False) and not p.exact and not all(s.exact for s in p.schedule):
        bound = {"f64": 2.0 ** -40, "f32": 2.0 ** -15}.get(p.main, 2.0 ** -4)
    for b in base:
        s = folder / b.name.replace(".b.", ".s.", 1)
        if not s.exists():
            return f"{s.name} was not saved"
        x, y = b.read_bytes(), s.read_bytes()
        if x != y:
            why = first_difference(x, y, bound)
            if why:
                return f"{what_is(p, b.name)}: {why}"
    return None


def what_is(p, name):
    part = name.split(".b.", 1)[1]
    if part.startswith("o"):
        return f"result {p.outputs[int(part[1:].split('.')[0])]} ({part})"
    return f"updated {part[1:]}"


DECODE = {"<f8": "d", "<f4": "f", "<f2": "e", "<i8": "q", "<i4": "i", "<i2": "h", "|i1": "b", "|u1": "B", "|b1": "?"}


def decode(data):
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size].decode())
    code = DECODE[header["descr"]]
    body = data[10 + size:]
    return header, list(struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body))


def first_difference(x, y, bound):
    hx, vx = decode(x)
    hy, vy = decode(y)
    if hx != hy:
        return f"headers {hx} and {hy}"
    scale = max([abs(v) for v in vx if v == v and abs(v) != float("inf")] + [16]) if bound else 0
    for i, (a, b) in enumerate(zip(vx, vy)):
        if (a != a and b != b) or (a == b and str(a) == str(b)):
            continue
        if bound and isinstance(a, float) and abs(a - b) <= bound * scale:
            continue
        many = sum(p != q and (p == p or q == q) for p, q in zip(vx, vy))
        return f"element {i} of {hx['shape']}: {a!r} unscheduled, {b!r} scheduled ({many} differ)"
    return None

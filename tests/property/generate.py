# generate.py: random programs. Statements are proposed with a rough idea of what fits; `ccn check` refuses the rest, and
# `ccn dump --stage graph` tells the types of what stays, from which the next statements are made.
# SPDX-License-Identifier: Apache-2.0
import math
import re

from model import FLOATS, INTS, DTYPES, SIGNED, Type, parse_type, R, S, L, P, A

MOST_OPS = 12
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 24]
# Mesh lines by number of ranks; programs are checked with the first of CHECKED.
CHECKED = {"one": "mesh (dp)", "two": "mesh (dp: 2, tp)"}
MESHES = {"one": {n: [("mesh (dp)", {"dp": n})] for n in (1, 2, 3, 4, 8)},
          "two": {1: [("mesh (dp: 1, tp)", {"dp": 1, "tp": 1})],
                  2: [("mesh (dp: 2, tp)", {"dp": 2, "tp": 1}), ("mesh (dp: 1, tp)", {"dp": 1, "tp": 2})],
                  3: [("mesh (dp: 3, tp)", {"dp": 3, "tp": 1}), ("mesh (dp: 1, tp)", {"dp": 1, "tp": 3})],
                  4: [("mesh (dp: 2, tp)", {"dp": 2, "tp": 2})],
                  8: [("mesh (dp: 2, tp)", {"dp": 2, "tp": 4}), ("mesh (dp: 4, tp)", {"dp": 4, "tp": 2})]}}

UNARY_FLOAT = ["floor", "ceil", "round", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "erf", "sin", "cos",
               "gelu", "silu", "log1p", "expm1", "isnan", "isinf", "isfinite"]
UNARY_NUM = ["neg", "abs", "sign", "relu"]
BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "lt": "<",
          "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or"}
COLLECTIVES = ["allreduce", "reducescatter", "allgather", "alltoall", "reduce", "gather", "broadcast", "scatter",
               "shift", "permute", "slice", "local"]
BUNDLE_OPS = (UNARY_FLOAT + UNARY_NUM + list(BINARY) + ["maximum", "minimum", "where", "cast", "dropout", "clamp", "not",
              "sum", "max", "min", "norm", "prod", "any", "all", "allreduce", "reducescatter", "allgather", "slice",
              "update", "local"])
NO_F64 = {"erf", "sin", "cos", "gelu", "pow"}  # not there yet on f64
OWED_PASS = {"add", "sub", "neg", "mul", "div", "where", "sum", "prod", "max", "min", "mean", "maximum", "minimum",
             "matmul", "take", "scatter_add", "transpose", "reshape", "concat", "index", "cast", "conv2d",
             "any", "all"} | set(COLLECTIVES)


class Statement:
    def __init__(self, lines, binds, uses, ops):
        self.lines, self.binds, self.uses, self.ops = lines, binds, uses, ops


class Param:
    def __init__(self, name, dtype, dims, place, init, bundle=None, high=None):
        self.name, self.dtype, self.dims, self.place, self.init, self.bundle = name, dtype, dims, place, init, bundle
        self.high = high  # of indices: the extent (text) that they stay below

    def type_text(self, value=None):
        dims = self.dims if value is None else [str(value(d)) for d in self.dims]
        t = self.dtype + (f"[{', '.join(dims)}]" if dims else "")
        if self.bundle:
            t = f"[{self.dtype}[*]]"
        return t + place_text(self.place)

    def initial(self, type_text, seed):
        words = {"@T": type_text, "@I": type_text.replace(self.dtype, "i32", 1), "@S": str(seed), "@U": str(seed + 1000)}
        return re.sub("@[TISU]", lambda m: words[m[0]], self.init)

    def type(self):
        return Type(self.dtype, ["*"] if self.bundle else list(self.dims), "tensors" if self.bundle else "",
                    {a: p for a, p in self.place.items() if p[0] != R})


def place_text(place):
    words = {R: lambda p: "", S: lambda p: f"sliced({p[1]})" if p[2] == "1" else f"sliced({p[1]}, unit: {p[2]})",
             L: lambda p: "local", P: lambda p: f"partial({p[1]})", A: lambda p: f"at({p[1]})"}
    return "".join(f" {words[p[0]](p)} over {a}" for a, p in place.items() if p[0] != R)


class Program:
    """One program and its script: parameters with initial values, statements, what it returns."""

    def __init__(self, index, mesh, rng, quota, exact=False):
        self.index, self.mesh, self.rng, self.quota = index, mesh, rng, quota
        self.axes = ["dp"] if mesh == "one" else ["dp", "tp"]
        self.params, self.body, self.syms, self.types = [], [], {}, {}
        self.outputs, self.least, self.size_is = [], {}, {}
        self.exact = exact
        self.twice = rng.random() < 0.3
        self.count = 0
        self.kind = "plain"
        self.schedule = []  # schedules.Step
        self.name = f"p{index}"
        make_params(self)
        self.types = {p.name: p.type() for p in self.params}

    # -- text --

    def header(self):
        return f"program {self.name}({', '.join(f'{p.name}: {p.type_text()}' for p in self.params)}) {{"

    def value(self, dim):
        """Number of a dim's text."""
        if dim in self.syms:
            return self.syms[dim]
        text = re.sub(r"[A-Za-z_]\w*", lambda m: str(self.syms[m[0]]), dim.replace("^", "**"))
        return int(eval(text.replace("/", "//")))

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def ops(self):
        return sum(len(s.ops) for s in self.body)

    def updated(self):
        return [u for s in self.body for u in s.uses if f"update({u}," in " ".join(s.lines)]

    def bound(self):
        return [p.name for p in self.params] + [b for s in self.body for b in s.binds]

    def remove(self, statements):
        """Drops statements and what needs them."""
        gone = set()
        for s in statements:
            gone.update(s.binds)
        kept = []
        for s in self.body:
            if s in statements or any(u in gone for u in s.uses):
                gone.update(s.binds)
            else:
                kept.append(s)
        # a name bound again by another statement stays
        self.body = kept
        self.outputs = [o for o in self.outputs if o not in gone]

    def prune(self):
        """Drops what no output and no update needs."""
        need = set(self.outputs)
        kept = []
        for s in reversed(self.body):
            if any(b in need for b in s.binds) or any("update(" in t for t in s.lines):
                need.update(s.uses)
                kept.append(s)
        self.body = kept[::-1]
        used = set(self.outputs) | {u for s in self.body for u in s.uses}
        kept = [p for p in self.params if p.name in used or any(d in self.syms and self.first_of(d) is p for d in p.dims)]
        if kept:
            self.params = kept

    def first_of(self, sym):
        for p in self.params:
            if sym in p.dims:
                return p
        return None

    def choose_outputs(self):
        read = {u for s in self.body for u in s.uses}
        made = [b for s in self.body for b in s.binds if b in self.types]
        sinks = [b for b in made if b not in read]
        rng = self.rng
        self.outputs = [b for b in sinks if rng.random() < 0.85]
        self.outputs += [b for b in made if b in read and rng.random() < 0.06]
        if not self.outputs:
            self.outputs = sinks[-1:] or made[-1:]
        if rng.random() < 0.04:
            self.outputs.append(rng.choice(self.params).name)
        self.outputs = list(dict.fromkeys(self.outputs))[:8]

    # -- choosing operands --

    def pick(self, want, recent=True):
        names = [n for n in dict.fromkeys(self.bound()) if n in self.types and want(self.types[n])]
        if not names:
            return None
        hot = self.hot()
        weights = []
        for i, n in enumerate(names):
            w = 1.0 + (i / len(names) * 2 if recent else 0)
            if n in hot:
                w *= 3
            if n.startswith("v") and n not in self.read_names():
                w *= 2
            weights.append(w)
        return self.rng.choices(names, weights)[0]

    def read_names(self):
        return {u for s in self.body for u in s.uses}

    def hot(self):
        """What depends on an all-reduce."""
        hot = set()
        for s in self.body:
            if "allreduce" in s.ops or any(u in hot for u in s.uses):
                hot.update(s.binds)
        return hot


# ---- parameters ------------------------------------------------------------------------------------------------------

def main_place(rng, axes, rank, exact):
    """Where the gradient-like parameter lies."""
    place = {}
    for a in axes:
        k = rng.choices([L, R, S, P], [70, 12, 13, 5] if len(axes) == 1 else [50, 28, 17, 5])[0]
        if k == S and rank:
            place[a] = (S, rng.randrange(rank), rng.choices(["1", "2", "3"], [8, 1, 1])[0])
        elif k == P:
            place[a] = (P, "sum") if not exact else (L,)
        elif k in (L, R):
            place[a] = (k,)
        else:
            place[a] = (L,)
    return place


def random_init(p, dtype, exact, wide=False, special=True):
    """Script text of an initial value: @T is the type, @I the same of i32, @S and @U are seeds."""
    rng = p.rng
    if dtype == "bool":
        return "bernoulli(@T, p: 0.5, seed: @S)"
    if dtype in INTS:
        low, high = (0, 9) if dtype == "u8" else (-5, 6)
        if exact:
            low, high = (0, 2) if dtype == "u8" else (-1, 2)
        elif wide and rng.random() < 0.2:
            low, high = (0, 255) if dtype == "u8" else (-100, 100)
        return f"randint(@T, low: {low}, high: {high}, seed: @S)"
    if exact and special:
        return f"{dtype}(randint(@I, low: -1, high: 2, seed: @S))"
    return rng.choices(["randn(@T, seed: @S)", f"{dtype}(randint(@I, low: -4, high: 5, seed: @S))",
                        "randn(@T, seed: @S) * 1000", "special(randn(@T, seed: @S), rand(@T, seed: @U))"],
                       [60, 25 if special else 0, 8, 7 if special else 0])[0]


def add(p, name, dtype, dims, place, init=None, **rest):
    p.params.append(Param(name, dtype, list(dims), dict(place), init or random_init(p, dtype, p.exact, True, P not in [q[0] for q in place.values()]), **rest))


def new_dim(p, name, sizes=SIZES):
    size = p.rng.choice(sizes)
    if p.rng.random() < 0.5 and name not in p.syms and size > 1:
        p.syms[name] = size
        return name
    return str(size)


def dtype_of_program(rng):
    return rng.choices(FLOATS + ("i32", "i64", "i8", "u8", "i16", "bool"),
                       [10, 42, 10, 8, 8, 5, 5, 4, 4, 4])[0]


def make_params(p):
    rng, axes = p.rng, p.axes
    p.main = dt = dtype_of_program(rng) if not p.exact else rng.choices(("f32", "f64", "f16", "bf16", "i32"),
                                                                         [60, 10, 12, 10, 8])[0]
    none = {a: (R,) for a in axes}
    kind = rng.random()
    if kind < 0.15:
        p.kind = "bundle"
        shapes = [[rng.choice(SIZES) for _ in range(rng.choice([0, 1, 1, 2]))] for _ in range(rng.choice([1, 2, 3, 4]))]
        if p.main == "bool":
            p.main = dt = "f32"
        local = {a: (L,) if i == 0 or rng.random() < 0.3 else (R,) for i, a in enumerate(axes)}
        add(p, "g", dt, [], local, bundle=shapes)
        for k in range(rng.choice([1, 2, 3])):
            add(p, f"w{k}", dt, [], none, bundle=shapes)
        add(p, "lr", dt, [], none)
        add(p, "step", "i32", [], none, init="3")
        return
    p.kind = "on" if kind < 0.31 else "repeat" if kind < 0.39 else "plain"
    rank = rng.choices([1, 2, 3], [45, 40, 15])[0]
    sizes = SIZES if rank < 3 else [1, 2, 3, 4, 5, 7, 8]
    if rank == 1 and rng.random() < 0.05:
        sizes = [1031, 2053]
    dims = [new_dim(p, n, sizes) for n in ("N", "M", "H")[:rank]]
    if rank == 1 and rng.random() < 0.25:
        dims = ["24"]
    add(p, "g", dt, dims, main_place(rng, axes, rank, p.exact))
    for k in range(rng.choice([1, 2, 2, 3])):
        place = none if rng.random() < 0.8 else {a: q if q[0] == S else (R,) for a, q in p.params[0].place.items()}
        add(p, f"w{k}", dt, dims, place)
    if rank > 1 and rng.random() < 0.6:
        add(p, "b", dt, dims[1:], none)
    if rank > 1 and rng.random() < 0.25:
        add(p, "c", dt, dims[:-1] + ["1"], none)
    if rng.random() < 0.5:
        add(p, "lr", dt, [], none)
    add(p, "step", "i32", [], none, init="3")
    if dt in FLOATS and rng.random() < 0.3:  # the tail of a tensor-parallel layer
        k = new_dim(p, "K", [1, 2, 3, 5, 7, 8, 9])
        a = rng.choice(axes)
        cut = rng.random() < 0.8
        x = {b: (S, rank - 1 if rank > 1 else 1, "1") if b == a and cut else (R,) for b in axes}
        y = {b: (S, 0, "1") if b == a and cut else (R,) for b in axes}
        rows = dims[:-1] if rank > 1 else ["3"]
        x = {b: (S, len(rows), "1") if q[0] == S else q for b, q in x.items()}
        add(p, "x", dt, rows + [k], x)
        add(p, "y", dt, [k, dims[-1]], y)
    if rng.random() < 0.5:
        place = {a: rng.choices([(R,), (L,)], [4, 1])[0] for a in axes}
        if rng.random() < 0.2:
            place[axes[-1]] = (S, 0, "1")
        bound = rng.choice(dims)
        high = p.value(bound)
        add(p, "idx", rng.choice(["i32", "i64"]), [new_dim(p, "J", [1, 2, 3, 5, 7, 8]) if rng.random() < 0.6 else dims[0]],
            place, init=f"randint(@T, low: 0, high: {high}, seed: @S)", high=bound)
    if p.kind == "on" or rng.random() < 0.15:
        a = rng.choice(axes)
        coord = rng.choices([0, 1], [4, 1])[0]
        need(p, a, coord)
        add(p, "q", dt, dims, {b: (A, coord) if b == a else (R,) for b in axes})
    if rng.random() < 0.3:
        other = rng.choice(DTYPES)
        add(p, "o", other, dims, {a: rng.choices([(R,), (L,)], [3, 1])[0] for a in axes})
    if rng.random() < 0.06 and dt in FLOATS:
        add(p, "img", dt, ["2", "3", "5", "4"], none)
        add(p, "ker", dt, ["2", "3", "3", "1"], none)


def need(p, axis, coord):
    p.least[axis] = max(p.least.get(axis, 1), coord + 1)


# ---- statements ------------------------------------------------------------------------------------------------------

def is_float(t):
    return t.dtype in FLOATS


def is_num(t):
    return t.dtype != "bool"


def owes(t):
    return P in t.kinds()


def plain(t):
    return not t.bundle


def meet(x, y, owed=False):
    """Whether the placements can stand side by side, roughly."""
    if x.bundle or y.bundle:
        if x.bundle != y.bundle and not (x.bundle and not y.dims) and not (y.bundle and not x.dims):
            if {x.bundle, y.bundle} != {"tensors", "scalars"}:
                return False
    for a in set(x.place) | set(y.place):
        p, q = x.place.get(a, (R,)), y.place.get(a, (R,))
        if p[0] == P or q[0] == P:
            if not owed or p != q:
                return False
        elif p[0] == R or q[0] == R:
            continue
        elif p[0] != q[0] or (p[0] == A and p != q):
            return False
        elif p[0] == S and (p[1] - len(x.dims), p[2]) != (q[1] - len(y.dims), q[2]):
            return False
    return True


def shapes_meet(x, y):
    if x.bundle or y.bundle:
        return True
    return all(a == b or "1" in (a, b) for a, b in zip(reversed(x.dims), reversed(y.dims)))


def literal(p, dtype, positive=False):
    rng = p.rng
    if dtype == "bool":
        return rng.choice(["true", "false"])
    if dtype in INTS:
        return rng.choice(["1", "2", "3"] if positive or dtype == "u8" else ["1", "2", "3", "-2", "7"])
    if p.exact:
        return "1.0" if positive else rng.choice(["1.0", "-1.0", "0.5"])
    if rng.random() < 0.06:
        return f"size({rng.choice(p.axes)})"
    return rng.choice(["0.5", "2.0", "3.0", "1.5"] + ([] if positive else ["-1.0", "0.1", "-0.25", "1e-3"]))


def second(p, name, owed=False, literals=0.3, positive=False):
    """Another operand for an elementwise op on `name`."""
    x = p.types[name]
    if p.rng.random() > literals:
        y = p.pick(lambda t: t.dtype == x.dtype and shapes_meet(x, t) and meet(x, t, owed))
        if y:
            return y
    return literal(p, x.dtype, positive)


def names_in(text):
    return [w for w in re.findall(r"[A-Za-z_]\w*", text)]


def statement(p, op, expr, extra=()):
    known = set(p.bound())
    uses = [w for w in dict.fromkeys(names_in(expr)) if w in known]
    name = p.fresh()
    return Statement([f"{name} = {expr}"], [name], uses, [op, *extra])


def dims_arg(p, t, most=None):
    """"dims: [..], keep: true" or nothing."""
    rng = p.rng
    n = len(t.dims)
    text = ""
    if n and rng.random() < 0.65:
        k = rng.randint(1, n)
        ds = rng.sample(range(n), k)
        text = f", dims: [{', '.join(str(d - n if rng.random() < 0.3 else d) for d in ds)}]"
    if rng.random() < 0.35:
        text += ", keep: true"
    return text


def over(p, axis):
    return f", over: {axis}" if len(p.axes) > 1 or p.rng.random() < 0.2 else ""


def redop(p, t, where_from):
    """An operator that can pay what t owes."""
    if where_from[0] == P:
        o = where_from[1]
        return "avg" if o == "sum" and t.dtype in FLOATS and p.rng.random() < 0.25 else o
    if t.dtype == "bool":
        return p.rng.choice(["max", "min"])
    return p.rng.choices(["sum", "avg", "max", "min", "prod"],
                         [60, 15 if t.dtype in FLOATS and not p.exact else 0, 8, 8, 4])[0]


def propose_collective(p, op):
    rng = p.rng
    axis = rng.choice(p.axes)
    takes = {"allreduce": (L, P), "reducescatter": (L, P), "reduce": (L, P), "allgather": (S,), "gather": (S,),
             "alltoall": (S, L), "broadcast": (L, A), "scatter": (A,), "shift": (L, A), "permute": (L, A),
             "slice": (R,), "local": (R, P)}[op]
    fits = lambda t: t.kind(axis) in takes and (t.dims or op not in ("slice", "reducescatter", "scatter", "alltoall"))
    x = p.pick(fits)
    if not x:
        return None
    t = p.types[x]
    place = t.place.get(axis, (R,))
    rank = len(t.dims)
    ov = over(p, axis)
    if op in ("allreduce", "reducescatter", "reduce"):
        o = redop(p, t, place)
        rest = ""
        if len(p.axes) == 2 and op != "reduce" and rng.random() < 0.2 and all(t.kind(a) in takes for a in p.axes):
            ov = ", over: [dp, tp]"
        if op == "reducescatter":
            rest = f", dim: {rng.randrange(rank)}" if rng.random() < 0.7 else ""
            if rng.random() < 0.2:
                rest += f", unit: {rng.choice([2, 3])}"
        if op == "reduce":
            rest = f", root: {coordinate(p, axis)}"
        return statement(p, op, f"{op}({o}, {x}{rest}{ov})")
    if op == "allgather":
        return statement(p, op, f"allgather({x}{ov})")
    if op == "gather":
        return statement(p, op, f"gather({x}, root: {coordinate(p, axis)}{ov})")
    if op == "alltoall":
        if place[0] == S:
            if rank < 2:
                return None
            to = rng.choice([d for d in range(rank) if d != place[1]])
            return statement(p, op, f"alltoall({x}, from: {place[1]}, to: {to}{ov})")
        good = [d for d in range(rank) if p.value(t.dims[d]) % 24 == 0] if plain(t) else []
        if not good:
            return None
        return statement(p, op, f"alltoall({x}, dim: {rng.choice(good)}{ov})")
    if op == "broadcast":
        root = place[1] if place[0] == A else coordinate(p, axis)
        s = statement(p, op, f"broadcast({x}, root: {root}{ov})")
        if place[0] == L and is_num(t) and not t.bundle and rng.random() < 0.5:  # beside what each rank has of its own
            name = p.fresh()
            s.lines.append(f"{name} = {s.binds[0]} - {x}")
            s.binds.append(name)
            s.ops.append("sub")
        return s
    if op == "scatter":
        return statement(p, op, f"scatter({x}, dim: {rng.randrange(rank)}, root: {place[1]}{ov})")
    if op == "shift":
        fill = ", fill: 0" if place[0] == L and t.dtype != "bool" and rng.random() < 0.35 else ""
        by = rng.choice([1, 1, -1, 2])
        if place[0] == A:  # the coordinate it goes to must be known
            by = 0 if rng.random() < 0.5 else 1
            if place[1] + by > 1:
                by = 0
            need(p, axis, place[1] + by)
        return statement(p, op, f"shift({x}, by: {by}{fill}{ov})")
    if op == "permute":
        if place[0] == A:
            to = rng.choice([0, 1])
            need(p, axis, max(place[1], to))
            return statement(p, op, f"permute({x}, pairs: [({place[1]}, {to})], fill: 0{ov})")
        if rng.random() < 0.3 and t.dtype != "bool":
            p.size_is[axis] = 2
            return statement(p, op, f"permute({x}, pairs: [(0, 1), (1, 0)]{ov})")
        if t.dtype == "bool":
            return None
        return statement(p, op, f"permute({x}, pairs: [(0, 0)], fill: 0{ov})")
    if op == "slice":
        d = rng.randrange(rank)
        unit = f", unit: {rng.choice([2, 3])}" if rng.random() < 0.15 else ""
        return statement(p, op, f"slice({x}, dim: {d}{unit}{ov})")
    return statement(p, op, f"local({x}{ov})")


def coordinate(p, axis):
    c = p.rng.choices([0, 1], [5, 1])[0]
    need(p, axis, c)
    return c


def maker_type(p, dtypes, places=True):
    rng = p.rng
    base = p.rng.choice([q for q in p.params if not q.bundle])
    place = {}
    if places:
        for a in p.axes:
            r = rng.random()
            if r < 0.15:
                place[a] = (L,)
            elif r < 0.25 and base.dims:
                place[a] = (S, rng.randrange(len(base.dims)), "1")
    dtype = p.main if p.main in dtypes and rng.random() < 0.7 else rng.choice(dtypes)
    return f"{dtype}[{', '.join(base.dims)}]{place_text(place)}" if base.dims else f"{dtype}{place_text({a: q for a, q in place.items() if q[0] == L})}"


def on_block(p):
    """A block at one coordinate of an axis, of one to three statements."""
    rng = p.rng
    axis = rng.choice(p.axes)
    q = next((x for x in p.params if x.name == "q"), None)
    coord = coordinate(p, axis)
    if q and rng.random() < 0.7:
        axis, coord = next((a, pl[1]) for a, pl in q.place.items() if pl[0] == A)
    fits = lambda t: t.kind(axis) in (R, L) or t.place.get(axis) == (A, coord)
    x = p.pick(lambda t: fits(t) and plain(t))
    if not x:
        return None
    known, lines, binds, ops, uses = set(p.bound()), [], [], [], []
    now, t = x, p.types[x]
    for _ in range(rng.choice([1, 1, 2, 3])):
        choices = []
        if t.dtype in FLOATS:
            choices += [(u, f"{u}({now})") for u in ("tanh", "exp", "silu", "abs", "sqrt")]
        if t.dtype != "bool":
            choices += [("mul", f"{now} * {literal(p, t.dtype)}"), ("add", f"{now} + {literal(p, t.dtype)}")]
            y = p.pick(lambda s: fits(s) and plain(s) and s.dtype == t.dtype and shapes_meet(t, s) and meet_at(t, s, axis))
            if y:
                choices += [("sub", f"{now} - {y}"), ("maximum", f"maximum({now}, {y})")] * 2
        else:
            choices = [("not", f"not {now}"), ("and", f"{now} and {now}")]
        op, expr = rng.choice(choices)
        name = p.fresh()
        lines.append(f"  {name} = {expr}")
        uses += [w for w in names_in(expr) if w in known]
        binds.append(name)
        ops.append(op)
        now = name
    if q and q.name not in p.updated() and q.place.get(axis) == (A, coord) and rng.random() < 0.5:
        name = p.fresh()
        lines.append(f"  {name} = update({q.name}, {now})")
        uses.append(q.name)
        binds.append(name)
        ops.append("update")
    return Statement([f"on {axis}: {coord} {{", *lines, "}"], binds, list(dict.fromkeys(uses)), ops)


def meet_at(x, y, axis):
    keep = lambda t: Type(t.dtype, t.dims, t.bundle, {a: q for a, q in t.place.items() if a != axis})
    return meet(keep(x), keep(y))


def repeat_block(p):
    x = p.pick(lambda t: plain(t) and t.dtype in FLOATS and not owes(t))
    if not x:
        return None
    h = p.fresh()
    y = second(p, x, literals=0.2)
    expr = p.rng.choice([f"{h} * 0.5 + {y}", f"tanh({h} + {y})", f"maximum({h} * 0.5, {y})"])
    ops = {"t": ["tanh", "add"], "m": ["mul", "maximum"], h[0]: ["mul", "add"]}[expr[0]]
    uses = [w for w in dict.fromkeys([x] + names_in(y)) if w in set(p.bound())]
    return Statement([f"{h} = {x}", f"repeat {p.rng.choice([1, 2, 3])} {{ {h} = {expr} }}"], [h], uses, ops)


def propose(p, op):
    """A statement with this op, or None where nothing fits."""
    rng = p.rng
    calm = (lambda t: True) if op in OWED_PASS else (lambda t: not owes(t))
    only_bundles = p.kind == "bundle"
    if only_bundles and op not in BUNDLE_OPS:
        return None
    if op in COLLECTIVES:
        return propose_collective(p, op)
    if op in UNARY_FLOAT or op in UNARY_NUM:
        x = p.pick(lambda t: (is_float(t) if op in UNARY_FLOAT else is_num(t)) and calm(t)
                   and not (op in NO_F64 and t.dtype == "f64"))
        return x and statement(p, op, f"-{x}" if op == "neg" else f"{op}({x})")
    if op == "not":
        x = p.pick(lambda t: t.dtype == "bool" and calm(t))
        return x and statement(p, op, f"not {x}")
    if op in BINARY:
        fits = {"div": is_float, "pow": is_float, "and": lambda t: t.dtype == "bool", "or": lambda t: t.dtype == "bool",
                "lt": lambda t: True, "le": lambda t: True, "gt": lambda t: True, "ge": lambda t: True,
                "eq": lambda t: True, "ne": lambda t: True}.get(op, is_num)
        x = p.pick(lambda t: fits(t) and calm(t) and not (op in NO_F64 and t.dtype == "f64"))
        if not x:
            return None
        t = p.types[x]
        owed = op in ("add", "sub") and owes(t)
        if op in ("floordiv", "mod") and t.dtype in INTS:  # a divisor of 0 is an error
            y = literal(p, t.dtype, True)
        elif op == "pow":
            y = second(p, x, literals=0.7, positive=True)
        else:
            y = second(p, x, owed, literals=0.0 if owed else 0.3)
        if owed and y not in p.types:
            return None
        a, b = (x, y) if op in ("floordiv", "mod", "pow") or rng.random() < 0.75 else (y, x)
        return statement(p, op, f"{a} {BINARY[op]} {b}")
    if op in ("maximum", "minimum"):
        x = p.pick(lambda t: not owes(t) or any(q[0] == P and q[1] == op[:3] for q in t.place.values()))
        return x and statement(p, op, f"{op}({x}, {second(p, x)})")
    if op == "where":
        c = p.pick(lambda t: t.dtype == "bool" and not owes(t))
        if not c:
            return None
        ct = p.types[c]
        x = p.pick(lambda t: shapes_meet(ct, t) and meet(ct, t))
        return x and statement(p, op, f"where({c}, {x}, {second(p, x, owes(p.types[x]), 0.0 if owes(p.types[x]) else 0.3)})")
    if op == "cast":
        x = p.pick(lambda t: not owes(t) or is_float(t))
        if not x:
            return None
        to = p.main if p.types[x].dtype != p.main and rng.random() < 0.6 else rng.choice(DTYPES)
        return None if to == p.types[x].dtype else statement(p, op, f"{to}({x})")
    if op == "clamp":
        x = p.pick(lambda t: calm(t) and is_num(t))
        return x and statement(p, op, f"clamp({x}, 1, 3)")
    if op == "dropout":
        x = p.pick(lambda t: is_float(t) and calm(t))
        step = "step" if any(q.name == "step" for q in p.params) else "2"
        return x and statement(p, op, f"dropout({x}, {rng.choice(['0.1', '0.5'])}, seed: {rng.randrange(99)}, step: {step})")
    if op in ("sum", "prod", "max", "min", "any", "all", "mean", "norm"):
        fits = {"any": lambda t: t.dtype == "bool", "all": lambda t: t.dtype == "bool", "mean": is_float,
                "norm": is_float, "sum": is_num, "prod": is_num}.get(op, lambda t: True)
        owing = lambda t: all(q[0] != P or q[1] == {"mean": "sum", "any": "max", "all": "min"}.get(op, op)
                              for q in t.place.values())
        x = p.pick(lambda t: fits(t) and owing(t) and (t.dims or not only_bundles))
        if not x:
            return None
        t = p.types[x]
        if t.bundle == "tensors":
            return statement(p, op, f"{op}({x}{rng.choice(['', ', per: tensor', ', per: tensor'])})")
        return None if t.bundle else statement(p, op, f"{op}({x}{dims_arg(p, t)})")
    if op in ("softmax", "logsumexp", "argmax", "layernorm", "rmsnorm"):
        x = p.pick(lambda t: t.dims and calm(t) and (is_float(t) or op == "argmax"))
        if not x:
            return None
        rank = len(p.types[x].dims)
        arg = f", dim: {rng.randrange(rank)}" if op in ("softmax", "logsumexp", "argmax") and rng.random() < 0.6 else ""
        return statement(p, op, f"{op}({x}{arg})")
    if op == "dot":
        x = p.pick(lambda t: is_num(t) and calm(t))
        y = x and p.pick(lambda t: t.dtype == p.types[x].dtype and t.dims == p.types[x].dims and meet(t, p.types[x]))
        return statement(p, op, f"dot({x}, {y})") if y else None
    if op == "matmul":
        names = {q.name for q in p.params}
        if "x" in names and rng.random() < 0.6:
            return statement(p, op, "matmul(x, y)")
        x = p.pick(lambda t: is_float(t) and len(t.dims) >= 2)
        if not x:
            return None
        t = p.types[x]
        if x in p.hot() and rng.random() < 0.4:  # both sides cut along what is added up, when x is cut along its last dim
            return statement(p, op, f"matmul({x}, transpose({x}))", ["transpose"])
        y = p.pick(lambda s: s.dtype == t.dtype and len(s.dims) == 2 and s.dims[-2] == t.dims[-1])
        if y:
            return statement(p, op, f"matmul({x}, {y})")
        y = p.pick(lambda s: s.dtype == t.dtype and len(s.dims) == 2 and s.dims[-1] == t.dims[-1])
        return statement(p, op, f"matmul({x}, transpose({y}))", ["transpose"]) if y else None
    if op == "conv2d":
        return statement(p, op, "conv2d(img, ker)") if any(q.name == "img" for q in p.params) else None
    if op == "transpose":
        x = p.pick(lambda t: len(t.dims) >= 2 and plain(t))
        if not x:
            return None
        rank = len(p.types[x].dims)
        order = list(range(rank))
        rng.shuffle(order)
        return statement(p, op, f"transpose({x}{'' if rng.random() < 0.6 else f', order: {order}'})")
    if op == "reshape":
        x = p.pick(lambda t: t.dims and plain(t) and len(t.dims) < 6)
        if not x:
            return None
        dims = list(p.types[x].dims)
        how = rng.random()
        if how < 0.35:
            dims.insert(rng.randrange(len(dims) + 1), "1")
        elif how < 0.7 and len(dims) > 1:
            i = rng.randrange(len(dims) - 1)
            dims[i:i + 2] = [f"({dims[i]})*({dims[i + 1]})" if not (dims[i] + dims[i + 1]).isdigit()
                             else str(int(dims[i]) * int(dims[i + 1]))]
        else:
            i = rng.randrange(len(dims))
            if dims[i].isdigit():
                v = int(dims[i])
                f = next((k for k in (2, 3, 5, 7) if v % k == 0), None)
                if not f:
                    return None
                dims[i:i + 1] = rng.choice([[str(f), str(v // f)], [str(v // f), str(f)]])
            else:
                dims.insert(i, "1")
        return statement(p, op, f"reshape({x}, [{', '.join(dims)}])")
    if op == "concat":
        x = p.pick(lambda t: t.dims and plain(t) and len(t.dims) < 4)
        if not x:
            return None
        t = p.types[x]
        y = p.pick(lambda s: s.dtype == t.dtype and s.dims == t.dims and meet(t, s, True))
        d = rng.randrange(len(t.dims))
        return statement(p, op, f"concat([{x}, {y or x}], dim: {d})")
    if op == "index":
        x = p.pick(lambda t: t.dims and plain(t))
        if not x:
            return None
        t = p.types[x]
        items = []
        for d in t.dims[:rng.randint(1, len(t.dims))]:
            v = p.value(d)
            r = rng.random()
            if r < 0.4 or v < 2:
                items.append("0" if r < 0.1 and v > 0 else ":")
            elif r < 0.6:
                items.append(str(rng.choice([0, 1, -1])))
            else:
                a = rng.randrange(min(v, 4))
                items.append(f"{a}:" if rng.random() < 0.5 else f"{a}:{rng.randint(a + 1, v)}" if d.isdigit() else "1:")
        if all(i == ":" for i in items):
            return None
        return statement(p, op, f"{x}[{', '.join('0:' if i == ':' else i for i in items)}]")
    if op == "take":
        idx = next((q for q in p.params if q.name == "idx"), None)
        if not idx:
            return None
        x = p.pick(lambda t: plain(t) and idx.high in t.dims)
        if not x:
            return None
        ds = [i for i, d in enumerate(p.types[x].dims) if d == idx.high]
        return statement(p, op, f"take({x}, idx, dim: {rng.choice(ds)})")
    if op == "scatter_add":
        idx = next((q for q in p.params if q.name == "idx"), None)
        if not idx:
            return None
        v = p.pick(lambda t: plain(t) and is_num(t) and t.dims and t.dims[0] == idx.dims[0])
        return v and statement(p, op, f"scatter_add([{', '.join([idx.high, *p.types[v].dims[1:]])}], idx, {v})")
    if op == "one_hot":
        x = p.pick(lambda t: plain(t) and t.dtype in INTS and not owes(t) and len(t.dims) < 3)
        as_ = f", as: {p.main}" if rng.random() < 0.6 else ""
        n = rng.choice([1, 3, 5])
        return x and statement(p, op, f"one_hot(clamp({x}, 0, {n - 1}), {n}{as_})", ["clamp"])
    if op == "full":
        t = maker_type(p, DTYPES)
        return statement(p, op, f"full({t}, {'true' if t.startswith('bool') else '2'})")
    if op == "iota":
        return statement(p, op, f"iota({maker_type(p, [d for d in DTYPES if d != 'bool'])})")
    if op in ("randn", "rand"):
        return statement(p, op, f"{op}({maker_type(p, FLOATS)}, seed: {rng.randrange(99)})")
    if op == "randint":
        return statement(p, op, f"randint({maker_type(p, INTS)}, low: 0, high: 7, seed: {rng.randrange(99)})")
    if op == "bernoulli":
        return statement(p, op, f"bernoulli({maker_type(p, ['bool'])}, p: 0.4, seed: {rng.randrange(99)})")
    if op == "rank":
        return statement(p, op, f"rank({rng.choice(p.axes)})")
    if op == "update":
        done = p.updated()
        params = [q for q in p.params if q.name not in done and q.name not in ("idx", "step", "g")]
        if not params:
            return None
        q = rng.choice(params)
        t = p.types[q.name]
        e = p.pick(lambda s: s.dtype == t.dtype and s.dims == t.dims and s.bundle == t.bundle and s.place == t.place)
        if not e:
            return None
        how = rng.random()
        if how < 0.4 and t.dtype in FLOATS and e != q.name:
            return statement(p, op, f"update({q.name}, {q.name} - {literal(p, t.dtype)} * {e})", ["sub", "mul"])
        if how < 0.6 and t.dtype != "bool" and e != q.name:
            s = statement(p, op, f"update({q.name}, {q.name} + {e})", ["add"])
            if len(t.dims) > 1 and all(t.kind(a) == R for a in p.axes) and rng.random() < 0.5:  # and cut by itself
                name = p.fresh()
                s.lines.insert(0, f"{name} = slice({q.name}, dim: {rng.randrange(len(t.dims))}{over(p, p.axes[0])})")
                s.binds.append(name)
                s.ops.append("slice")
            return s
        return None if e == q.name else statement(p, op, f"update({q.name}, {e})")
    raise KeyError(op)


OPS = (UNARY_FLOAT + UNARY_NUM + list(BINARY) + ["maximum", "minimum", "where", "cast", "dropout", "sum", "prod", "max",
       "min", "any", "all", "mean", "norm", "dot", "softmax", "logsumexp", "argmax", "layernorm", "rmsnorm", "clamp",
       "not", "matmul", "conv2d", "transpose", "reshape", "concat", "index", "take", "scatter_add", "one_hot", "full",
       "iota", "randn", "rand", "randint", "bernoulli", "rank", "update"] + COLLECTIVES)


def grow(p, count):
    """Proposes up to `count` statements on the values whose types are known."""
    rng = p.rng
    new = []
    room = MOST_OPS - p.ops()
    has = {o for s in p.body for o in s.ops}
    for _ in range(count):
        if room <= 0:
            break
        s = None
        r = rng.random()
        if p.kind == "on" and not any(s.lines[0].startswith("on ") for s in p.body) and r < 0.5:
            s = on_block(p)
        elif p.kind == "repeat" and not any("repeat" in " ".join(s.lines) for s in p.body) and r < 0.4:
            s = repeat_block(p)
        elif "allreduce" not in has and r < 0.75:
            s = propose(p, "allreduce")
        elif "allreduce" in has and r < 0.14:
            s = propose(p, "update")
        for _ in range(12):
            if s:
                break
            op = rng.choices(OPS, [p.quota.weight(o) for o in OPS])[0]
            s = propose(p, op)
        if s and len(s.ops) <= room:
            room -= len(s.ops)
            new.append(s)
            has.update(s.ops)
            p.body.append(s)
    return new


RARE = {"conv2d": 0.3, "alltoall": 4, "allgather": 3, "scatter": 4, "gather": 3, "take": 3, "scatter_add": 2, "matmul": 4,
        "not": 2, "and": 2, "any": 2, "all": 2}


class Quota:
    """How often each op was used: rare ones are proposed more."""

    def __init__(self):
        self.used, self.graphs = {}, 0

    def weight(self, op):
        base = 4 if op in ("mul", "add", "sub") else 1
        base *= RARE.get(op, 1)
        return base / (1 + 60 * self.used.get(op, 0) / max(25, self.graphs)) + (0.1 if base == 4 else 0)

    def count(self, ops):
        self.graphs += 1
        for o in set(ops):
            self.used[o] = self.used.get(o, 0) + 1

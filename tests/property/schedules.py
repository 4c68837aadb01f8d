# schedules.py: random schedules. Statements are proposed on the graph as it stands; what `ccn` refuses is dropped and
# counted, what it accepts stays.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re

import generate
from model import FLOATS, algorithms_of

STATEMENTS = ("split", "reorder", "fuse", "overlap", "shard", "dead", "algorithm", "fast", "chunks")
CHEAP = ("add", "sub", "neg", "mul", "abs", "relu", "maximum", "minimum", "where", "cast", "clamp", "const", "param",
         "local", "slice", "transpose", "reshape", "index", "concat", "allgather", "broadcast", "shift", "permute")


ALGORITHMS = algorithms_of(pathlib.Path(__file__).resolve().parents[2] / "passes" / "algorithms.def")
SMOOTH = ("add", "sub", "neg", "mul", "update", "allgather", "broadcast", "reducescatter", "allreduce", "shift", "slice",
          "local", "transpose", "reshape", "index", "concat", "sum", "const", "where", "maximum", "minimum", "relu", "abs")


MOVES = set(generate.UNARY_FLOAT + generate.UNARY_NUM + list(generate.BINARY)) | {
    "maximum", "minimum", "where", "cast", "not", "one_hot", "dropout", "sum", "prod", "max", "min", "any", "all", "shift",
    "update"}


class Step:
    """One statement; `gives`: names it binds; `needs`: names of earlier steps that it uses."""

    def __init__(self, kind, text, gives=(), needs=(), exact=True, note=""):
        self.kind, self.text, self.gives, self.needs, self.exact, self.note = kind, text, gives, needs, exact, note

    def line(self):
        g = self.gives
        left = "" if not g else f"{g[0]} = " if len(g) == 1 else f"({', '.join(g)}) = "
        return left + self.text


class Maker:
    """Proposes statements for one program; keeps what the handles of accepted statements are called."""

    def __init__(self, program):
        self.p, self.rng, self.n = program, program.rng, 0
        self.pairs = []  # (rs, ag) of splits not yet used
        self.runs = []   # (rs or None, c, gs)
        self.kernels = []
        self.done = set()
        self.gone = set()    # names of nodes that a statement consumed

    def names(self, *stems):
        self.n += 1
        return [f"{s}{self.n}" for s in stems]

    def accepted(self, step):
        """After `ccn` took it."""
        if step.kind in ("split", "reorder", "fuse", "overlap", "dead"):
            self.gone.update(n.label() for n in self.p.before.nodes if n.op != "param" and n.label()
                             and re.search(rf"(?<![\w.]){re.escape(n.label())}(?![\w.])", step.text))
            self.gone.update(step.needs)
        if step.kind == "split":
            self.pairs.append(tuple(step.gives))
        elif step.kind == "reorder":
            rs = next((r for r, a in self.pairs if a in step.needs), None)
            self.pairs = [x for x in self.pairs if x[1] not in step.needs]
            self.runs.append((rs, *step.gives))
        elif step.kind == "fuse" and step.gives:
            self.kernels.append(step.gives[0])

    def open_runs(self):
        return [x for x in self.runs if not any(w in self.gone for w in x if w)] if self.rng.random() < 0.95 else self.runs

    # -- proposals: lists of steps --

    def template(self, g, reduces):
        """CoCoNeT's own: split, reorder, shard, fuse, overlap."""
        rng = self.rng
        x = rng.choice([n for n in reduces if g.readers[n.id]] or reduces)
        rs, ag = self.names("rs", "ag")
        steps = [Step("split", f"split({x.label()}{self.split_args(x)})", (rs, ag))]
        if rng.random() < 0.87 and g.readers[x.id]:
            c, gs = self.names("c", "gs")
            steps.append(Step("reorder", f"reorder(after({ag}), {ag})", (c, gs), (ag,)))
            if rng.random() < 0.5:
                steps.append(Step("shard", f"shard(updated({c}))", (), (c,), note="maybe"))
            r = rng.random()
            if r < 0.35:
                steps.append(Step("fuse", f"fuse({rs}, {c}, {gs})", tuple(self.names("f")), (rs, c, gs)))
                f = steps[-1].gives[0]
                before = [n for n in (g.by_id[i] for i in x.ins) if n.op in ("matmul", "mul", "add", "sub") and n.label()]
                if before and rng.random() < 0.6:
                    steps.append(Step("overlap", f"overlap({before[0].label()}, {f})", (), (f,)))
            elif r < 0.6:
                steps.append(Step("overlap", f"overlap({rs}, {c}, {gs})", (), (rs, c, gs)))
            elif r < 0.75:
                steps.append(Step("fuse", f"fuse({rs}, {c})", tuple(self.names("f")), (rs, c)))
        elif rng.random() < 0.5:
            steps.append(Step("overlap", f"overlap({rs}, {ag})", (), (rs, ag)))
        else:
            steps.append(Step("fuse", f"fuse({rs}, {ag})", tuple(self.names("f")), (rs, ag)))
        return steps

    def split_args(self, x):
        rng, rank = self.rng, len(x.type.dims)
        r = rng.random()
        if r < 0.25:
            axes = x.attr("over") or ""
            root = rng.choices([0, 1], [6, 1])[0]
            if root:
                for a in self.p.axes:
                    if a in axes:
                        generate.need(self.p, a, root)
            return ", into: reduce_broadcast" + (f", root: {root}" if root or rng.random() < 0.3 else "")
        text = ""
        if rank and rng.random() < 0.65:
            text = f", dim: {rng.randrange(-rank, rank)}"
        if rng.random() < 0.18:
            text += f", unit: {rng.choice([2, 3, 5])}"
        return text

    def split(self, g):
        xs = [n for n in g.nodes if n.op == "allreduce" and n.label() and n.label() not in self.gone and n.region is None]
        if self.rng.random() < 0.08:
            xs = self.some_ops(g)
        if not xs:
            return None
        x = self.rng.choice(xs)
        return [Step("split", f"split({x.label()}{self.split_args(x)})", tuple(self.names("rs", "ag")))]

    def reorder(self, g):
        rng = self.rng
        gathers = [n for n in g.nodes if n.op in ("allgather", "broadcast") and n.label() and n.label() not in self.gone
                   and n.region is None]
        if rng.random() < 0.03:
            gathers = self.some_ops(g)
        if not gathers:
            return None
        x = rng.choice(gathers)
        after = [g.by_id[i] for i in sorted(g.after([x.id]))]
        after = [n for n in after if n.label() and n.label() not in self.gone
                 and n.op not in ("on", "repeat", "param", "const", "enter", "carry", "result")]
        if not after:
            return None
        ag = x.label()
        gives = tuple(self.names("c", "gs"))
        r = rng.random()
        if r < 0.35:
            return [Step("reorder", f"reorder(after({ag}), {ag})", gives)]
        if r < 0.45:
            t = rng.choice(after)
            return [Step("reorder", f"reorder([between({ag}, {t.label()}), {t.label()}], {ag})", gives)]
        chosen, moves = set(), {n.id for n in after if n.op in MOVES}
        ends = after
        if r < 0.8:  # ends that only ops that may move lie before
            ends = [t for t in after if t.id in moves and g.before([t.id]) & g.after([x.id]) <= moves] or after
        for t in rng.sample(ends, rng.randint(1, min(3, len(ends)))):
            chosen.add(t.id)
            if r < 0.9:  # closed: what lies between too
                chosen |= g.before([t.id]) & g.after([x.id])
        labels = [g.by_id[i].label() for i in sorted(chosen)]
        if any(not n for n in labels):
            return None
        return [Step("reorder", f"reorder([{', '.join(labels)}], {ag})", gives)]

    def some_ops(self, g):
        return [n for n in g.nodes if n.label() and n.label() not in self.gone
                and n.op not in ("param", "const", "on", "repeat", "enter", "carry", "result")]

    def crossed(self, g, ops):
        """Two kernels that need each other, though each is convex: refused, or wrong."""
        ids, after = {n.id for n in ops if n.region is None}, {}
        for i in ids:
            after[i] = g.after([i])
        pairs = [(a, b) for x in g.nodes if x.type and x.type.dims and x.op != "const"
                 for a in g.readers[x.id] for b in g.readers[x.id] if a != b and {a, b} <= ids]
        for a1, a2 in pairs:
            for b2, b1 in pairs:
                if b1 in after[a1] and a2 in after[b2] and len({a1, a2, b1, b2}) == 4:
                    return [Step("fuse", f"fuse({', '.join(g.by_id[i].label() for i in k)})", tuple(self.names("f")))
                            for k in ((a1, a2), (b2, b1))]
        return None

    def two_scatters(self, g):
        """One kernel of two reduce-scatters of the same value: refused, or wrong."""
        for x in g.nodes:
            reduces = [g.by_id[i].label() for i in dict.fromkeys(g.readers[x.id])
                       if g.by_id[i].op == "allreduce" and g.by_id[i].type.dims and g.by_id[i].region is None]
            reduces = [r for r in reduces if r and r not in self.gone]
            if len(reduces) < 2:
                continue
            (a, ag), (b, bg) = self.names("rs", "ag"), self.names("rs", "ag")
            return [Step("split", f"split({reduces[0]})", (a, ag)), Step("split", f"split({reduces[1]})", (b, bg)),
                    Step("fuse", f"fuse({a}, {b})", tuple(self.names("f")), (a, b))]
        return None

    def fuse(self, g):
        rng, ops = self.rng, self.some_ops(g)
        if not ops:
            return None
        if rng.random() < 0.3:
            two = self.crossed(g, ops) or self.two_scatters(g)
            if two:
                return two
        gives = tuple(self.names("f"))
        runs = self.open_runs()
        if runs and rng.random() < 0.4:
            rs, c, gs = rng.choice(runs)
            words = [w for w in (rs, c, gs) if w and (w == c or rng.random() < 0.8)]
            return [Step("fuse", f"fuse({', '.join(words)})", gives, tuple(words))]
        ids = {n.id for n in ops}
        chosen = {rng.choice(ops).id}
        if rng.random() < 0.1:  # two that have nothing to do with each other, or have
            chosen.add(rng.choice(ops).id)
        for _ in range(rng.choice([1, 2, 3, 5])):
            near = {j for i in chosen for j in g.by_id[i].ins + g.readers[i] if j in ids} - chosen
            if not near:
                break
            chosen.add(rng.choice(sorted(near)))
        if rng.random() < 0.7:  # convex
            between = g.after(chosen) & g.before(chosen)
            chosen |= between & ids
        return [Step("fuse", f"fuse({', '.join(g.by_id[i].label() for i in sorted(chosen))})", gives)]

    def overlap(self, g):
        rng = self.rng
        runs = self.open_runs()
        if runs and rng.random() < 0.4:
            rs, c, gs = rng.choice(runs)
            words = [w for w in (rs, c, gs) if w]
            return [Step("overlap", f"overlap({', '.join(words)})", (), tuple(words))]
        ops = self.some_ops(g)
        ids = {n.id for n in ops}
        edges = [(i, n.id) for n in ops for i in n.ins if i in ids]
        if not edges:
            return None
        coll = ("reducescatter", "allgather", "allreduce", "shift", "matmul", "broadcast", "reduce", "alltoall")
        good = [e for e in edges if g.by_id[e[0]].op in coll or g.by_id[e[1]].op in coll]
        a, b = rng.choice(good if good and rng.random() < 0.85 else edges)
        words = [g.by_id[a].label(), g.by_id[b].label()]
        if rng.random() < 0.06:
            words = [n.label() for n in rng.sample(ops, 2)]
        if rng.random() < 0.3:
            more = [j for j in g.readers[b] if j in ids]
            if more:
                words.append(g.by_id[rng.choice(more)].label())
        return [Step("overlap", f"overlap({', '.join(words)})")]

    def shard(self, g):
        rng = self.rng
        runs = self.open_runs()
        if runs and rng.random() < 0.4:
            c = rng.choice(runs)[1]
            return [Step("shard", f"shard(updated({c}))", (), (c,), note="maybe")]
        params = [n for n in g.nodes if n.op == "param" and n.label() and n.type.dims]
        sliced = [n for n in params if any(g.by_id[j].op == "slice" for j in g.readers[n.id])]
        if sliced and rng.random() < 0.5:
            params = sliced
        return params and [Step("shard", f"shard({rng.choice(params).label()})")]

    def dead(self, g):
        ops = self.some_ops(g)
        unread = [n for n in ops if not g.read(n.id) and n.op != "update"]
        if unread and self.rng.random() < 0.85:
            return [Step("dead", f"dead({self.rng.choice(unread).label()})")]
        gathers = [n for n in ops if n.op in ("allgather", "broadcast")]
        x = self.rng.choice(gathers or ops) if ops else None
        return x and [Step("dead", f"dead({x.label()})")]

    def chunks(self, g):
        ops = self.some_ops(g)
        return ops and [Step("chunks", f"chunks({self.rng.choice(ops).label()}, {self.rng.choice([1, 2, 3, 4, 7])})")]

    def algorithm(self, g):
        rng = self.rng
        xs = [n for n in self.some_ops(g) if n.op in ("allreduce", "reducescatter", "allgather", "reduce", "broadcast",
                                                      "alltoall", "shift")]
        if not xs:
            return None
        x = rng.choice([n for n in xs if n.op in ("allreduce", "reducescatter", "reduce")] or xs) if rng.random() < 0.6 else rng.choice(xs)
        word = rng.choice([w for w, ops in ALGORITHMS.items() if x.op in ops] + ["library"] if rng.random() < 0.9
                          else list(ALGORITHMS))
        reduces = x.op in ("allreduce", "reducescatter", "reduce") and x.type.dtype in FLOATS
        exact = word == "direct" or not reduces or (x.attr("op") in ("max", "min"))
        if not exact and not self.may_reassociate(g, x):
            return None
        group = f", group: {rng.choice([1, 2, 3])}" if word == "hierarchical" else ""
        return [Step("algorithm", f"algorithm({x.label()}, {word}{group})", exact=exact)]

    def may_reassociate(self, g, x):
        """On exact data: where what is reduced is made of small whole numbers, so that every order gives the same bits.
        On other data: where what is made of it does not magnify errors; then results are compared within a bound."""
        if x.attr("op") not in ("sum", "avg"):
            return False
        if not self.p.exact:
            after = [g.by_id[i] for i in g.after([x.id])]
            smooth = all(n.op in SMOOTH or (n.op == "cast" and n.type.dtype in FLOATS) for n in after)
            if smooth and sum(n.op == "mul" for n in after) <= 2:
                self.p.bounded = True
                return True
            return False
        before = [g.by_id[i] for i in g.before([x.id])]
        return sum(n.op in ("mul", "add", "sub") for n in before) <= 3 and all(
            n.op in CHEAP and (n.op != "cast" or n.type.dtype in FLOATS) for n in before) and len(x.type.dims) <= 3

    def fast(self, g):  # the interpreter computes by definition whatever is allowed: bits stay equal here
        ops = [n for n in self.some_ops(g) if n.op in ("add", "sub", "mul", "neg", "maximum")]
        return ops and [Step("fast", f"fast({self.rng.choice(ops).label()})")]

    def propose(self, g):
        rng = self.rng
        reduces = [n for n in g.nodes if n.op == "allreduce" and n.label() and n.region is None and n.type.dims]
        if reduces and not self.done and rng.random() < 0.8:
            self.done.add("template")
            return self.template(g, reduces)
        unread = any(not g.read(n.id) and n.op not in ("update", "param", "const") for n in g.nodes)
        kinds = {"split": 10, "reorder": 20, "fuse": 14, "overlap": 14, "shard": 16, "dead": 60 if unread else 3, "chunks": 9,
                 "algorithm": 12, "fast": 9}
        for _ in range(6):
            k = rng.choices(list(kinds), list(kinds.values()))[0]
            steps = getattr(self, k)(g)
            if steps:
                return steps
        return []

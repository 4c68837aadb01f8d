# model.py: graph text of `ccn dump` as data: nodes, types, who reads whom; and the rows of lang/ops.def.
# SPDX-License-Identifier: Apache-2.0
import re

FLOATS = ("f64", "f32", "f16", "bf16")
SIGNED = ("i64", "i32", "i16", "i8")
INTS = SIGNED + ("u8",)
DTYPES = FLOATS + INTS + ("bool",)

R, S, L, P, A = "R", "S", "L", "P", "A"

TYPE = re.compile(r"(\[)?(\w+)(\[[^\]]*\])?(\])?(?: of (\d+))?")
PLACE = re.compile(r" (replicated|local|sliced\((\d+)(?:, unit: ([^)]*))?\)|partial\((\w+)\)|at\((-?\d+)\)) over (\w+)")
NODE = re.compile(r'\s*%(\d+)(?: "((?:[^"\\]|\\.)*)")?(?: \((\w+|"[^"]*")\))? = (\w+)((?: %\d+,?)*)(?: \{(.*?)\})?'
                  r'(?: : ([\w\[].*?))?( \{)?$')


class Type:
    """dtype, dims as text, bundle ("" | "tensors" | "scalars"), place of each axis: (kind, dim, unit, op, coord)."""
    __slots__ = ("dtype", "dims", "bundle", "place", "text")

    def __init__(self, dtype, dims, bundle, place, text=""):
        self.dtype, self.dims, self.bundle, self.place, self.text = dtype, dims, bundle, place, text

    def kind(self, axis):
        return self.place.get(axis, (R,))[0]

    def all_replicated(self):
        return all(p[0] == R for p in self.place.values())

    def kinds(self):
        return {p[0] for p in self.place.values()}


def parse_type(text):
    m = TYPE.match(text)
    dims = [d.strip() for d in m[3][1:-1].split(",")] if m[3] else []
    bundle = ""
    if m[1]:
        bundle = "tensors" if m[3] else "scalars"
        dims = ["*"] if m[3] else ["k"]
    place = {}
    for q in PLACE.finditer(text, m.end()):
        word = q[1]
        if word.startswith("sliced"):
            place[q[6]] = (S, int(q[2]), q[3] or "1")
        elif word.startswith("partial"):
            place[q[6]] = (P, q[4])
        elif word.startswith("at"):
            place[q[6]] = (A, int(q[5]))
        elif word == "local":
            place[q[6]] = (L,)
    return Type(m[2], dims, bundle, place, text)


class Node:
    __slots__ = ("id", "name", "auto", "op", "ins", "attrs", "type", "region", "owner")

    def label(self):
        """How a schedule names it; None if it cannot."""
        for n in (self.name, self.auto):
            if n and n not in ("and", "or", "not") and re.fullmatch(r"[A-Za-z_][\w]*(\.[A-Za-z_]\w*|\[\d+\])*", n):
                return n
        return None

    def attr(self, key):
        m = re.search(rf"(?:^|, ){key}: (\[[^\]]*\]|[^,]*)", self.attrs or "")
        return m[1] if m else None


class Graph:
    def __init__(self, name):
        self.name, self.nodes, self.outputs, self.yields, self.text = name, [], [], [], ""

    def finish(self):
        self.by_id = {n.id: n for n in self.nodes}
        self.readers = {n.id: [] for n in self.nodes}
        for n in self.nodes:
            for i in n.ins:
                self.readers[i].append(n.id)
        self.by_name = {}
        for n in self.nodes:
            if n.name:
                self.by_name[n.name] = n
        return self

    def after(self, ids):
        """What depends on them, themselves excluded."""
        start, yes = set(ids), set()
        for n in self.nodes:
            if any(i in yes or i in start for i in n.ins):
                yes.add(n.id)
        return yes

    def before(self, ids):
        yes, todo = set(), list(ids)
        while todo:
            for i in self.by_id[todo.pop()].ins:
                if i not in yes:
                    yes.add(i)
                    todo.append(i)
        return yes

    def read(self, i):
        return bool(self.readers[i]) or i in self.outputs or i in self.yields


def parse_graphs(text):
    """Text of a dump → {name: Graph}."""
    out, g, region, owners = {}, None, [0], {}
    lines = []
    for line in text.splitlines():
        if line.startswith("graph "):
            g, region, lines = Graph(line.split()[1]), [None], [line]
            continue
        if g is None:
            continue
        lines.append(line)
        bare = line.split("  # ")[0]
        word = bare.strip()
        if word.startswith("%"):
            m = NODE.match(bare)
            if not m:
                raise ValueError(f"not a node: {line}")
            n = Node()
            n.id, n.name, n.auto, n.op = int(m[1]), m[2], m[3], m[4]
            n.ins = [int(i) for i in re.findall(r"%(\d+)", m[5] or "")]
            n.attrs = m[6] or ""
            n.type = parse_type(m[7]) if m[7] else None
            n.region = region[-1]
            g.nodes.append(n)
            if m[8]:
                region.append(n.id)
        elif word == "}":
            if len(region) > 1:
                region.pop()
            else:
                g.text = "\n".join(lines) + "\n"
                out[g.name] = g.finish()
                g = None
        elif word.startswith("yield"):
            g.yields += [int(i) for i in re.findall(r"%(\d+)", word)]
        elif word.startswith("return"):
            g.outputs = [int(i) for i in re.findall(r"%(\d+)", word)]
    return out


def ops_of(path):
    """lang/ops.def → {name: kind}."""
    return {m[1]: m[2] for m in re.finditer(r'^OP\(\w+, "(\w+)", (\w+),', path.read_text(), re.M)}


SHORT = {"AR": "allreduce", "RS": "reducescatter", "AG": "allgather", "R": "reduce", "B": "broadcast", "G": "gather",
         "S": "scatter", "A2A": "alltoall"}


def algorithms_of(path):
    """passes/algorithms.def → {word: ops that it carries out}."""
    out = {}
    for m in re.finditer(r'^ALGORITHM\(\w+, "(\w+)", ([\w |]+),', path.read_text(), re.M):
        words = SHORT if m[2] == "ALL" else [w.strip() for w in m[2].split("|")]
        out.setdefault(m[1], set()).update(SHORT[w] for w in words)
    return out

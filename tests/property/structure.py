# structure.py: what the language text promises of scheduled graphs, checked without the passes' own code: kernels, chains,
# shapes of splits, and that reorder refuses nothing that must be legal.
# SPDX-License-Identifier: Apache-2.0
import re

from model import R, S
from schedules import MOVES

REDUCTIONS = {"sum", "prod", "max", "min", "any", "all"}
PLAIN_MOVES = MOVES - REDUCTIONS - {"shift"}
BULK_FIRST, BULK_SECOND = ("reducescatter", "reduce"), ("allgather", "broadcast")


def groups(g, key):
    out = {}
    for n in g.nodes:
        v = n.attr(key)
        if v and v.isdigit():
            out.setdefault(int(v), []).append(n)
    return out


def not_convex(g, ids):
    """An op outside that needs one of them and is needed by another."""
    between = (g.after(ids) & g.before(ids)) - ids
    return next((g.by_id[i] for i in sorted(between)), None)


def show(n):
    return f"%{n.id} {n.name or n.auto} = {n.op}"


def kernel_problem(g, members):
    ids = {n.id for n in members}
    n = not_convex(g, ids)
    if n:
        return f"{show(n)} would have to run in the middle of the kernel"
    first = [n for n in members if n.op in BULK_FIRST]
    second = [n for n in members if n.op in BULK_SECOND]
    shifts = [n for n in members if n.op == "shift"]
    if len(first) > 1:
        return f"two bulk reductions: {show(first[1])}"
    if len(shifts) > 1 or (shifts and (first or second)):
        return f"a shift beside another collective: {show(shifts[-1])}"
    if first and not {n.id for n in second} <= g.after({first[0].id}):
        return "a gather that does not depend on the kernel's reduction"
    if len({n.attr("over") for n in first + second + shifts}) > 1:
        return "collectives over several axes"
    for n in members:
        if n.op == "allreduce" and set(n.type.dims) - {"1"} and n.type.bundle != "scalars":
            return f"an all-reduce of a tensor: {show(n)}"
        if n.op in ("matmul", "conv2d") and any(i in ids for i in n.ins):
            return f"{show(n)} is not a producer"
        if n.op in ("gather", "scatter", "alltoall", "permute"):
            return f"{show(n)} is not part of a kernel"
    for n in g.nodes:
        if n.op == "update" and n.ins[1] in ids and n.id not in ids:
            return f"the store {show(n)} does not come along"
    if len({n.region for n in members}) > 1:
        return "ops of several blocks"
    # connected through values, or through a tensor that several read
    near, seen = {}, set()
    for n in members:
        for i in n.ins:
            x = g.by_id[i]
            if i in ids or (x.op != "const" and x.type and x.type.dims):
                near.setdefault(n.id, set()).add(i)
                near.setdefault(i, set()).add(n.id)
    todo = [members[0].id]
    while todo:
        i = todo.pop()
        if i not in seen:
            seen.add(i)
            todo += near.get(i, ())
    if not ids <= seen:
        return "not connected"
    return None


def order_problem(g, *keys):
    """With every kernel (and chain) as one node, the graph has no cycle."""
    unit = {n.id: next(((k, n.attr(k)) for k in keys if (n.attr(k) or "").isdigit()), n.id) for n in g.nodes}
    needs = {}
    for n in g.nodes:
        needs.setdefault(unit[n.id], set()).update(unit[i] for i in n.ins if unit[i] != unit[n.id])
    again = True
    while again:
        ready = {u for u, x in needs.items() if not x}
        again = bool(ready)
        needs = {u: x - ready for u, x in needs.items() if u not in ready}
    stuck = sorted(u for u in needs if isinstance(u, tuple))
    return f"they need each other: {', '.join(' '.join(u) for u in stuck)}" if stuck else None


def chain_problem(g, members):
    ids = {n.id for n in members}
    n = not_convex(g, ids)
    if n:
        return f"{show(n)} lies between the stages"
    stage = {n.id: int(n.attr("stage") or 0) for n in members}
    last = max(stage.values())
    if last < 1:
        return "one stage"
    feeds = set()
    for n in members:
        for i in n.ins:
            if i in stage:
                if stage[i] > stage[n.id]:
                    return f"{show(n)} reads a later stage"
                if stage[i] + 1 == stage[n.id]:
                    feeds.add(stage[n.id])
    if feeds != set(range(1, last + 1)):
        return "a stage reads nothing of the stage before it"
    return None


def partly(g, key_in, key_of):
    """A kernel of which only a part is in a chain."""
    for k, members in groups(g, key_of).items():
        if len({n.attr(key_in) for n in members}) > 1:
            return f"kernel {k} is only partly in a chain"
    return None


def split_problem(p):
    """A split made what it said: the collective, its dim, its unit."""
    count = lambda g, op: sum(n.op == op for n in g.nodes)
    g, h = p.graph, p.scheduled
    splits = [s for s in p.schedule if s.kind == "split"]
    roots = [s for s in splits if "reduce_broadcast" in s.text]
    if count(h, "reduce") != count(g, "reduce") + len(roots):
        return "a split into reduce and broadcast made no reduce"
    if count(h, "reducescatter") != count(g, "reducescatter") + len(splits) - len(roots):
        return "a split made no reduce-scatter"
    for s in splits:
        x = re.match(r"split\(([\w.\[\]]+)", s.text)[1]
        n = next((n for n in h.nodes if n.name == f"{x}.{'reduce' if s in roots else 'rs'}"), None)
        if not n:
            continue
        dim, unit, root = (re.search(rf"{w}: (-?\d+)", s.text) for w in ("dim", "unit", "root"))
        want = int(dim[1]) if dim else 0
        if s in roots:
            if n.op != "reduce" or n.attr("root") != (root[1] if root else "0"):
                return f"{s.text} made {show(n)} with root {n.attr('root')}"
        elif n.op != "reducescatter" or int(n.attr("dim")) != want % max(1, len(n.type.dims)) \
                or (n.attr("unit") or "1") != (unit[1] if unit else "1"):
            return f"{s.text} made {show(n)} along dim {n.attr('dim')}, unit {n.attr('unit')}"
    return None


def problems(p):
    g = p.scheduled
    for k, members in groups(g, "fuse").items():
        why = kernel_problem(g, members)
        if why:
            yield "wrong kernel", f"kernel {k}: {why}\n{g.text}"
    for k, members in groups(g, "overlap").items():
        why = chain_problem(g, members)
        if why:
            yield "wrong chain", f"chain {k}: {why}\n{g.text}"
    why = order_problem(g, "fuse") or order_problem(g, "overlap", "fuse")
    if why:
        yield "wrong kernel", why + "\n" + g.text
    why = partly(g, "overlap", "fuse")
    if why:
        yield "wrong chain", why + "\n" + g.text
    why = split_problem(p)
    if why:
        yield "wrong split", f"{why}\n{g.text}"
    for n in g.nodes:  # a sharded parameter is cut, and nobody else changes its placement
        if n.op == "param":
            want = p.graph.by_name[n.name].type
            cut = n.type.place != want.place
            if cut != bool(n.attr("shard")):
                yield "wrong shard", f"{n.name}: {n.type.text}, declared {want.text}\n{g.text}"
            if cut and any(q[0] != R for a, q in want.place.items() if a in n.attr("shard")):
                yield "wrong shard", f"{n.name} was not replicated: {n.type.text}"


def gather_named(g, name, schedule):
    """What `name` is in g: (node, dims, place of its slices). A split that is not applied yet: its all-reduce stands for
    the gather that it will make."""
    s = next((s for s in schedule if s.kind == "split" and s.gives and s.gives[-1] == name), None)
    if s and "reduce_broadcast" in s.text:
        return None
    label = re.match(r"split\(([\w.\[\]]+)", s.text)[1] if s else name
    x = next((n for n in reversed(g.nodes) if n.label() in ((f"{label}.ag", label) if s else (label,))), None)
    if x and x.op == "allgather":
        source = g.by_id[x.ins[0]].type
        return x, source.dims, source.place
    if not s or not x or x.op != "allreduce" or not x.type.dims:
        return None
    dim = re.search(r"dim: (-?\d+)", s.text)
    axes = re.findall(r"\w+", x.attr("over"))
    place = {a: p for a, p in x.type.place.items() if a not in axes}
    if len(axes) > 1:
        return None
    place[axes[0]] = (S, int(dim[1]) % len(x.type.dims) if dim else 0, "1")
    return x, x.type.dims, place


def must_be_legal(g, step, schedule):
    """Whether a reorder cannot be refused: all that moves is elementwise, random, a cast or an update, and whatever else
    it reads is replicated."""
    m = re.fullmatch(r"reorder\(after\(([\w.]+)\), \1\)", step.text)
    if not m:
        return False
    found = gather_named(g, m[1], schedule)
    if not found or found[0].region is not None or found[0].type.bundle:
        return False
    x, dims, place = found
    cuts = [q for q in place.values() if q[0] == S]
    if len(cuts) != 1 or any(q[0] not in (R, S) for q in place.values()) or dims[cuts[0][1]] == "1":
        return False
    after = g.after([x.id])
    for i in after:
        n = g.by_id[i]
        whole = n.op in REDUCTIONS and all(d == "1" for d in n.type.dims)  # its part across ranks is put in
        if (n.op not in PLAIN_MOVES and not whole) or n.region is not None or n.op == "one_hot" or n.attr("fuse"):
            return False
        for j in n.ins:
            t = g.by_id[j].type
            if j not in after and j != x.id and not t.all_replicated():
                return False
            if t.bundle:
                return False
    return bool(after)

# shrink.py: makes a failing program small: fewer statements, fewer results, smaller extents, fewer ranks.
# SPDX-License-Identifier: Apache-2.0
import copy
import pathlib
import re
import shutil
import tempfile

import engine
from generate import MESHES
from model import parse_graphs


class One(engine.Batch):
    """A batch of one program, without anything random."""

    def __init__(self, exe, folder, p):
        self.exe, self.folder, self.mesh = exe, pathlib.Path(folder), p.mesh
        self.programs, self.failures, self.refused, self.runs, self.dropped, self.run_errors = [p], [], [], 0, 0, {}


def clone(p):
    q = copy.copy(p)
    q.params, q.body, q.outputs, q.schedule = list(p.params), list(p.body), list(p.outputs), list(p.schedule)
    q.syms, q.types = dict(p.syms), dict(p.types)
    return q


def verdict(exe, p, n, mesh, sizes):
    """What is wrong with this program and schedule on n ranks: (kind, why), or None."""
    folder = tempfile.mkdtemp(prefix="shrink-")
    try:
        b = One(exe, folder, p)
        t = engine.Text(engine.CHECKED[p.mesh])
        engine.write_program(t, p, p.outputs)
        path = b.file("programs.ccn", t)
        status, out, err = engine.ccn(exe, "dump", path, "--stage", "graph")
        if status != 0:
            return None
        g = p.graph = parse_graphs(out)[p.name]
        p.types = {q.name: q.type() for q in p.params}
        for name, i in zip(p.outputs, g.outputs):
            p.types[name] = g.by_id[i].type
        t = engine.Text(engine.CHECKED[p.mesh])
        engine.write_program(t, p, p.outputs)
        engine.write_schedule(t, p)
        _, _, err = engine.ccn(exe, "check", b.file("schedules.ccn", t), "--json")
        found = engine.diagnostics(err)
        if found:
            return f"refused with {found[0]['code']}", found[0]["message"]
        _, out, _ = engine.ccn(exe, "dump", b.folder / "schedules.ccn", "--stage", "scheduled")
        p.scheduled = parse_graphs(out)[p.name]
        b.check_graphs()
        if not b.failures:
            b.run_on(n, mesh, sizes)
        return (b.failures[0].kind, b.failures[0].why) if b.failures else None
    except engine.Broken as e:
        return "broken", str(e)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def smaller(p):
    """Programs that are one step smaller."""
    for s in reversed(p.schedule):
        q = clone(p)
        gone, q.schedule = set(s.gives), []
        for x in p.schedule:
            if x is s or any(k in gone for k in x.needs):
                gone.update(x.gives)
            else:
                q.schedule.append(x)
        yield q
    for o in p.outputs:
        if len(p.outputs) > 1:
            q = clone(p)
            q.outputs.remove(o)
            q.prune()
            yield q
    for s in reversed(p.body):
        q = clone(p)
        q.remove([s])
        if q.outputs or q.updated():
            q.outputs = q.outputs or [b for x in q.body[-1:] for b in x.binds[-1:]] or [q.params[0].name]
            yield q
        for b in s.binds:  # what it reads stands for it
            for u in s.uses:
                q = clone(p)
                q.body = [replaced(x, b, u) for x in p.body if x is not s]
                q.outputs = list(dict.fromkeys(u if o == b else o for o in p.outputs))
                if len(q.body) < len(p.body) and q.body:
                    yield q
    for k, v in p.syms.items():
        for w in (1, 2, 3):
            if w < v:
                q = clone(p)
                q.syms[k] = w
                yield q


def replaced(s, old, new):
    if old not in s.uses:
        return s
    lines = [re.sub(rf"(?<![\w.]){old}(?!\w)", new, x) for x in s.lines]
    t = copy.copy(s)
    t.lines, t.uses = lines, list(dict.fromkeys(new if u == old else u for u in s.uses))
    return t


def shrink(exe, failure, most=300):
    """Returns (program, n, mesh, sizes, (kind, why)) that still fails in the same way."""
    p, n = clone(failure.program), failure.n
    if isinstance(failure.mesh, str):
        mesh, sizes = MESHES[p.mesh][2][0]
    else:
        mesh, sizes = failure.mesh
    tries = 0
    found = verdict(exe, p, n, mesh, sizes)
    if not found or found[0] != failure.kind:
        return p, n, mesh, sizes, found or (failure.kind, failure.why + "\n(does not fail alone)")
    for m in (1, 2, 3, 4):
        if m < n:
            for other in MESHES[p.mesh][m]:
                if engine.fits(p, other[1]):
                    v = verdict(exe, clone(p), m, *other)
                    if v and v[0] == found[0]:
                        n, (mesh, sizes), found = m, other, v
                        break
            else:
                continue
            break
    again = True
    while again and tries < most:
        again = False
        for q in smaller(p):
            tries += 1
            v = verdict(exe, q, n, mesh, sizes)
            if v and v[0] == found[0]:
                p, found, again = q, v, True
                break
            if tries >= most:
                break
    return p, n, mesh, sizes, found


def text(p, n, mesh, sizes, found):
    t = engine.Text(mesh)
    t.put(f"# {found[0]} with -n {n}: " + " ".join(found[1].split())[:300])
    t.put(engine.HELPERS.rstrip())
    engine.write_script(t, p, n, sizes)
    return t.text()

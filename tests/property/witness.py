# witness.py: no over-refusal: what reorder, shard and dead refused is applied by force (a build with -Dforce_refused=true).
# A refusal has a witness if then the verifier or a type rule fails, or a result differs on some number of ranks.
# SPDX-License-Identifier: Apache-2.0
import copy
import re

import engine
from model import parse_graphs

CODES = {"CCN0403", "CCN0405", "CCN0406"}
KINDS = re.compile(r"does not run on slices|cannot run on slices|cannot move before the broadcast|cannot be gathered")
LEAST = 0.95


def needs_one(refusal):
    """Refusals by structure (a consumed handle, no gather, not convex) need none."""
    kind, code, message = refusal[:3]
    return code in CODES or (kind == "reorder" and code == "CCN0402" and bool(KINDS.search(message)))


class Replay:
    """A program with the statements up to the refused one, under a number of its own."""

    def __init__(self, refusal, index):
        self.kind, self.code, self.message, p, steps, refused = refusal
        self.p = copy.copy(p)
        self.p.index, self.p.name = index, f"p{index}"
        # what reassociates gives other bits, refused or not
        self.p.schedule = [s for s in steps[:steps.index(refused) + 1] if s.exact]
        self.p.types = dict(p.types)
        self.witness = None

    def what(self):
        return (self.kind, self.code, re.sub("`[^`]*`", "`..`", self.message.split("(CCN")[0]).strip())


class Forced(engine.Batch):
    """A batch of replays in the forced build."""

    def __init__(self, exe, folder, mesh, rng, replays):
        self.exe, self.folder, self.mesh, self.rng = exe, folder, mesh, rng
        self.replays = {r.p.index: r for r in replays}
        self.failures, self.refused, self.runs, self.dropped, self.run_errors = [], [], 0, 0, {}

    @property
    def programs(self):
        return [r.p for r in self.replays.values() if not r.witness]

    def seen(self, p, how):
        self.replays[p.index].witness = how

    def check(self):
        """Type rules and the verifier, until what is left can be applied."""
        while self.programs:
            t = engine.Text(engine.CHECKED[self.mesh])
            for p in self.programs:
                engine.write_program(t, p, p.outputs)
                engine.write_schedule(t, p)
            path = self.file("forced.ccn", t)
            _, _, err = engine.ccn(self.exe, "check", path, "--json")
            bad = {}
            for d in engine.diagnostics(err):
                owner = t.owner.get(d.get("line"))
                if not owner:
                    raise engine.Broken(f"forced check: {d}")
                bad.setdefault(owner[0].index, (owner[0], d))
            if not bad:
                break
            for p, d in bad.values():
                how = "verifier" if d["code"] in ("CCN0499", "CCN0404") else "type rule"
                self.seen(p, f"{how}: {d['code']} {d['message']}")
        if not self.programs:
            return
        _, out, _ = engine.ccn(self.exe, "dump", path, "--stage", "scheduled")
        graphs = parse_graphs(out)
        for p in self.programs:
            p.scheduled = graphs[p.name]
        self.check_graphs()
        for f in self.failures:
            self.seen(f.program, f"verifier: {f.kind}")

    def look(self):
        self.check()
        for n in engine.RANKS:
            self.failures = []
            mesh, sizes = self.rng.choice(engine.MESHES[self.mesh][n])
            self.run_on(n, mesh, sizes)
            for f in self.failures:
                self.seen(f.program, f"result: {f.kind}")


def witnesses(exe, batch):
    """Of a batch's refusals: [(what, witness or None, text of the program)]."""
    wanted = [r for r in batch.refused if needs_one(r)]
    replays = [Replay(r, k) for k, r in enumerate(wanted)]
    folder = batch.folder / "forced"
    folder.mkdir()
    Forced(exe, folder, batch.mesh, batch.rng, replays).look()
    found = []
    for r in replays:
        t = engine.Text(engine.CHECKED[batch.mesh])
        if not r.witness:
            engine.write_program(t, r.p, r.p.outputs)
            engine.write_schedule(t, r.p)
        found.append((r.what(), r.witness and r.witness.split(":")[0], t.text()))
    return found

# placements.py: tests/cases/placements.json: op, operand placements → result or error code; every entry is a test.
#
# Each entry becomes a program on a line of its own, with its operands as parameters. Entries that must fail are
# checked (code and line); entries that must succeed are dumped as graph text, whose result type is compared.
# SPDX-License-Identifier: Apache-2.0
import fractions
import json
import pathlib
import re
import tempfile

from .core import CASES, Tally, in_parallel

# Fewer than the number of errors after which diagnostics are only counted.
CHUNK = 80
OPERANDS = {"take": ["x", "idx"], "scatter_add": ["idx", "v"], "update": ["t", "e"]}
WORD = re.compile(r"(?<![\w.])[A-Z]\w*")


# ---- entry → program ------------------------------------------------------------------------------------------

def place_text(place, axis):
    kind, _, inside = place.rstrip(")").partition("(")
    if kind == "R":
        return ""
    if kind == "L":
        return f" local over {axis}"
    if kind == "P":
        return f" partial({inside}) over {axis}"
    if kind == "A":
        return f" at({inside}) over {axis}"
    dim, _, unit = inside.partition(",")
    return f" sliced({dim}{', unit: ' + unit if unit else ''}) over {axis}"


def axes_of(entry):
    return entry.get("order") or list(entry["mesh"])


def operand_text(operand, axes):
    shape = operand["shape"]
    dims = f"[{', '.join(str(d) for d in shape)}]" if shape else ""
    return operand["dtype"] + dims + "".join(place_text(operand["placement"][a], a) for a in axes)


def program_text(name, entry):
    """One line. Symbols that no operand binds by itself get a parameter that does."""
    axes = axes_of(entry)
    names = OPERANDS.get(entry["op"], ["x", "y", "z"])
    params = [f"{n}: {operand_text(o, axes)}" for n, o in zip(names, entry["operands"])]
    bound = {d for o in entry["operands"] for d in o["shape"] if isinstance(d, str) and WORD.fullmatch(d)}
    used = set(WORD.findall(entry["call"]))
    for o in entry["operands"]:
        for text in [*map(str, o["shape"]), *o["placement"].values()]:
            used |= set(WORD.findall(text)) - {"R", "L", "S", "P", "A"}
    free = sorted(used - bound)
    if free:
        params.append(f"sizes: f32[{', '.join(free)}]")
    return f"program {name}({', '.join(params)}) {{ return {entry['call']} }}"


def mesh_text(entry):
    return "mesh (" + ", ".join(f"{a}: {entry['mesh'][a]}" for a in axes_of(entry)) + ")"


# ---- result types: two spellings, one comparison ----------------------------------------------------------------

VALUES = [{c: p for c, p in zip("BCFHKMNOSVW", primes)} for primes in (
    [2, 3, 5, 16 * 7, 11, 13, 17, 19, 23, 29, 31], [37, 41, 43, 16 * 47, 53, 59, 61, 67, 71, 73, 79])]


def extent(text, values):
    """The value of a dim's text at a point: equal polynomials are equal at all of them."""
    if not re.fullmatch(r"[\w*/+\-() ]+", text):
        raise ValueError(f"cannot read the dim {text!r}")
    known = {k: fractions.Fraction(v) for k, v in values.items()}
    spelled = re.sub(r"(?<![\w.])(\d+)", r"fraction(\1)", text)
    return eval(spelled, {"__builtins__": {}, "fraction": fractions.Fraction, **known})


def point_values(text):
    return tuple(extent(str(text), v) for v in VALUES)


def wanted_type(entry):
    r = entry["result"]
    shape = [point_values(d) for d in r["shape"]]
    places = {}
    for axis in axes_of(entry):
        kind, _, inside = r["placement"][axis].rstrip(")").partition("(")
        if kind == "S":
            dim, _, unit = inside.partition(",")
            places[axis] = ("S", int(dim), point_values(unit or "1"))
        else:
            places[axis] = (kind, inside) if inside else (kind,)
    return shape, places


def parse_type(text, axes):
    """f32[N] sliced(0, unit: 2) over a local over b → shape, placements; as wanted_type gives them."""
    m = re.match(r"\s*\w+(?:\[(.*?)\])?", text)
    shape = [point_values(d.strip()) for d in m[1].split(",")] if m[1] else []
    places = {a: ("R",) for a in axes}
    rest = text[m.end():]
    for p in re.finditer(r"\b(replicated|sliced|local|partial|at)\b(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\))?"
                         r"(?:\s+over\s+(\w+))?", rest):
        word, inside, axis = p[1], p[2] or "", p[3]
        if word == "sliced":
            dim, _, unit = inside.partition(",")
            unit = unit.strip()
            value = ("S", int(dim), point_values(unit.removeprefix("unit:").strip() or "1"))
        elif word == "local":
            value = ("L",)
        elif word == "partial":
            value = ("P", inside.strip())
        elif word == "at":
            value = ("A", inside.strip())
        else:
            value = ("R",)
        for a in [axis] if axis else axes:
            places[a] = value
    return shape, places


def result_types(graph_text):
    """Graph text → {program name: text of the type of what it returns}."""
    types, name, nodes = {}, None, {}
    for line in graph_text.splitlines():
        line = line.split("  # ")[0]
        if m := re.match(r"graph (\w+) \{", line):
            name, nodes = m[1], {}
        elif m := re.match(r"\s*(%\d+)\b.*? = .*? : ((?:\w|\[).*)$", line):
            nodes[m[1]] = m[2].removesuffix("{")
        elif m := re.match(r"\s*return (%\d+)$", line):
            types[name] = nodes.get(m[1], "")
    return types


# ---- the comparison -----------------------------------------------------------------------------------------------

class Chunk:
    """Entries of one mesh in one file: entry i stands on line i + 2."""

    def __init__(self, number, entries):
        self.entries = entries  # (index in the JSON list, entry)
        self.name = f"placements{number}.ccn"
        self.problems = {}      # index → what is wrong

    def text(self, keep):
        lines = [mesh_text(self.entries[0][1])]
        lines += [program_text(f"e{i}", e) if keep(i) else "" for i, e in self.entries]
        return "\n".join(lines) + "\n"

    def run(self, build, folder):
        path = pathlib.Path(folder) / self.name
        path.write_text(self.text(lambda i: True))
        done, found, _ = build.diagnostics("check", path, "--json")
        if done.crashed():
            self.problems = {i: done.crashed() for i, _ in self.entries}
            return self
        codes = {}
        for d in found:
            if d["severity"] == "error":
                codes.setdefault(d.get("line"), []).append(d["code"])
        dump = []
        for at, (i, e) in enumerate(self.entries, start=2):
            got = codes.pop(at, [])
            want = [e["error"]] if "error" in e else []
            if got != want:
                self.problems[i] = f"expected {want or 'no error'}, got {got or 'none'}"
            elif not want:
                dump.append(i)
        for line, got in codes.items():
            self.problems[f"line {line} of {self.name}"] = f"{got}"
        if dump:
            self.compare_types(build, path, dump)
        return self

    def compare_types(self, build, path, dump):
        path.write_text(self.text(lambda i: i in dump))
        done = build.run_ccn("dump", path, "--stage", "graph")
        if done.crashed() or done.status != 0:
            problem = done.crashed() or f"dump: exit status {done.status}\n{done.err[:400]}"
            self.problems.update({i: problem for i in dump})
            return
        types = result_types(done.out)
        for i, e in self.entries:
            if i not in dump:
                continue
            text = types.get(f"e{i}")
            if not text:
                self.problems[i] = "no result type in the graph text"
                continue
            try:
                if parse_type(text, axes_of(e)) != wanted_type(e):
                    self.problems[i] = f"expected {e['result']}, got {text}"
            except (ValueError, NameError, SyntaxError) as error:
                self.problems[i] = f"cannot read the type {text!r}: {error}"


def chunks(entries):
    groups = {}
    for i, e in enumerate(entries):
        groups.setdefault((mesh_text(e), "error" in e), []).append((i, e))
    parts = [g[k:k + CHUNK] for g in groups.values() for k in range(0, len(g), CHUNK)]
    return [Chunk(n, p) for n, p in enumerate(parts)]


def suite(build, options):
    tally = Tally("placements")
    entries = json.loads((CASES / "placements.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        done = in_parallel(lambda c: c.run(build, folder), chunks(entries))
    problems = {}
    for c in done:
        problems.update(c.problems)
    tally.ok(sum(i not in problems for i in range(len(entries))))
    shown = 0
    for i, problem in problems.items():
        shown += 1
        if shown > 60:
            tally.failed += 1
            continue
        what = program_text(f"e{i}", entries[i]) if isinstance(i, int) else i
        tally.fail(f"entry {i}", f"{what}\n{problem}")
    if shown > 60:
        print(f"    ... and {shown - 60} more entries", flush=True)
    tally.note(f"{tally.passed} of {len(entries)} entries")
    return tally

# pages.py: what we tell people is tried: the programs of the `ccn explain` pages, of docs/*.md and of README.md.
#
# In explain pages a block after a line that begins with "Wrong" must give exactly the page's code (in `check`, else
# in `run`), one after "Right" must check clean. In documents: ```ccn is checked; ```ccn run is run; ```ccn CCN0203 must
# give this code; ```console: each `$ ccn ...` line is run, and what stands below it is compared (`...` stands for any
# lines); ```session -n RANKS is typed into the shell, where `ccn> ` and `...> ` are its prompts.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from .core import ROOT, TIMEOUT, Tally, in_parallel, relative, run
from .programs import read_ranks

FENCE = re.compile(r"^(\s*)(```+)\s*(.*?)\s*$")


def blocks(text):
    """Yields (line number, info words, body, last line of prose before it)."""
    lines = text.splitlines()
    i, prose = 0, ""
    while i < len(lines):
        m = FENCE.match(lines[i])
        if not m:
            prose = lines[i].strip() or prose
            i += 1
            continue
        indent, start, body = m[1], i + 1, []
        i += 1
        while i < len(lines) and not (FENCE.match(lines[i]) and lines[i].strip().startswith(m[2])):
            line = lines[i]
            body.append(line[len(indent):] if line.startswith(indent) else line)
            i += 1
        i += 1
        yield start, m[3].split(), "\n".join(body) + "\n", prose


def describe(found):
    return "\n".join(f"{d['code']} line {d.get('line')}: {d['message']}" for d in found) or "no error"


# Codes that only an option shows.
OPTIONS = {"CCN0607": ["--check-nan"]}


def check_text(build, text, code=None, execute=False, absent=None):
    """Checks (and runs) a text: it must give `code` and no other error, or no error and no warning `absent`."""
    ranks = 2
    for line in text.splitlines()[:3]:
        ranks = (read_ranks(line) or [ranks])[0]
    with tempfile.TemporaryDirectory() as folder:
        prepare(pathlib.Path(folder))
        (pathlib.Path(folder) / "page.ccn").write_text(text)
        done, found, _ = build.diagnostics("check", "page.ccn", "--json", cwd=folder)
        if not done.crashed() and done.status == 0 and (execute or code and code not in [d["code"] for d in found]):
            done, found, _ = build.diagnostics("run", "page.ccn", "-n", ranks, *OPTIONS.get(code, []), "--json",
                                               cwd=folder)
    if done.crashed():
        return done.crashed()
    errors = [d["code"] for d in found if d["severity"] == "error"]
    warnings = [d["code"] for d in found if d["severity"] != "error"]
    if code:
        right = errors == [code] or not errors and code in warnings
        return None if right else f"expected exactly {code}, got:\n{describe(found)}"
    return None if not errors and done.status == 0 and absent not in warnings else describe(found)


def prepare(folder):
    """What documents may name: the examples, in a copy that may be written to."""
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", folder / "examples")


def matches(want, got):
    """Lines against lines; `...` stands for any number of lines."""
    if not want:
        return not got
    if want[0].strip() == "...":
        return any(matches(want[1:], got[k:]) for k in range(len(got) + 1))
    return bool(got) and want[0].rstrip() == got[0].rstrip() and matches(want[1:], got[1:])


def console_commands(body):
    """Yields (command, lines shown below it)."""
    command, shown = None, []
    for line in body.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        elif command:
            shown.append(line)
    if command:
        yield command, shown


def run_console(build, body):
    with tempfile.TemporaryDirectory() as folder:
        prepare(pathlib.Path(folder))
        for command, shown in console_commands(body):
            words = shlex.split(command, comments=True)
            if not words or pathlib.Path(words[0]).name != "ccn":
                continue  # quickstart and test have jobs of their own
            done = build.run_ccn(*words[1:], cwd=folder)
            if done.crashed():
                return f"$ {command}\n{done.crashed()}"
            if shown:
                got = (done.out + done.err).splitlines()
                if not matches(shown, got):
                    return f"$ {command}\nshown:\n" + "\n".join(shown) + "\nnow:\n" + "\n".join(got)
            elif done.status != 0:
                return f"$ {command}\nexit status {done.status}\n{done.err}"
    return None


def session_entries(body):
    """Yields (lines typed, lines shown below them)."""
    typed, shown = [], []
    for line in body.splitlines():
        if line.startswith("ccn> "):
            if typed:
                yield typed, shown
            typed, shown = [line[5:]], []
        elif line.startswith("...> "):
            typed.append(line[5:])
        else:
            shown.append(line)
    if typed:
        yield typed, shown


def run_session(build, body, words):
    """Types all of it; a line of our own behind each entry tells what belongs to which."""
    mark = "@@ next entry @@"
    entries = list(session_entries(body))
    text = "".join("\n".join(typed) + f'\nprint("{mark}")\n' for typed, _ in entries)
    with tempfile.TemporaryDirectory() as folder:
        prepare(pathlib.Path(folder))
        done = subprocess.run([build.ccn, "repl", *words], cwd=folder, input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
    answers = done.stdout.split(mark + "\n")
    if len(answers) != len(entries) + 1:
        return f"{len(entries)} entries, {len(answers) - 1} answers:\n{done.stdout}"
    for number, ((typed, shown), got) in enumerate(zip(entries, answers)):
        got = re.sub(r"<(\d+)>", lambda m: f"<{(int(m[1]) + 1) // 2}>", got).splitlines()  # ours count, too
        if not matches(shown, got):
            return f"ccn> {typed[0]}\nshown:\n" + "\n".join(shown) + "\nnow:\n" + "\n".join(got)
    return None


def explain_tasks(build, tally):
    done = build.run_ccn("explain", "--json")
    tasks = []
    for line in done.out.splitlines():
        page = json.loads(line)
        code, found = page["code"], {"wrong": 0, "right": 0}
        if not page["page"].strip():
            tally.fail(f"explain {code}", "the page is empty")
            continue
        for at, info, body, prose in blocks(page["page"]):
            if info[:1] != ["ccn"]:
                continue
            kind = re.match(r"\W*(wrong|right)", prose, re.IGNORECASE)
            if not kind:
                tally.fail(f"explain {code} line {at}", "neither Wrong nor Right stands before the program")
                continue
            kind = kind[1].lower()
            found[kind] += 1
            given = (body, code) if kind == "wrong" else (body, None, False, code)
            tasks.append((f"explain {code}, {kind}", check_text, given))
        if found["wrong"] and not found["right"]:
            tally.fail(f"explain {code}", "a wrong program, but no right one")
    if not tasks:
        tally.fail("explain", "no page has a program: " + (done.err or done.out)[:200])
    return tasks


def document_tasks():
    tasks = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not path.exists() or path.name == "errors.md":  # that is the explain pages once more
            continue
        for at, info, body, _ in blocks(path.read_text()):
            where = f"{relative(path)} line {at}"
            if info[:1] == ["ccn"]:
                code = next((w for w in info if re.fullmatch(r"CCN\d{4}", w)), None)
                tasks.append((where, check_text, (body, code, "run" in info)))
            elif info[:1] == ["console"]:
                tasks.append((where, run_console, (body,)))
            elif info[:1] == ["session"]:
                tasks.append((where, run_session, (body, info[1:])))
    return tasks


def suite(build, options):
    tally = Tally("pages")
    done = run([sys.executable, ROOT / "scripts" / "optable.py", "--check"])
    tally.check("tables in docs/ are those of lang/*.def", None if done.status == 0 else done.out + done.err)
    tasks = explain_tasks(build, tally) + document_tasks()
    results = in_parallel(lambda t: t[1](build, *t[2]), tasks)
    for (where, _, _), problem in zip(tasks, results):
        tally.check(where, problem)
    return tally

# repl.py: the interactive shell, on a pseudo-terminal as people have it, and on plain standard input.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import signal
import stat
import statistics
import tempfile
import termios
import time

from .core import ROOT, Tally, run
from .terminal import Terminal, Timeout

PROMPT, GOES_ON = "ccn> ", "...> "
UP, TAB, CTRL_C, CTRL_D, CTRL_U = "\x1b[A", "\t", "\x03", "\x04", "\x15"


class Shell:
    """`ccn repl` on a terminal, with a home of its own."""

    def __init__(self, build, *words, home=None, term="xterm", columns=80, **settings):
        self.held = None
        if home is None:
            self.held = tempfile.TemporaryDirectory()
            home = self.held.name
        self.home = pathlib.Path(home)
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "XDG_STATE_HOME", "INPUTRC")}
        env.update(HOME=str(home), TERM=term, LC_ALL="C.UTF-8", **settings)
        self.terminal = Terminal([str(build.ccn), *words], env, home, columns)
        self.prompts = 0
        self.prompt()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.terminal.close()
        if self.held:
            self.held.cleanup()

    def text(self):
        return self.terminal.screen.text()

    def prompt(self, kind=PROMPT):
        """Waits until the cursor stands behind a prompt on a line that was not a prompt's before."""
        def found(screen):
            if screen.row >= len(screen.lines) or screen.column != len(kind) or screen.row < self.prompts:
                return False
            return "".join(screen.lines[screen.row]).startswith(kind)
        self.terminal.wait_for(found, f"the prompt {kind!r}")
        self.prompts = self.terminal.screen.row + 1
        return self.prompts - 1

    def enter(self, line, kind=PROMPT):
        """Types a line; what stands between it and the next prompt."""
        start = self.prompts
        self.terminal.send(line + "\n")
        end = self.prompt(kind)
        return "\n".join("".join(x).rstrip() for x in self.terminal.screen.lines[start:end])

    def shows(self, text):
        self.terminal.wait_for(lambda screen: text in screen.text(), repr(text))

    def leave(self):
        self.terminal.send(":quit\n")
        return self.terminal.finish()


def edits(build):
    """Whether readline was built in."""
    return '"name": "readline", "state": "ok"' in build.run_ccn("doctor", "--json").out


def missing(text, *wanted):
    for w in wanted:
        if w not in text:
            return f"{w!r} is not in\n{text}"
    return None


# ---- entries -------------------------------------------------------------------------------------------------

STEP = """program step(g: f32[N] local, p: f32[N], lr: f32) {
  gsum = allreduce(avg, g)
  return update(p, p - lr * gsum)
}"""


def type_lines(shell, text):
    """Types a text of several lines that is one entry."""
    *first, last = text.split("\n")
    for line in first:
        shell.enter(line, GOES_ON)
    return shell.enter(last)


def prepared(build, **settings):
    """A session on 4 ranks with a program and its arguments."""
    shell = Shell(build, "repl", "-n", "4", **settings)
    shell.enter("mesh (dp)")
    type_lines(shell, STEP)
    shell.enter("let p = iota(f32[4])")
    shell.enter("let g = per_rank(fn(r) { return full(f32[4], r) })")
    return shell


def check_values(tally, build):
    with prepared(build) as s:
        tally.check("a number", missing(s.enter("1 + 2"), "3"))
        tally.check("a string", missing(s.enter('"a{1 + 1}"'), '"a2"'))
        tally.check("a list", missing(s.enter('[1, "b", true]'), '[1, "b", true]'))
        out = s.enter("p")
        tally.check("a replicated tensor", missing(out, "f32[4]  16 B on each of 4 ranks\n[0.0, 1.0, 2.0, 3.0]"))
        out = s.enter("g")
        tally.check("ranks that differ", missing(out, "f32[4] local over dp  16 B on each of 4 ranks",
                                                 "rank 0  [0.0, 0.0, 0.0, 0.0]", "rank 3  [3.0, 3.0, 3.0, 3.0]"))
        out = s.enter("iota(f32[10, 20] sliced(0))")
        tally.check("pieces", missing(out, "f32[10, 20] sliced(0) over dp  800 B over 4 ranks",
                                      "rank 0 [0:3, :]   [[  0.0,   1.0,", "rank 3 [9:10, :]  [[180.0, 181.0,"))
        problem = None if max(map(len, out.split("\n"))) <= 80 else "a line is wider than the terminal"
        tally.check("pieces fit the terminal", problem)
        out = s.enter("iota(i64[1000, 1000, 100])")
        tally.check("excerpts are bounded", None if len(out) < 3000 and "99999999" in out else out)
        out = s.enter("list(0..100000)")
        tally.check("lists are bounded", None if len(out) < 5000 and "100000 members" in out else out[-300:])
        out = s.enter("zeros(bool[2])")
        tally.check("booleans", missing(out, "[false, false]"))
        tally.check("nothing is shown of statements", None if s.enter("let q = 1") == "" else "something")
        tally.check("names are kept", missing(s.enter("q + 1"), "2"))
        tally.check("quit and its like", missing(s.enter("quit"), ":quit"))
        tally.check("its end", None if s.leave() == 0 else f"exit status {s.terminal.status}")


def check_lines(tally, build):
    with Shell(build) as s:
        s.enter("fn twice(x) {", GOES_ON)
        s.enter("", GOES_ON)
        s.enter("  return x * 2", GOES_ON)
        s.enter("}")
        tally.check("an entry of several lines, one of them empty", missing(s.enter("twice(21)"), "42"))
        s.enter("let a = [1,", GOES_ON)
        s.enter("  2]")
        tally.check("brackets", missing(s.enter("a"), "[1, 2]"))
        s.enter("1 +", GOES_ON)
        tally.check("an operator at the end", missing(s.enter("2"), "3"))
        s.enter("print(1", GOES_ON)
        out = s.enter("")
        tally.check("an empty line gives up a forgotten bracket", missing(out, "CCN0004", "opened here"))
        if edits(build):
            s.terminal.send("\x1b[200~let b = 1\nlet c = 2\x1b[201~\n")
            s.prompt()
            tally.check("pasted lines are one entry", missing(s.enter("b + c"), "3"))
        s.enter("print(1", GOES_ON)
        s.terminal.send(CTRL_D)
        s.prompt()
        tally.check("Ctrl-D in an open entry", missing(s.text(), "CCN0004"))
        s.terminal.send(CTRL_D)
        tally.check("Ctrl-D leaves", None if s.terminal.finish() == 0 else f"{s.terminal.status}\n{s.text()}")


# ---- commands ------------------------------------------------------------------------------------------------

# typed, texts that must be in the answer
COMMANDS = [
    (":help", [":doc WORD", ":quit", "Ctrl-C", "let x ="]),
    (":help save", [":save FILE"]),
    (":help matmul", ["b* m k+"]),
    (":doc matmul", ["matmul(x, y)", "b* m k+, b* k+ n -> b* m n", "owes a sum", "example"]),
    (":doc allreduce", ["in programs only", "local or partial(op) -> replicated", "example"]),
    (":doc let", ["keyword"]),
    (":doc load", ["path, as?", ".npy"]),
    (":doc bf16", ["dtype"]),
    (":doc split", ["schedule", "reduce-scatter"]),
    (":doc step", ["program step(g: f32[N] local"]),
    (":doc mtmul", ["did you mean `matmul`?"]),
    (":type p", ["f32[4]"]),
    (":type step", ["program step(g: f32[N] local, p: f32[N], lr: f32) -> f32[N]"]),
    (":type step(g, p, 0.5)", ["f32[4]"]),
    (":type 1 +", ["CCN"]),
    (":type let a = 1", ["CCN0010", "expression"]),
    ("p", ["[0.0, 1.0, 2.0, 3.0]"]),  # :type has stored nothing
    (":graph step", ["graph step {", '"gsum" (allreduce) = allreduce %0']),
    (":graph step@zero(gsum)", ["reducescatter", "allgather"]),
    (":graph stp", ["CCN0801", "did you mean `step`?"]),
    (":graph p", ["CCN0805"]),
    (":names", ["  step                 program step(g", "  p                    f32[4]"]),
    (":names step", ["gsum"]),
    (":watch step.gsm", ["did you mean `gsum`?"]),
    (":watch step.gsum", ["watched: step.gsum"]),
    ("step", ["program step(g: f32[N] local, p: f32[N], lr: f32) -> f32[N]"]),
    ("step(g, p, 0.5)", ["watch step.gsum  f32[4]  min 1.5  max 1.5  norm 3.0  nan 0"]),
    (":watch", ["watched: step.gsum"]),
    (":watch off", ["nothing is watched"]),
    (":time step(g, p, 0.5)", ["0.", " s", "1 call of programs", "ops"]),
    (":set", ["check-nan", "excerpt", "time-limit"]),
    (":set excerpt 2", ["2"]),
    ("p", ["[-1.5, ...,  1.5]"]),
    (":set excerpt 8", ["8"]),
    (":set excerpt many", ["takes"]),
    (":set exerpt 8", ["did you mean `excerpt`?"]),
    (":set check-nan on", ["on"]),
    ("log(p - 100)", ["CCN0607"]),
    (":set check-nan off", ["off"]),
    (":set time-limit 0.2", ["0.2 s"]),
    ("while true { }", ["CCN0608"]),
    (":set time-limit off", ["off"]),
    (":set time on", ["on"]),
    ("1 + 1", ["2", " s"]),
    (":set time off", ["off"]),
    (":hlep", ["did you mean `:help`?"]),
    (":save", [":save FILE"]),
    (":ranks", ["4 ranks"]),
    (":ranks 65", ["1 to 64"]),
    (":ranks 2", ["2 ranks; the session was run again"]),
    ("p", ["f32[4]  16 B on each of 2 ranks", "[-0.5,  0.5,  1.5,  2.5]"]),
    (":h", [":doc WORD"]),
    (":reset", ["new session"]),
    ("p", ["CCN0801"]),
]


def check_commands(tally, build):
    with prepared(build) as s:
        s.enter("schedule zero(x) { (rs, ag) = split(x) }")
        for typed, wanted in COMMANDS:
            tally.check(typed, missing(s.enter(typed), *wanted))
        tally.check("leaves", None if s.leave() == 0 else "status")


def check_scripts(tally, build):
    with prepared(build) as s:
        s.enter("step(g, p, 0.5)")
        s.enter("let broken = [1][7]")
        out = s.enter(":save session.ccn")
        saved = s.home / "session.ccn"
        text = saved.read_text() if saved.exists() else ""
        tally.check(":save", missing(text, "mesh (dp)\n", STEP, "step(g, p, 0.5)\n") or
                    (None if "broken" not in text else "a failed statement was saved"))
        saved.write_text(text + 'print("{p}")\n')
        done = run([build.ccn, "run", saved, "-n", "4"])
        problem = None if done.out == "f32[4] [-0.75, 0.25, 1.25, 2.25]\n" else done.out + done.err
        tally.check("what was saved runs", problem)
        tally.check(":save again", missing(s.enter(":save session.ccn"), "saved"))
        (s.home / "work.ccn").write_text('let loaded = 5\nprint("hello from work")\n')
        tally.check(":save replaces nobody's work", missing(s.enter(":save work.ccn"), "choose another name"))
        tally.check(":load", missing(s.enter(":load work.ccn"), "hello from work"))
        tally.check("names of what was loaded", missing(s.enter("loaded"), "5"))
        (s.home / "wrong.ccn").write_text("let a = 1\nlet b = nothing_here\n")
        tally.check(":load of a wrong script", missing(s.enter(":load wrong.ccn"), "wrong.ccn:2:9"))
        tally.check(":load of no file", missing(s.enter(":load none.ccn"), "cannot read 'none.ccn'"))
        s.enter('save("p.npy", p)')
        tally.check("files of scripts", missing(s.enter('load("p.npy")'), "-0.75"))
        s.enter("let m = f32(size(dp)) * ones(f32[2])")
        s.enter("assert size(dp) > 2")
        out = s.enter(":ranks 1")
        tally.check(":ranks that do not work", missing(out, "CCN0601", "goes on as it was"))
        tally.check("the session after it", missing(s.enter("m"), "4.0", "4 ranks"))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "begin.ccn"
        path.write_text("mesh (dp)\nlet x = 7\n")
        with Shell(build, "repl", str(path)) as s:
            tally.check("repl FILE", missing(s.enter("x"), "7"))


# ---- the fifteen wrong lines -----------------------------------------------------------------------------------

# typed by a newcomer: what is wrong, and the cure
WRONG = [
    ("matmull(w, x)", "CCN0801", "did you mean `matmul`?"),
    ("totl + 1", "CCN0801", "did you mean `total`?"),
    ("print(total", "CCN0004", "`(` is not closed"),
    ("x * h", "CCN0101", "`h` is f16"),
    ("matmul(x, w)", "CCN0305", "its dims are b* m k+"),
    ("x + ones(f32[5])", "CCN0305", ""),
    ("program f(x: f32[N]) { return allreduce(sum, x) }", "CCN0212", ""),
    ("program f(x: f32[N] local, y: f32[N] sliced(0)) { return x + y }", "CCN0203", ""),
    ("program f(g: f32[N] local, p: f32[N]) { return update(p, p - g) }", "CCN0222", "allreduce"),
    ("allreduce(sum, x)", "CCN0804", "put it into a program"),
    ("y = 3", "CCN0801", "let y = ..."),
    ("if total { print(1) }", "CCN0805", "compare it"),
    ("x[10]", "CCN0309", "3 elements"),
    ("total[0]", "CCN0805", ""),
    ("let s = \"abc", "CCN0003", ""),
    ("zeros(float32[3])", "CCN0801", "f32"),
    ("zeros(3)", "CCN0800", "zeros(f32["),
    ("step(p)", "CCN0800", "its parameters are: g, p, lr"),
    ("def f(x): return x", "CCN0001", "fn"),
    ("x.shap", "CCN0801", "did you mean `shape`?"),
    ("x.sum()", "CCN0801", "sum(x)"),
    ("program f(x: f32) { print(x) }", "CCN0801", "is for scripts"),
    ("x = x + 1.5.6", "CCN0005", ""),
    ("sum(x, axis=0)", "CCN0001", "name: value"),
    ("if (total = 3) { }", "CCN0001", "`==` compares"),
    ("if total > 3: print(1)", "CCN0001", "a block stands in braces"),
    ("1 / 0", "CCN0810", ""),
    ("true + 1", "CCN0805", "int("),
    ("for i in 10 { print(i) }", "CCN0805", "0..n"),
    ("import numpy", "CCN0001", "import \"std/optim\""),
]


def cure_of(out):
    """The help or the note of a diagnostic."""
    m = re.search(r"(?:= help:|= note:|note:) (.*)", out)
    return m[1] if m else None


def check_wrong(tally, build):
    with prepared(build) as s:
        s.enter("let total = 1")
        s.enter("let x = ones(f32[3])")
        s.enter("let h = ones(f16[3])")
        s.enter("let w = ones(f32[2, 4])")
        for typed, code, cure in WRONG:
            opens = code == "CCN0004"
            if opens:
                s.enter(typed, GOES_ON)
            out = s.enter("" if opens else typed)
            problem = missing(out, f"[{code}]", cure)
            if not problem and not cure_of(out) and not opens:
                problem = f"no cure is offered:\n{out}"
            tally.check(typed, problem)
            tally.check(f"the session after {typed}", missing(s.enter("total"), "1"))


# ---- keys ------------------------------------------------------------------------------------------------------

# typed before Tab, then what the line is; or what is listed
COMPLETIONS = [
    (":gra", ":graph"),
    ("matm", "matmul"),
    ("let z = per_r", "let z = per_rank"),
    ("gs_val", "gs_value"),
    ("optim.lam", "optim.lamb"),
    ("x.sha", "x.shape"),
    ("step.gs", "step.gsum"),
    (":watch step.gs", ":watch step.gsum"),
    (":graph ste", ":graph step"),
    (":doc reduces", ":doc reducescatter"),
    (":set exc", ":set excerpt"),
    ('load("some_fi', 'load("some_file.npy"'),
    (":load scri", ":load script.ccn"),
    ("f32[3] loc", "f32[3] local"),
    ("print(whil", "print(while"),
]


def check_completion(tally, build):
    with prepared(build) as s:
        (s.home / "some_file.npy").write_text("")
        (s.home / "script.ccn").write_text("")
        s.enter("let gs_value = 1")
        s.enter("let x = p")
        s.enter('import "std/optim" as optim')
        for typed, line in COMPLETIONS:
            row = s.prompts - 1
            s.terminal.send(typed + TAB)
            try:
                s.terminal.wait_for(lambda screen: "".join(screen.lines[row]).rstrip() == PROMPT + line, line)
                problem = None
            except Timeout as e:
                problem = e
            tally.check(f"{typed} Tab", problem)
            s.terminal.send(CTRL_C)
            s.prompt()
        s.terminal.send("all" + TAB + TAB)
        s.shows("allreduce")
        s.shows("allgather")
        tally.check("a list of candidates", None)
        s.terminal.send(CTRL_C)
        s.prompt()
        s.enter("fn ind(x) {", GOES_ON)
        s.terminal.send(TAB + "return x")
        s.shows("...>   return x")
        tally.check("Tab indents", None)


def check_history(tally, build):
    with tempfile.TemporaryDirectory() as home:
        with Shell(build, home=home) as s:
            s.enter("let first = 1")
            type_lines(s, "fn add(a,\n  b) {\n  return a + b\n}")
            s.enter("first + 41")
            s.terminal.send(UP)
            s.shows(PROMPT + "first + 41")
            tally.check("the entry before", missing(s.enter(""), "42"))
            s.leave()
        file = pathlib.Path(home) / ".local/state/ccn/history"
        tally.check("the history's file", None if file.exists() else "it is not there")
        mode = stat.S_IMODE(file.stat().st_mode)
        tally.check("nobody else reads it", None if mode == 0o600 else f"{mode:o}")
        with Shell(build, home=home) as s:
            s.terminal.send(UP)          # :quit
            s.terminal.send(UP)          # first + 41
            s.terminal.send(UP)          # the function, as one entry
            s.shows("return a + b")
            s.terminal.send("\n")
            s.prompt()
            tally.check("an entry of several lines from the last session", missing(s.enter("add(1, 2)"), "3"))
            s.leave()
    with tempfile.TemporaryDirectory() as home:
        state = pathlib.Path(home) / "state"
        with Shell(build, home=home, XDG_STATE_HOME=str(state)) as s:
            s.enter("1 + 1")
            s.leave()
        tally.check("XDG_STATE_HOME", None if (state / "ccn/history").exists() else "no history there")
        with Shell(build, home=home, XDG_STATE_HOME="/proc/nowhere") as s:
            tally.check("a folder that cannot be made", missing(s.enter("1 + 1"), "2"))
            s.leave()


def check_interrupts(tally, build):
    with prepared(build) as s:
        s.enter("let i = 0")
        s.terminal.send("while true { i = i + 1 }\n")
        time.sleep(0.3)
        s.terminal.send(CTRL_C)
        s.prompt()
        tally.check("Ctrl-C ends a loop", missing(s.text(), "interrupted"))
        tally.check("the session after it", missing(s.enter("i > 0"), "true"))
        s.terminal.send("let big = matmul(ones(f32[3000, 3000]), ones(f32[3000, 3000]))\n")
        time.sleep(0.3)
        start = time.monotonic()
        s.terminal.send(CTRL_C)
        s.prompt()
        seconds = time.monotonic() - start
        tally.check("Ctrl-C ends an op", None if seconds < 5 else f"after {seconds:.1f} s")
        tally.check("what it would have made is not there", missing(s.enter("big"), "CCN0801"))
        s.terminal.send("let half = [1, 2")
        s.shows("let half = [1, 2")
        s.terminal.send(CTRL_C)
        s.prompt()
        tally.check("Ctrl-C clears the line", missing(s.enter("1 + 1"), "2"))
        s.enter("fn open(x) {", GOES_ON)
        s.terminal.send("  return" + CTRL_C)
        s.prompt()
        tally.check("Ctrl-C clears an open entry", missing(s.enter("2 + 2"), "4"))
        tally.check("it ends well", None if s.leave() == 0 else f"{s.terminal.status}")
    if not edits(build):
        return
    with Shell(build) as s:
        s.terminal.send("let half")
        s.shows("let half")
        os.kill(s.terminal.pid, signal.SIGTERM)
        status = s.terminal.finish()
        tally.check("SIGTERM", None if status == -signal.SIGTERM else f"{status}")
    check_suspension(tally, build)


def check_suspension(tally, build):
    """Ctrl-Z and fg, below a shell with job control (a process group without one is never stopped)."""
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, HOME=home, TERM="xterm", LC_ALL="C.UTF-8", PS1="$ ")
        bash = Terminal(["/bin/bash", "--norc", "-i"], env, home)
        try:
            bash.send(f"{build.ccn}\n")
            bash.wait_for(lambda screen: PROMPT.strip() in screen.text(), "the prompt")
            bash.send("1 +")
            bash.wait_for(lambda screen: PROMPT + "1 +" in screen.text(), "what was typed")
            bash.send("\x1a")
            bash.wait_for(lambda screen: "Stopped" in screen.text(), "Stopped")
            bash.send("fg\n")
            bash.wait_for(lambda screen: screen.text().count(PROMPT + "1 +") == 2, "the line again")
            bash.send(" 41\n")
            bash.wait_for(lambda screen: "\n42" in screen.text(), "its value")
            tally.check("Ctrl-Z, and on", None)
        finally:
            bash.close()


# ---- terminals and pipes -----------------------------------------------------------------------------------------

def check_terminals(tally, build):
    with Shell(build) as s:
        s.enter("nothing_here")
        tally.check("colour", None if s.terminal.screen.colours else "no colour")
    with Shell(build, NO_COLOR="1") as s:
        s.enter("nothing_here")
        s.enter("ones(f32[3])")
        tally.check("NO_COLOR", None if not s.terminal.screen.colours else "colour")
    with Shell(build, term="dumb") as s:
        tally.check("a dumb terminal", missing(s.enter("nothing_here"), "CCN0801") or
                    (None if not s.terminal.screen.colours else "colour"))
        s.terminal.send("half a line")
        time.sleep(0.2)
        s.terminal.send(CTRL_C)
        s.prompt()
        tally.check("Ctrl-C on a dumb terminal", missing(s.enter("1 + 1"), "2"))
        s.terminal.send(CTRL_D)
        tally.check("Ctrl-D on a dumb terminal", None if s.terminal.finish() == 0 else f"{s.terminal.status}")
    with Shell(build, columns=40) as s:
        out = s.enter("iota(f32[100, 100]) * 1000")
        tally.check("a narrow terminal", None if max(map(len, out.split("\n"))) <= 40 else out)


def check_pipes(tally, build):
    done = run([build.ccn], input=b"let a = 20\nfn f(x) {\n  return x + 1\n}\n\nf(a)\n:type a\nones(f32[2])")
    want = "21\na whole number\nf32[2]  8 B\n[1.0, 1.0]\n"
    tally.check("a pipe", None if (done.status, done.out, done.err) == (0, want, "") else done.out + done.err)
    done = run([build.ccn, "repl"], input=b"totl\n1 + 1\n")
    good = done.status == 1 and done.out == "2\n" and "CCN0801" in done.err
    problem = None if good else f"{done.status}\n{done.out}{done.err}"
    tally.check("an error in a pipe", problem or (None if "\x1b" not in done.err else "colour"))
    done = run([build.ccn], input=b"print(1\n")
    tally.check("an open entry in a pipe", None if done.status == 1 and "CCN0004" in done.err else done.err)
    done = run([build.ccn, "repl", "/no/such/file.ccn"], input=b"")
    problem = None if done.status == 1 and "cannot read" in done.err else f"{done.status} {done.err}"
    tally.check("repl of no file", problem)


def check_examples(tally, build):
    """What :doc shows to type works; every op and function has something to show."""
    table = (ROOT / "repl/examples.def").read_text()
    rows = re.findall(r'^EXAMPLE\("(\w+)", "[^"]*", "((?:[^"\\]|\\.)*)"\)', table, re.M)
    lines = ["mesh (dp)"]
    for name, text in rows:
        lines += [f'print("@@ {name}")', text.replace('\\"', '"')]
    done = run([build.ccn, "repl", "-n", "2"], input="\n".join(lines).encode())
    tally.check("examples of :doc", None if done.status == 0 and done.out.count("@@") == len(rows) > 90 else done.err)
    ops = re.findall(r'^OP\(\w+, "(\w+)", (\w+),', (ROOT / "lang/ops.def").read_text(), re.M)
    ops = {name for name, kind in ops if kind not in ("STRUCT", "HOST")}
    lacking = sorted(ops - {name for name, _ in rows})
    tally.check("every op has an example", f"these have none: {lacking}" if lacking else None)


def check_start(tally, build):
    times = []
    for _ in range(9):
        start = time.monotonic()
        with Shell(build) as s:
            times.append((time.monotonic() - start) * 1000)
            s.leave()
    tally.note(f"{statistics.median(times):.1f} ms to the prompt")
    tally.check("start to prompt", None if min(times) < 250 else f"{min(times):.0f} ms")


def suite(build, options):
    tally = Tally("repl")
    with_readline = edits(build)
    for check in (check_values, check_lines, check_commands, check_scripts, check_wrong, check_completion,
                  check_history, check_interrupts, check_terminals, check_pipes, check_examples, check_start):
        if check in (check_completion, check_history) and not with_readline:
            tally.skip(check.__name__, "this ccn was built without readline")
            continue
        try:
            check(tally, build)
        except (Timeout, OSError) as e:
            tally.fail(check.__name__, e)
    return tally

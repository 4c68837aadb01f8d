# cli.py: the command: words, exit statuses, streams, files, signals, the terminal.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import pty
import select
import signal
import stat
import subprocess
import tempfile
import time

from .core import Tally

GOOD = 'print("hello")\n'
BAD = "let a = nothing_here\n"
LOOP = "let i = 0\nwhile true { i = i + 1 }\n"
SCHEDULED = """mesh (dp)
program f(g: f32[N] local, p: f32[N]) {
  x = allreduce(sum, g)
  return update(p, p - 0.5 * x)
}
schedule s(x) {
  (rs, ag) = split(x)
  (c, gs)  = reorder(after(ag), ag)
  fuse(rs, c, gs)
}
let fast = f with s(f.x)
fast(ones(f32[6] local), ones(f32[6]))
"""


class Folder:
    """A temporary folder with a few scripts."""

    def __enter__(self):
        self.held = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.held.name)
        self.write("good.ccn", GOOD)
        self.write("bad.ccn", BAD)
        self.write("loop.ccn", LOOP)
        self.write("scheduled.ccn", SCHEDULED)
        self.write("refused.ccn", SCHEDULED.replace("fuse(rs, c, gs)", "fuse(rs, gs)"))
        self.write("args.ccn", "for a in args { print(a) }\n")
        self.write("save.ccn", 'save("out.npy", zeros(f32[3]))\n')
        self.write("nowhere.ccn", 'save("no/such/folder/out.npy", zeros(f32[3]))\n')
        self.write("missing.ccn", 'let x = load("missing.npy")\nprint("{norm(x)}")\n')
        self.write("endless.ccn", 'let x = load("/dev/zero")\n')
        return self

    def __exit__(self, *_):
        self.held.cleanup()

    def write(self, name, text):
        (self.path / name).write_text(text)


# words, exit status, texts that must be in stdout, texts that must be in stderr
TABLE = [
    ([], 0, [], []),
    (["--help"], 0, ["usage: ccn", "run", "check", "dump", "explain", "exit status"], []),
    (["help"], 0, ["usage: ccn"], []),
    (["help", "run"], 0, ["usage: ccn run FILE", "--watch", "example"], []),
    (["help", "rnu"], 2, [], ["did you mean run?"]),
    *[([c, "--help"], 0, [f"usage: ccn {c}", "example:\n  ccn "], []) for c in
      ("run", "check", "dump", "explain", "algo", "plan", "machine", "version")],
    (["run", "-h"], 0, ["usage: ccn run"], []),
    (["--version"], 0, ["ccn 0."], []),
    (["version"], 0, ["ccn 0."], []),
    (["rnu", "good.ccn"], 2, [], ["unknown command 'rnu'", "did you mean run?"]),
    (["chekc"], 2, [], ["did you mean check?"]),
    (["xyzzy"], 2, [], ["ccn --help"]),
    (["good.ccn"], 2, [], ["ccn run good.ccn"]),
    (["run"], 2, [], ["ccn run FILE"]),
    (["run", "--wach", "x", "good.ccn"], 2, [], ["did you mean --watch?"]),
    (["run", "--check-nan=yes", "good.ccn"], 2, [], ["no value"]),
    (["run", "good.ccn", "-n"], 2, [], ["missing after '-n'"]),
    (["run", "good.ccn", "-n", "0"], 2, [], ["from 1 to 65536"]),
    (["run", "good.ccn", "-n", "65"], 2, [], ["from 1 to 64"]),
    (["run", "good.ccn", "-n", "4x"], 2, [], ["from 1 to 65536"]),
    (["run", "good.ccn", "extra"], 2, [], ["'extra'", "--"]),
    (["run", "good.ccn"], 0, ["hello\n"], []),
    (["run", "-n", "3", "good.ccn"], 0, ["hello\n"], []),
    (["run", "-n3", "good.ccn"], 0, ["hello\n"], []),
    (["run", "good.ccn", "--ranks=3", "--check-nan"], 0, ["hello\n"], []),
    (["run", "args.ccn", "--", "one", "--two", "-n"], 0, ["one\n--two\n-n\n"], []),
    (["run", "args.ccn"], 0, [], []),
    (["run", "bad.ccn"], 1, [], ["CCN0801", "bad.ccn:1:"]),
    (["run", "none.ccn"], 3, [], ["cannot read 'none.ccn'"]),
    (["run", "."], 3, [], ["cannot read '.'"]),
    (["run", "missing.ccn"], 3, [], ["missing.npy"]),
    (["run", "nowhere.ccn"], 3, [], ["out.npy"]),
    (["run", "endless.ccn"], 3, [], ["endless.ccn:1:", "the file is too large", "256 MiB"]),
    (["check", "/dev/zero"], 3, [], ["256 MiB"]),
    (["check", "good.ccn"], 0, [], []),
    (["check", "good.ccn", "args.ccn"], 0, [], []),
    (["check", "good.ccn", "bad.ccn"], 1, [], ["CCN0801"]),
    (["check", "bad.ccn", "none.ccn"], 3, [], ["CCN0801", "none.ccn"]),
    (["check"], 2, [], ["ccn check FILE"]),
    (["dump", "good.ccn"], 2, [], ["--stage"]),
    (["dump", "good.ccn", "--stage", "grph"], 2, [], ["did you mean graph?"]),
    (["dump", "good.ccn", "--stage", "ast"], 0, ["print"], []),
    (["dump", "bad.ccn", "--stage", "graph"], 1, [], ["CCN0801"]),
    (["dump", "scheduled.ccn", "--stage", "split"], 0,
     ["# f, step 1: split, scheduled.ccn:7", "%3 \"x.ag\" = allgather"], []),
    (["dump", "scheduled.ccn", "--stage", "2"], 0,
     ["# f, step 2: reorder, scheduled.ccn:8", "\"sub.ag\" = allgather"], []),
    (["dump", "scheduled.ccn", "--stage", "0"], 0, ["# f, step 0, scheduled.ccn:11", "= allreduce"], []),
    (["dump", "scheduled.ccn", "--stage", "overlap"], 2, [], ["no program of the script has a stage 'overlap'"]),
    (["dump", "scheduled.ccn", "--stage", "4"], 2, [], ["no program of the script has a stage '4'"]),
    (["dump", "scheduled.ccn", "--stage", "ovrlap"], 2, [], ["unknown stage 'ovrlap'"]),
    (["dump", "scheduled.ccn", "--dump-after", "reorder", "--dump-after", "fuse"], 0,
     ["step 2: reorder", "step 3: fuse", "fuse: 1"], []),
    (["dump", "scheduled.ccn", "--dump-after", "all"], 0, ["step 1: split", "step 2: reorder", "step 3: fuse"], []),
    (["dump", "scheduled.ccn", "--dump-after", "parse"], 2, [], ["unknown statement 'parse'"]),
    (["dump", "scheduled.ccn", "--dump-after", "1"], 2, [], ["unknown statement '1'"]),
    (["dump", "scheduled.ccn", "--time-passes"], 0, [], ["ms", "step 1: split", "step 3: fuse"]),
    (["dump", "scheduled.ccn", "--time-passes", "--json"], 0, [],
     ['{"pass": "split", "program": "f", "step": 1, "ms": ']),
    (["dump", "refused.ccn", "--dump-after", "split"], 1, ["step 1: split"], ["CCN0404"]),
    (["dump", "scheduled.ccn", "--diff", "1..2"], 0,
     ["--- f, step 1: split, scheduled.ccn:7\n+++ f, step 2: reorder, scheduled.ccn:8\n",
      "-  x.ag = allgather x.rs {over: dp} : f32[N]\n-  mul = mul 0.5, x.ag : f32[N]\n-  sub = sub p, mul : f32[N]\n"
      "-  update = update p, sub : f32[N]\n+  mul = mul 0.5, x.rs : f32[N] sliced(0) over dp\n"
      "+  sub = sub p, mul : f32[N] sliced(0) over dp\n+  sub.ag = allgather sub {over: dp} : f32[N]\n"
      "+  update = update p, sub.ag : f32[N]\n   return update\n"], []),
    (["dump", "scheduled.ccn", "--diff", "graph..split"], 0, ["-  x = allreduce g", "+  x.ag = allgather x.rs"], []),
    (["dump", "scheduled.ccn", "--diff", ".."], 0, ["--- f, step 0, ", "+++ f, step 3: fuse, ", "fuse: 1"], []),
    (["dump", "scheduled.ccn", "--diff", "2..2"], 0, [], []),
    (["dump", "scheduled.ccn", "--diff", "split"], 2, [], ["--diff takes two stages"]),
    (["dump", "scheduled.ccn", "--diff", "split..dead"], 2, [], ["no program of the script has a stage 'split..dead'"]),
    (["run", "scheduled.ccn", "-n", "2", "--report", "-"], 0,
     ['"resident": [', '"name": "x.rs"', '"sent": [12, 12]'], []),
    (["run", "scheduled.ccn", "--report", "no/such/folder/r.json"], 3, [], ["cannot write 'no/such/folder/r.json'"]),
    (["explain"], 0, ["CCN0001", "CCN0203", "CCN0801"], []),
    (["cache", "ls"], 0, ["kernels, ", " bytes in /"], []),
    (["cache", "look"], 2, [], ["cache takes ls, verify or clear"]),
    (["machine"], 0, ["h200", "cpu-100g", "100 Gb/s Ethernet"], []),
    (["machine", "h200"], 0, ["machine h200\n", "link nvlink ranks 8"], []),
    (["machine", "h2oo"], 2, [], ["no such machine", "`ccn machine` lists them"]),
    (["machine", "--measure"], 0, ["machine this\n", "link memory"], []),
    (["machine", "good.ccn"], 1, [], ["this is no machine: line 1"]),
    (["plan", "good.ccn", "-D", "N=3"], 2, [], ["-D needs a program"]),
    (["plan", "good.ccn", "--schedule", "s"], 2, [], ["--schedule needs a program"]),
    (["plan", "good.ccn", "--machine", "h2oo"], 1, [], ["there is no machine `h2oo`", "there are cpu-100g"]),
    (["plan", "good.ccn", "--machine", "./none.txt"], 3, [], ["cannot read './none.txt'"]),
    (["plan", "good.ccn"], 0, ["no such program is called"], []),
    (["run", "good.ccn", "--backend", "sim"], 0, ["hello\n", "virtual time of 1 rank of h200: 0 ms"], []),
    (["algo"], 0, ["oneshot", "ring", "hierarchical"], []),
    (["algo", "allreduce"], 2, [], ["--algorithm", "`ccn algo` lists them"]),
    (["algo", "allreduce", "-n", "5", "--algorithm", "ring"], 0, ["rank 4", "4> +in3 >1"], []),
    (["algo", "allreduce", "-a", "ring", "--text"], 0, ["ranks 4", "order ring", "recv-reduce-send in[2] from 3"], []),
    (["algo", "shift", "-a", "pairs", "-n", "3", "--by", "-1", "--text"], 0, ["source 1 2 0"], []),
    (["algo", "reduce", "-a", "tree", "-n", "3", "--root", "3"], 2, [], ["root 3 of 3 ranks"]),
    (["algo", "reducescatter", "-a", "tree"], 2, [], ["does not do this", "there are oneshot, pairs, ring"]),
    (["algo", "allreduce", "-a", "rign"], 2, [], ["there is no algorithm `rign`"]),
    (["algo", "alreduce", "-a", "ring"], 2, [], ["there is no collective `alreduce`"]),
    (["algo", "allreduce", "-a", "hierarchical", "-n", "6", "--group", "4"], 2, [], ["not of equal size"]),
    (["algo", "bad.ccn"], 1, [], ["this is no algorithm: line 1: algorithm expected, not `let`"]),
    (["algo", "none.xml"], 3, [], ["cannot read 'none.xml'"]),
    (["explain", "CCN0203"], 0, ["```ccn"], []),
    (["explain", "203"], 0, ["```ccn"], []),
    (["explain", "ccn0203"], 0, ["```ccn"], []),
    (["explain", "9999"], 2, [], ["9999"]),
]


def check_table(tally, build, folder):
    for words, status, out, err in TABLE:
        done = build.run_ccn(*words, cwd=folder.path)
        problem = done.crashed()
        if not problem and done.status != status:
            problem = f"exit status {done.status}, not {status}\n{done.out[:500]}{done.err[:1000]}"
        for text in out:
            if not problem and text not in done.out:
                problem = f"{text!r} is not in the output:\n{done.out[:1500]}"
        for text in err:
            if not problem and text not in done.err:
                problem = f"{text!r} is not in the errors:\n{done.err[:1500]}"
        if not problem and status and done.out and not out:
            problem = f"text on stdout: {done.out[:200]}"
        if not problem and "\x1b" in done.out + done.err:
            problem = "an escape sequence, though nothing is a terminal"
        tally.check("ccn " + " ".join(words), problem)


def check_json(tally, build, folder):
    done, found, rest = build.diagnostics("check", "bad.ccn", "--json", cwd=folder.path)
    keys = {"severity", "code", "message", "file", "line", "column", "end_line", "end_column", "label", "notes", "hint"}
    problem = None
    if rest or len(found) != 1 or not keys <= set(found[0]):
        problem = f"{found} {rest}"
    elif (found[0]["file"], found[0]["line"], found[0]["column"]) != ("bad.ccn", 1, 9):
        problem = f"{found[0]}"
    tally.check("check --json", problem)
    done, found, rest = build.diagnostics("run", "none.ccn", "--json", cwd=folder.path)
    tally.check("run --json of a missing file", None if len(found) == 1 and not rest else done.err)
    done = build.run_ccn("explain", "CCN0203", "--json")
    try:
        page = json.loads(done.out)
        problem = None if page["code"] == "CCN0203" and page["page"] and page["title"] else done.out
    except (ValueError, KeyError):
        problem = done.out + done.err
    tally.check("explain --json", problem)


def check_files(tally, build, folder):
    def names():
        return sorted(p.name for p in folder.path.iterdir() if "out" in p.name)

    done = build.run_ccn("run", "save.ccn", cwd=folder.path)
    tally.check("save", None if done.status == 0 and names() == ["out.npy"] else f"{done.err}{names()}")
    # A second save keeps the mode, and a link stays a link.
    target = folder.path / "out-target.npy"
    (folder.path / "out.npy").rename(target)
    (folder.path / "out.npy").symlink_to(target.name)
    target.chmod(0o640)
    target.write_bytes(b"old")
    done = build.run_ccn("run", "save.ccn", cwd=folder.path)
    mode = stat.S_IMODE(target.stat().st_mode)
    problem = None
    if done.status or not (folder.path / "out.npy").is_symlink() or mode != 0o640 or target.read_bytes() == b"old":
        problem = f"{done.err} mode {mode:o}"
    tally.check("save through a link", problem)
    done = build.run_ccn("run", "-", input=GOOD.encode())
    tally.check("run - reads standard input", None if done.out == "hello\n" else done.out + done.err)
    done = build.run_ccn("run", "-", input=BAD.encode())
    tally.check("its errors name it", None if "<stdin>:1:" in done.err else done.err)
    full = pathlib.Path("/dev/full")
    if full.exists():
        with open(full, "w") as device:
            p = subprocess.run([build.ccn, "run", folder.path / "good.ccn"], stdout=device, stderr=subprocess.PIPE)
        problem = None if p.returncode == 3 and b"No space left" in p.stderr else f"{p.returncode} {p.stderr}"
        tally.check("a full disk below stdout", problem)


def check_interrupt(tally, build, folder):
    p = subprocess.Popen([build.ccn, "run", folder.path / "loop.ccn"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    try:
        _, err = p.communicate(timeout=30)
        problem = None if p.returncode == -signal.SIGINT and err == b"ccn: interrupted by Ctrl-C\n" else f"{p.returncode} {err}"
    except subprocess.TimeoutExpired:
        p.kill()
        problem = "Ctrl-C did not end it"
    tally.check("Ctrl-C", problem)


def on_terminal(command, env):
    """Output of a command whose three streams are a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.clear()
        os.environ.update(env)
        try:
            os.execv(command[0], command)
        finally:
            os._exit(127)
    data = b""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ready, _, _ = select.select([terminal], [], [], 1)
        if not ready:
            continue
        try:
            more = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        data += more
    os.close(terminal)
    os.waitpid(child, 0)
    return data.decode("utf-8", "replace")


def check_terminal(tally, build, folder):
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    env["TERM"] = "xterm"
    for command in ([str(build.ccn), "check", str(folder.path / "bad.ccn")],
                    [str(build.ccn), "dump", str(folder.path / "scheduled.ccn"), "--diff", "1..2"]):
        env.pop("NO_COLOR", None)
        shown = on_terminal(command, env)
        tally.check(f"colour on a terminal: {command[1]}", None if "\x1b[" in shown else "no colour")
        env["NO_COLOR"] = "1"
        tally.check(f"NO_COLOR: {command[1]}", None if "\x1b[" not in on_terminal(command, env) else "colour")


def suite(build, options):
    tally = Tally("cli")
    with Folder() as folder:
        check_table(tally, build, folder)
        check_json(tally, build, folder)
        check_files(tally, build, folder)
        check_interrupt(tally, build, folder)
        check_terminal(tally, build, folder)
    return tally

# tools.py: ccn fmt, ccn doctor, completion in bash and zsh, the manual page.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

from .core import ROOT, Tally, files_below, run
from .terminal import Terminal, Timeout

UGLY = "let  a=1+2   # three\n\n\n\nif a>2 {\nprint( \"{a}\" )\n}\nlet b = [ 1,2 ]"
PRETTY = "let a = 1 + 2  # three\n\nif a > 2 {\n  print(\"{a}\")\n}\nlet b = [1, 2]\n"
WRONG = "let a = (1\n"


def problem_of(done, status, out=None, err=None):
    if done.crashed():
        return done.crashed()
    if done.status != status:
        return f"exit status {done.status}, not {status}\n{done.out}{done.err}"
    if out is not None and done.out != out:
        return f"stdout is\n{done.out}\nnot\n{out}"
    if err is not None and err not in done.err:
        return f"{err!r} is not in\n{done.err}"
    return None


# ---- fmt -----------------------------------------------------------------------------------------------------

def check_fmt(tally, build):
    with tempfile.TemporaryDirectory() as held:
        folder = pathlib.Path(held)
        ugly, pretty, wrong = (folder / n for n in ("ugly.ccn", "pretty.ccn", "wrong.ccn"))

        def fmt(*words, **settings):
            return build.run_ccn("fmt", *words, cwd=folder, **settings)

        ugly.write_text(UGLY)
        pretty.write_text(PRETTY)
        wrong.write_text(WRONG)
        tally.check("fmt --check lists", problem_of(fmt("--check", "ugly.ccn", "pretty.ccn"), 1, "ugly.ccn\n"))
        tally.check("fmt --check of what is right", problem_of(fmt("--check", "pretty.ccn"), 0, ""))
        tally.check("fmt --stdout", problem_of(fmt("--stdout", "ugly.ccn"), 0, PRETTY))
        tally.check("fmt -", problem_of(fmt("-", input=UGLY.encode()), 0, PRETTY))
        tally.check("fmt --check -", problem_of(fmt("--check", "-", input=UGLY.encode()), 1, "<stdin>\n"))
        tally.check("they change nothing", None if ugly.read_text() == UGLY else ugly.read_text())
        check_diff(tally, fmt, folder)
        ugly.chmod(0o640)
        link = folder / "link.ccn"
        link.symlink_to("ugly.ccn")
        os.utime(pretty, (1, 1))
        tally.check("fmt", problem_of(fmt("link.ccn", "pretty.ccn"), 0, "", ""))
        tally.check("the file", None if ugly.read_text() == PRETTY else ugly.read_text())
        mode = stat.S_IMODE(ugly.stat().st_mode)
        tally.check("its mode and its link", None if mode == 0o640 and link.is_symlink() else f"{mode:o}")
        tally.check("what is right is left alone", None if pretty.stat().st_mtime == 1 else "it was written")
        left = sorted(p.name for p in folder.iterdir())
        tally.check("nothing is left", None if left == ["link.ccn", "pretty.ccn", "ugly.ccn", "wrong.ccn"] else left)
        ugly.write_text(UGLY)
        tally.check("a syntax error", problem_of(fmt("wrong.ccn", "ugly.ccn"), 1, "", "CCN0004"))
        tally.check("the wrong file stays", None if wrong.read_text() == WRONG else wrong.read_text())
        tally.check("the others are done", None if ugly.read_text() == PRETTY else ugly.read_text())
        tally.check("no file", problem_of(fmt("none.ccn"), 3, "", "cannot read 'none.ccn'"))
        code = json.loads(fmt("--json", "wrong.ccn").err)["code"]
        tally.check("a syntax error as JSON", None if code == "CCN0004" else code)


def check_diff(tally, fmt, folder):
    """What --diff shows is what `patch` needs."""
    done = fmt("--diff", "ugly.ccn")
    problem = problem_of(done, 1)
    for line in ("--- ugly.ccn", "-let  a=1+2   # three", "+let a = 1 + 2  # three", "\\ No newline at end of file"):
        if not problem and line not in done.out.splitlines():
            problem = f"{line!r} is not in\n{done.out}"
    tally.check("fmt --diff", problem)
    long = "".join(f"let a{i} = {i}\n" for i in range(40))
    text = long.replace("let a5 = 5\n", "let a5=5\n").replace("let a30 = 30\n", "\n\n\nlet a30  = 30\n") + UGLY
    (folder / "patched.ccn").write_text(text)
    done = fmt("--diff", "patched.ccn")
    if not shutil.which("patch"):
        tally.skip("patch", "it is not there")
    else:
        patch = run(["patch", "--quiet", "patched.ccn"], cwd=folder, input=done.out.encode())
        want = fmt("--stdout", "patched.ccn").out
        got = (folder / "patched.ccn").read_text()
        problem = None if patch.status == 0 and got == want else patch.out + patch.err + done.out
        tally.check("patch takes the diff", problem)
    for left in folder.glob("patched.ccn*"):
        left.unlink()


def check_fixed_points(tally, build):
    """Our own files are laid out so."""
    paths = [p for d in ("examples", "stdlib") for p in files_below(ROOT / d, "*.ccn")]
    tally.check("examples and stdlib", problem_of(build.run_ccn("fmt", "--check", *paths), 0, ""))


# ---- doctor --------------------------------------------------------------------------------------------------

PARTS = ["interpreter", "readline", "llvm", "mpi", "cuda", "nccl", "cores", "memory", "stack", "state folder",
         "cache folder", "locale", "terminal"]


def check_doctor(tally, build):
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "", "LC_ALL": "C.UTF-8"}
        done = build.run_ccn("doctor", env=env)
        problem = problem_of(done, 0)
        for part in PARTS:
            if not problem and not re.search(rf"^  (ok|-|BAD) +{part} ", done.out, re.M):
                problem = f"nothing about {part}:\n{done.out}"
        if not problem and "BAD" in done.out:
            problem = done.out
        tally.check("doctor", problem)
        found = {}
        for line in build.run_ccn("doctor", "--json", env=env).out.splitlines():
            value = json.loads(line)
            found[value["name"]] = value
        problem = None if set(PARTS) <= set(found) else f"only {sorted(found)}"
        for value in found.values():
            if not problem and (value["state"] not in ("ok", "absent", "bad") or not value["about"]):
                problem = f"{value}"
            if not problem and value["state"] != "ok" and not value["cure"]:
                problem = f"no cure: {value}"
        tally.check("doctor --json", problem)
        done = build.run_ccn("doctor", env=dict(env, XDG_STATE_HOME="/proc/nowhere", LC_ALL="C"))
        for what in ("BAD  state folder", "-    locale", "export XDG_STATE_HOME="):
            tally.check(f"doctor: {what}", None if what in done.out else done.out)
        tally.check("it makes no folders", None if not any(pathlib.Path(home).iterdir()) else "there is something")


# ---- completion and manual -------------------------------------------------------------------------------------

def complete(build, *words):
    script = (f"PATH={build.ccn.parent}:$PATH; . {ROOT}/repl/completion/ccn.bash; COMP_WORDS=({' '.join(words)}); "
              f"COMP_CWORD={len(words) - 1}; _ccn; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return subprocess.run(["bash", "--norc", "-c", script], cwd=ROOT, capture_output=True, text=True).stdout.split()


def check_completion(tally, build):
    cases = [
        (["ccn", "ru"], ["run"]),
        (["ccn", "''"], ["run", "check", "dump", "repl", "fmt", "explain", "doctor", "version"]),
        (["ccn", "run", "--wa"], ["--watch"]),
        (["ccn", "fmt", "--"], ["--check", "--diff", "--stdout", "--json", "--help"]),
        (["ccn", "dump", "x.ccn", "--stage", "gr"], ["graph"]),
        (["ccn", "explain", "CCN020"], ["CCN0201", "CCN0203"]),
        (["ccn", "run", "examples/dig"], ["examples/digits.ccn"]),
    ]
    for words, wanted in cases:
        got = complete(build, *words)
        tally.check(f"bash: {' '.join(words)}", None if set(wanted) <= set(got) else f"{got}")
    if shutil.which("zsh"):
        check_zsh(tally, build)
    else:
        tally.skip("zsh", "it is not there")


def check_zsh(tally, build):
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": f"{build.ccn.parent}:{os.environ['PATH']}", "HOME": home, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        zsh = Terminal([shutil.which("zsh"), "-f", "-i"], env, ROOT)
        try:
            zsh.send(f"fpath=({ROOT}/repl/completion $fpath); autoload -Uz compinit; compinit -u -D; echo re''ady\n")
            zsh.wait_for(lambda screen: "ready" in screen.text(), "zsh")
            for typed, wanted in (("ccn doc", "ccn doctor"), ("ccn run --wat", "ccn run --watch"),
                                  ("ccn run examples/digi", "ccn run examples/digits.ccn"),
                                  ("ccn explain CCN0812", "ccn explain CCN0812")):
                zsh.send(typed + "\t")
                try:
                    zsh.wait_for(lambda screen: wanted in screen.text(), wanted)
                    problem = None
                except Timeout as e:
                    problem = e
                tally.check(f"zsh: {typed}", problem)
                zsh.send("\x15")
        finally:
            zsh.close()


def options_of(build, command):
    """What `ccn COMMAND --help` lists: "--watch", "--help", ..."""
    listed = build.run_ccn(command, "--help").out.partition("\noptions:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^  (?:-\w, |    )?(--[a-z-]+)", listed, re.M))


def check_options(tally, build, commands):
    """The manual page and the completion know the options that the commands know, no more and no fewer."""
    parts = re.split(r"^\.SS (\w+)\n", (ROOT / "repl" / "ccn.1").read_text().partition(".SH OPTIONS")[2].
                     partition("\n.SH ")[0], flags=re.M)
    told = {name: set(re.findall(r"\\-\\-[a-z\\-]+", "".join(re.findall(r"^\.TP\n(.*)", body, re.M))))
            for name, body in zip(parts[1::2], parts[2::2])}
    for command in commands:
        wanted = options_of(build, command)
        tally.check(f"ccn {command} --help lists options", None if "--help" in wanted else f"{wanted}")
        manual = {name.replace("\\", "") for name in told.get(command, ())} | {"--help"}
        tally.check(f"options of {command} in the manual", None if manual == wanted else
                    f"lacking {sorted(wanted - manual)}, too many {sorted(manual - wanted)}")
        got = set(complete(build, "ccn", command, "--"))
        tally.check(f"bash: options of {command}", None if got == wanted else f"{sorted(got)}, not {sorted(wanted)}")


def check_manual(tally, build):
    page = ROOT / "repl" / "ccn.1"
    text = page.read_text()
    commands = re.findall(r"^  ([a-z]+) ", build.run_ccn("--help").out.split("commands:")[1].split("\n\n")[0], re.M)
    lacking = [c for c in commands if f".B {c}\n" not in text]
    tally.check("every command is in the manual", f"not {lacking}" if lacking or len(commands) < 8 else None)
    check_options(tally, build, commands)
    statuses = re.findall(r"^  (\d+)  ", build.run_ccn("--help").out, re.M)
    lacking = [n for n in statuses if f".TP\n.B {n}\n" not in text]
    tally.check("every exit status is in the manual", f"not {lacking}" if lacking or len(statuses) < 5 else None)
    version = build.run_ccn("--version").out.split()[1]
    tally.check("the manual's version", None if f'"ccn {version}"' in text else version)
    if shutil.which("groff"):
        done = run(["groff", "-man", "-ww", "-Tutf8", page])
        tally.check("groff reads it", None if done.status == 0 and not done.err else done.err)
    else:
        tally.skip("groff reads it", "groff is not there")


def suite(build, options):
    tally = Tally("tools")
    check_fmt(tally, build)
    check_fixed_points(tally, build)
    check_doctor(tally, build)
    check_completion(tally, build)
    check_manual(tally, build)
    return tally

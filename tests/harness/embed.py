# embed.py: CCN as others get it: installed into an empty folder and found with pkg-config, by hosts in C, C++ and
# Python; as a static library; as a meson subproject without the network; the programs of docs/*.md in C and Python.
#
# The ```c blocks of a document are one program: those marked `top` stand at file level, the others one behind the other
# in main; ```python blocks are one script. What its ```text blocks show is the program's output, in order.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import tempfile

from .core import CORES, ROOT, TESTS, Tally, in_parallel, run
from .pages import blocks

EXAMPLES = ROOT / "examples" / "embed"
SHOWN = "p[0] = 0.9237 after 10 steps"  # what each of the hosts prints, and the code of its type error
CODE = "CCN0101"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
PYTHON = "/usr/bin/python3"  # the one that has NumPy


class Installed:
    def __init__(self, build, folder):
        self.root = pathlib.Path(folder)
        self.done = run(["meson", "install", "-C", build.folder, "--no-rebuild", "--destdir", self.root / "tree"])
        pc = next((self.root / "tree").rglob("ccn.pc"), None)
        self.pc = pc and pc.parent
        self.lib = pc and self.pc.parent
        self.prefix = next((p for p in pc.parents if (p / "include" / "ccn.h").exists()), None) if pc else None

    def flags(self, *words):
        env = {"PKG_CONFIG_LIBDIR": str(self.pc), "PKG_CONFIG_PATH": ""}
        done = run(["pkg-config", f"--define-variable=prefix={self.prefix}", *words, "ccn"], env=env)
        return done.out.split() if done.status == 0 else [done.err]

    def run(self, command, **settings):
        return run(command, env={"LD_LIBRARY_PATH": str(self.lib), "CCN_LIBRARY": str(self.lib / "libccn.so.0")},
                   **settings)


def judge(done, want=SHOWN, code=CODE):
    if done.crashed() or done.status != 0 or want not in done.out or code not in done.out + done.err:
        return f"exit status {done.status}, expected {want!r} and {code}\n{done.out}{done.err}"
    return None


def host(tree, compiler, source, *flags):
    program = tree.root / f"{source.stem}-{compiler}-{len(flags)}"
    done = run([compiler, *WARNINGS, source, "-o", program, *tree.flags("--cflags"), *(flags or tree.flags("--libs"))])
    return done.err if done.status else judge(tree.run([program]))


def static_host(tree):
    """Linked with what ccn.pc says for static linking, where there is no shared library."""
    alone = tree.root / "static"
    alone.mkdir()
    shutil.copy(tree.lib / "libccn.a", alone)
    flags = tree.flags(f"--define-variable=libdir={alone}", "--static", "--libs")
    return host(tree, "gcc", EXAMPLES / "adam.c", *flags)


def python_host(tree, script):
    done = tree.run([PYTHON, script], cwd=script.parent)
    return judge(done)


def python_tests(tree, tally):
    if run([PYTHON, "-c", "import numpy"]).status != 0:
        tally.skip("Python", "NumPy is not there")
        return
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    tally.check("a host in Python", python_host(tree, EXAMPLES / "adam.py"))
    done = tree.run([PYTHON, TESTS / "embed" / "dlpack.py", EXAMPLES])
    lines = done.out.splitlines()
    for line in lines:
        tally.check(f"DLPack from Python: {line}", None if line.startswith("ok ") else done.out + done.err)
    if done.status != 0 or not lines:
        tally.fail("DLPack from Python", f"exit status {done.status}\n{done.err}")


def c_page(text):
    top, body, shown = [], [], []
    for _, info, block, _ in blocks(text):
        if info[:1] == ["c"]:
            (top if "top" in info else body).append(block)
        elif info[:1] == ["text"]:
            shown.append(block)
    return "".join(top) + "int main(void) {\n" + "".join(body) + "return 0;\n}\n" if body else None, "".join(shown)


def check_output(done, shown):
    if done.crashed() or done.status != 0:
        return f"exit status {done.status}\n{done.out}{done.err}"
    return None if done.out == shown else f"shown:\n{shown}now:\n{done.out}"


def page_task(tree, path):
    text = path.read_text()
    program, shown = c_page(text)
    if program:
        source = tree.root / f"{path.stem}.c"
        source.write_text(program)
        made = source.with_suffix("")
        done = run(["gcc", "-std=c11", *WARNINGS, source, "-o", made, *tree.flags("--cflags", "--libs")])
        return done.err if done.status else check_output(tree.run([made]), shown)
    script = "".join(body for _, info, body, _ in blocks(text) if info[:1] == ["python"])
    if script:
        source = tree.root / f"{path.stem}.py"
        source.write_text(script)
        shutil.copy(EXAMPLES / "ccn.py", tree.root)
        return check_output(tree.run([PYTHON, source]), shown)
    return None


def has_program(path):
    return any(info[:1] in (["c"], ["python"]) for _, info, _, _ in blocks(path.read_text()))


PARENT = """project('host', 'c', default_options: ['c_std=c11'])
subproject('ccn', default_options: ['default_library=static'])
executable('host', 'host.c', dependencies: dependency('ccn'))
"""


def subproject(folder):
    """A project that has CCN below subprojects/, built without the network."""
    parent = pathlib.Path(folder) / "parent"
    (parent / "subprojects").mkdir(parents=True)
    (parent / "meson.build").write_text(PARENT)
    shutil.copy(EXAMPLES / "adam.c", parent / "host.c")
    (parent / "subprojects" / "ccn").symlink_to(ROOT)
    made = run(["meson", "setup", "--wrap-mode=nodownload", "-Dbuildtype=debug", "-Doptimization=0", parent / "b",
                parent])
    if made.status != 0:
        return made.out[-3000:] + made.err
    built = run(["ninja", "-C", parent / "b", "-j", CORES, "host"], timeout=900)
    return built.out[-3000:] if built.status else judge(run([parent / "b" / "host"]))


def suite(build, options):
    tally = Tally("embed")
    with tempfile.TemporaryDirectory() as folder:
        tree = Installed(build, folder)
        if tree.done.status != 0 or not tree.prefix:
            tally.fail("meson install", tree.done.out[-2000:] + tree.done.err)
            return tally
        lines = len((EXAMPLES / "adam.c").read_text().splitlines())
        tally.check("the host in C is short", None if lines <= 60 else f"{lines} lines")
        pages = [p for p in sorted((ROOT / "docs").glob("*.md")) if has_program(p)]
        tasks = [("a host in C", lambda: host(tree, "gcc", EXAMPLES / "adam.c")),
                 ("a host in C, static", lambda: static_host(tree)),
                 ("as a subproject", lambda: subproject(folder))]
        if shutil.which("g++"):
            tasks.append(("a host in C++", lambda: host(tree, "g++", EXAMPLES / "adam.cpp")))
        else:
            tally.skip("a host in C++", "there is no C++ compiler")
        tasks += [(f"docs/{p.name}", lambda p=p: page_task(tree, p)) for p in pages]
        for (what, _), problem in zip(tasks, in_parallel(lambda t: t[1](), tasks)):
            tally.check(what, problem)
        python_tests(tree, tally)
    return tally

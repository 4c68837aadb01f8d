# checks.py: what holds of the library as a file: symbols, flags, header; how the parser's work grows; formatting.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import shutil
import tempfile

from .core import ROOT, TESTS, Tally, files_below, in_parallel, relative, run

# The library never exits, aborts, prints, handles signals, reads the environment, or changes the locale.
FORBIDDEN = {"exit", "_exit", "_Exit", "abort", "__assert_fail", "printf", "puts", "putchar", "vprintf", "fprintf",
             "vfprintf", "fputs", "fputc", "putc", "fwrite", "perror", "signal", "sigaction", "setlocale", "getenv",
             "system", "rand", "srand", "time", "clock", "atexit", "__printf_chk", "__fprintf_chk",
             "__vfprintf_chk", "stdout", "stderr", "fopen", "strtok", "localtime"}

MAY = {("getenv", "cache.c.o"), ("getenv", "jit_cache.c.o")}  # where the cache folder is, if the host does not say

# What a careful host compiles with.
STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wconversion", "-Wsign-conversion",
          "-Wshadow", "-Wcast-qual", "-Wundef", "-Werror", f"-I{ROOT / 'include'}"]
STRICT_C = ["-Wstrict-prototypes", "-Wmissing-prototypes"]

# The node of lang/libccn.map in which everything of version 0.1 stands.
NODE = "CCN_0.1"


def header_functions():
    whole = "".join(p.read_text() for p in files_below(ROOT / "include", "*.h"))
    text = re.sub(r"/\*.*?\*/", "", whole, flags=re.S)
    return set(re.findall(r"CCN_API[^;]*?\b(ccn_\w+)\s*\(", text))


def check_exports(tally, build):
    """The shared library shows exactly the functions of the public headers."""
    done = run(["nm", "-D", "--defined-only", "--with-symbol-versions", build.folder / "libccn.so"])
    words = [line.split()[-1] for line in done.out.splitlines() if line.strip()]
    seen = {w.split("@")[0] for w in words} - {NODE}
    want = header_functions()
    problem = None
    if seen != want:
        problem = (f"exported but in no header: {sorted(seen - want)}; "
                   f"in a header but not exported: {sorted(want - seen)}")
    tally.check("exports of libccn.so", problem)
    bare = sorted(w for w in words if w != NODE and not w.endswith("@@" + NODE))
    tally.check("versions of symbols", f"not in {NODE}: {bare}" if bare or NODE not in words else None)


def check_forbidden(tally, build):
    done = run(["nm", "-A", "--undefined-only", build.folder / "libccn.a"])
    used = {(line.split(":")[1], line.split()[-1]) for line in done.out.splitlines() if " U " in line}
    bad = sorted(f"{name} in {file}" for file, name in used if name in FORBIDDEN and (name, file) not in MAY)
    tally.check("calls of libccn.so", f"the library may not use {bad}" if bad else None)


def check_globals(tally, build):
    """No mutable globals: two contexts share nothing."""
    done = run(["nm", "-f", "sysv", build.folder / "libccn.a"])
    bad = []
    for line in done.out.splitlines():
        parts = [p.strip() for p in line.split("|")]
        if len(parts) == 7 and re.match(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)", parts[6]) and parts[3] == "OBJECT":
            bad.append(parts[0])
    tally.check("globals of libccn.a", f"these are mutable: {bad}" if bad else None)


def check_headers(tally):
    for header in files_below(ROOT / "include", "*.h"):
        for compiler, language in (("gcc", ["-x", "c", "-std=c11"]), ("clang", ["-x", "c", "-std=c11"]),
                                   ("clang", ["-x", "c++", "-std=c++11"])):
            what = f"{header.name} as {language[-1]} with {compiler}"
            if not shutil.which(compiler):
                tally.skip(what, "the compiler is not there")
                continue
            done = run([compiler, *language, *STRICT, *(STRICT_C if language[1] == "c" else []), header])
            tally.check(what, done.err if done.status else None)


def check_dlpack_first(tally):
    """A host's own dlpack.h before ccn_dlpack.h: the structs are declared once."""
    for language in (["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++11"]):
        what = f"dlpack.h before ccn_dlpack.h as {language[1]}"
        compiler = next((c for c in ("gcc", "clang") if shutil.which(c)), None)
        if not compiler:
            tally.skip(what, "there is no compiler")
            continue
        done = run([compiler, *language, *STRICT, f"-I{TESTS / 'probe'}", TESTS / "probe" / "dlpack_first.c"])
        if language[1] == "c++" and "cc1plus" in done.err:
            tally.skip(what, "there is no C++ compiler")
        else:
            tally.check(what, done.err if done.status else None)


def project_flags(build):
    """Compiler and flags of a file of hot loops, without its paths."""
    for entry in json.loads((build.folder / "compile_commands.json").read_text()):
        if entry["file"].endswith("kernels.c"):
            words = entry["command"].split()
            flags = [w for w in words[1:] if re.match(r"-(O|f|std=|W)", w) and not w.startswith("-fsanitize")]
            return words[0], [f for f in flags if not f.startswith("-fdiagnostics")]
    return None, []


def probe(compiler, flags, folder):
    """Compiles tests/probe/contraction.c for a machine with fma; returns (fused?, output or None)."""
    source, program = TESTS / "probe" / "contraction.c", pathlib.Path(folder) / "probe"
    done = run([compiler, *flags, "-mfma", "-mavx2", source, "-o", program])
    if done.status != 0:
        return None, done.err
    fused = bool(re.search(r"\bvfn?m(add|sub)", run(["objdump", "-d", program]).out))
    has_fma = " fma " in pathlib.Path("/proc/cpuinfo").read_text()
    return fused, run([program]).out if has_fma else None


def check_probe(tally, build):
    """Products and sums stay apart with our flags; and the probe can fail."""
    if run(["uname", "-m"]).out.strip() != "x86_64":
        tally.skip("probe", "written for x86-64")
        return
    compiler, flags = project_flags(build)
    if not compiler:
        tally.fail("probe", "no compile command of kernels.c")
        return
    with tempfile.TemporaryDirectory() as folder:
        fused, out = probe(compiler, flags, folder)
        plain = run([compiler, "-O0", "-ffp-contract=off", TESTS / "probe" / "contraction.c", "-o",
                     pathlib.Path(folder) / "plain"])
        want = run([pathlib.Path(folder) / "plain"]).out if plain.status == 0 else plain.err
        tally.check("probe: no fma", "the flags let the compiler fuse" if fused is not False else None)
        if out is None:
            tally.skip("probe: bits", "this machine has no fma")
        else:
            tally.check("probe: bits", None if out == want else f"expected:\n{want}got:\n{out}")
        loose = [f for f in flags if not f.startswith(("-ffp-contract", "-fno-fast-math"))]
        fused, _ = probe(compiler, [*loose, "-O2", "-ffp-contract=fast"], folder)
        tally.check("probe can fail", None if fused else "with -ffp-contract=fast nothing was fused")


def suite(build, options):
    tally = Tally("checks")
    check_exports(tally, build)
    check_forbidden(tally, build)
    check_globals(tally, build)
    check_headers(tally)
    check_dlpack_first(tally)
    check_probe(tally, build)
    return tally


# ---- linearity: callgrind counts instructions, so it is the same on a busy machine ----------------------------

def shapes(n):
    """Texts of about n lines (or words): what the parser may meet, friendly and hostile."""
    yield "statements", "".join(f"let a{i} = {i} + 2 * (3 - {i})\n" for i in range(n))
    yield "program", "mesh (dp)\nprogram f(x: f32[N]) {\n" + "".join(
        f"  x{i} = x * {i}.5 + x\n" for i in range(n)) + "  return x\n}\n"
    yield "comments", "# a comment\n" * n + "let a = 1\n"
    yield "list", "let a = [" + ", ".join(f"{i}" for i in range(n)) + "]\n"
    yield "sum", "let a = " + " + ".join("1" for _ in range(n)) + "\n"
    yield "string", 'let a = "' + "word {1} " * n + '"\n'
    yield "calls", "".join(f'print("{{{i}}}", {i})\n' for i in range(n))
    yield "functions", "".join(f"fn f{i}(x) {{ return x }}\n" for i in range(n))
    yield "open brackets", "let a = " + "(" * n + "\n"
    yield "open braces", "if true {\n" * n
    yield "unterminated strings", 'let a = "abc\n' * n
    yield "unknown characters", "let a = $ @ \x01\n" * n
    yield "names without end", "let " + "a" * (20 * n) + " = 1\n"
    yield "one long line", "let a = 1; " * n + "\n"
    yield "else if", "if false {\n}" + " else if false {\n}" * n + "\n"
    yield "powers", "let a = " + "2 ** " * n + "2\n"
    yield "minus", "let a = " + "- " * n + "2\n"


def programs(n):
    """Texts with about n parameters, arguments or stores: what checker and calls may meet."""
    count = range(n)
    params = ", ".join(f"p{i}: f32[N{i}]" for i in count)
    numbers = ", ".join(f"p{i}: f32" for i in count)
    backwards = ", ".join(f"p{i}: {i}.5" for i in reversed(count))
    tensors = "let t = ones(f32[2])\n" + "".join(f"let t{i} = copy(t)\n" for i in count)
    yield "parameters", "check", f"program f({params}) {{ return p0 }}\n"
    sums = ", ".join(f"q{i}: f32[N{i} + 2*N{i * 7 % n}]" for i in count)
    yield "symbols in sums", "check", f"program f({params}, {sums}) {{ return p0 }}\n"
    yield "bundles", "check", "program f(" + ", ".join(f"p{i}: [f32[*]]" for i in count) + ") { return p0 }\n"
    yield "updates", "check", (f"program f({params}) {{\n" +
                               "".join(f"  new{i} = update(p{i}, p{i} * 2.0)\n" for i in count) + "  return new0\n}\n")
    yield "reads behind updates", "check", (f"program f({params}) {{\n" +
                                            "".join(f"  new{i} = update(p{i}, p{i} * 2.0)\n" for i in count) +
                                            "".join(f"  old{i} = p{i} * 3.0\n" for i in count) + "  return new0\n}\n")
    yield "arguments of an inlined call", "check", (f"program g({numbers}) {{ return p0 }}\n"
                                                    f"program f(x: f32) {{ return g({backwards}) }}\n")
    yield "arguments of a function", "run", f"fn f({numbers.replace(': f32', '')}) {{ return p0 }}\nf({backwards})\n"
    yield "arguments of a program", "run", f"program f({numbers}) {{ return p0 }}\nf({backwards})\n"
    yield "updated arguments", "run", (tensors + f"program f({params}) {{\n" +
                                       "".join(f"  new{i} = update(p{i}, p{i} * 2.0)\n" for i in count) +
                                       "  return new0\n}\nf(" + ", ".join(f"t{i}" for i in count) + ")\n")


def texts(n):
    for name, text in shapes(n):
        yield name, ["dump", "--stage", "ast"], text
    for name, command, text in programs(2 * n):
        yield name, [command], text


def instructions(build, command, text, folder, name):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    done = run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", build.ccn, *command, path],
               timeout=600)
    m = re.search(r"Collected : (\d+)", done.err)
    if done.status not in (0, 1) or not m:
        return None, f"exit status {done.status}\n{done.err[-1500:]}"
    return int(m[1]), None


def linearity(build, options):
    tally = Tally("linearity")
    if not shutil.which("valgrind"):
        tally.skip("linearity", "valgrind is not there")
        return tally
    n = 1000

    def work(pair):
        (name, command, once), (_, _, twice) = pair
        with tempfile.TemporaryDirectory() as folder:
            a, problem = instructions(build, command, once, folder, "once.ccn")
            b, problem2 = instructions(build, command, twice, folder, "twice.ccn")
        if problem or problem2:
            return name, problem or problem2
        return name, None if b <= 2.2 * a else f"{a} instructions for n = {n}, {b} for 2n: {b / a:.2f} times"

    for name, problem in in_parallel(work, list(zip(texts(n), texts(2 * n)))):
        tally.check(name, problem)
    return tally


# ---- formatting ---------------------------------------------------------------------------------------------------

CLANG_FORMAT = 14  # Debian 12's; other versions format a little differently


def style(build, options):
    tally = Tally("style")
    if not shutil.which("clang-format"):
        tally.skip("clang-format", "it is not there")
        return tally
    version = re.search(r"version (\d+)", run(["clang-format", "--version"]).out)
    if not version or int(version[1]) != CLANG_FORMAT:
        tally.skip("clang-format", f"version {CLANG_FORMAT} decides, this is {version and version[1]}")
        return tally
    files = [f for d in ("include", "lang", "parser", "repl", "tests") for f in files_below(ROOT / d, "*.[ch]")]

    def work(path):
        done = run(["clang-format", "--dry-run", "-Werror", path])
        return None if done.status == 0 else "scripts/format puts it right"

    for path, problem in zip(files, in_parallel(work, files)):
        tally.check(relative(path), problem)
    return tally


# ---- valgrind on a subset -----------------------------------------------------------------------------------------

def memcheck(build, options):
    tally = Tally("valgrind")
    if not shutil.which("valgrind"):
        tally.skip("valgrind", "it is not there")
        return tally
    grind = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full"]
    tasks = [(f"{relative(p)}", [*grind, build.ccn, "run", p, "-n", 2])
             for p in sorted((ROOT / "tests" / "cases" / "right").glob("*.ccn"))]
    tasks += [(p.name, [*grind, p]) for p in sorted((build.folder / "tests").glob("test_*"))
              if p.is_file() and "math" not in p.name and "kernels" not in p.name]
    for (name, _), done in zip(tasks, in_parallel(lambda t: run(t[1], timeout=1800), tasks)):
        tally.check(name, done.err if done.status in (99, None) or done.status < 0 else None)
    return tally

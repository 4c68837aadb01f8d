# fuzz.py: the fuzzers: a minute each, a planted crash that they must find, and what the corpus covers.
#
# The corpus is what is there anyway: examples, test programs, explain pages, graph text of all these, .npy files, and
# tests/fuzz/corpus/NAME/ (old crashes).
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import random
import re
import shutil
import tempfile

from . import pages
from .core import CASES, ROOT, TESTS, Tally, files_below, in_parallel, relative, run

ARTIFACTS = ROOT / "build-test" / "fuzz-artifacts"
COVERED = {"parser": ["parser/lexer*.c", "parser/parser*.c"],
           "checker": ["lang/dims.c", "lang/types.c", "lang/place.c", "lang/infer*.c", "lang/lower*.c",
                       "lang/names*.c"]}
LEAST_COVERED = 85


# Settings of libFuzzer for single harnesses. Entropic scheduling costs more than all the calls of an input of fuzz_api,
# whose inputs hold no words that comparisons could tell (tests/fuzz/quiet.c).
SETTINGS = {"fuzz_api": ["-entropic=0", "-max_len=64", "-use_cmp=0"]}
# No block outlives an input, so a quarantine of some inputs is enough; the short stacks are of allocations only.
SANITIZER = {"ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=6"}


def fuzzers():
    return [p.stem for p in files_below(TESTS / "fuzz", "fuzz_*.c")]


def kind_of(fuzzer):
    """What a harness eats: graph text, a binary file of its name, or scripts."""
    return next((k for k in ("npy", "graph", "safetensors", "loader", "api") if k in fuzzer), "ccn")


def make_corpus(plain, folder):
    """folder/{ccn,graph,npy,safetensors,api}: inputs of each kind, made with the plain build's ccn."""
    shutil.rmtree(folder, ignore_errors=True)
    for kind in ("ccn", "graph", "npy", "safetensors", "api"):
        (folder / kind).mkdir(parents=True)
    scripts = [p for d in ("examples", "stdlib", "tests/programs", "tests/ui", "tests/wrong", "tests/graph",
                           "tests/vectors", "tests/cases/right", "tests/cases/wrong")
               for p in files_below(ROOT / d, "*.ccn")]
    for i, path in enumerate(scripts):
        shutil.copy(path, folder / "ccn" / f"{i:03}-{path.name}")
    done = plain.run_ccn("explain", "--json")
    for line in done.out.splitlines():
        page = json.loads(line)
        for k, (_, info, body, _) in enumerate(pages.blocks(page["page"])):
            if info[:1] == ["ccn"]:
                (folder / "ccn" / f"{page['code']}-{k}.ccn").write_text(body)

    def dump(path):
        text = plain.run_ccn("dump", path, "--stage", "graph")
        if text.status == 0 and text.out:
            (folder / "graph" / f"{path.stem}.txt").write_text(text.out)

    in_parallel(dump, sorted((folder / "ccn").iterdir()))
    for i, path in enumerate(files_below(CASES, "*.npy")[::40]):
        shutil.copy(path, folder / "npy" / f"{i:03}.npy")
    safetensors_seeds(plain, folder / "safetensors")
    for i in range(200):  # sequences of calls: any bytes are some
        (folder / "api" / f"{i:03}").write_bytes(random.Random(i).randbytes(16 + i % 48))
    return folder


SAVES = """let w = iota(f32[2, 3])
save("{folder}/one.safetensors", [("w", w)])
save("{folder}/some.safetensors", [("a", i64(w)), ("b.c", bf16(w)), ("d", zeros(i8[0])), ("e", tensor(true, bool))])
save("{folder}/none.safetensors", [])
"""
# Headers, which the harness puts a length before and data behind: 'j', how many bytes of data, the text.
HEADERS = [
    (0, '{}'), (4, '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'),
    (6, '{"__metadata__":{"k":"v","\\u00e9":""},"a":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}}'),
    (8, '{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},'
        '"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}'),
    (8, '{"b":{"dtype":"I16","shape":[2],"data_offsets":[4,8]},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}'),
    (8, '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'),
    (4, '{"a":{"dtype":"F32","shape":[99999999999999,99999999999999,0],"data_offsets":[0,0]}}'),
    (2, '{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}'),
]


def safetensors_seeds(plain, folder):
    with tempfile.TemporaryDirectory() as work:
        script = pathlib.Path(work) / "save.ccn"
        script.write_text(SAVES.replace("{folder}", str(folder)))
        plain.run_ccn("run", script)
    for i, (bytes_behind, text) in enumerate(HEADERS):
        (folder / f"header-{i}").write_bytes(b"j" + bytes_behind.to_bytes(2, "little") + text.encode())


def seeds(fuzzer, corpus):
    own = TESTS / "fuzz" / "corpus" / fuzzer
    return [d for d in (corpus / kind_of(fuzzer), own) if d.is_dir()]


def fuzz_one(build, fuzzer, corpus, seconds, extra=()):
    work = build.folder / "corpus" / fuzzer  # grows; the given corpora are only read
    work.mkdir(parents=True, exist_ok=True)
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return run([build.folder / "tests" / fuzzer, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=3000",
                "-max_len=4096", "-print_final_stats=1", f"-artifact_prefix={ARTIFACTS}/{fuzzer}-",
                *SETTINGS.get(fuzzer, []), *extra, work, *seeds(fuzzer, corpus)], timeout=seconds + 300, env=SANITIZER)


def smoke(build, plain, options):
    tally = Tally("fuzz")
    seconds = options.seconds or (600 if options.all else 60)
    corpus = make_corpus(plain, build.folder / "seeds")
    names = fuzzers()
    results = in_parallel(lambda f: fuzz_one(build, f, corpus, seconds), names)
    for fuzzer, done in zip(names, results):
        m = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.err)
        if done.status == 0:
            tally.ok()
            print(f"    {fuzzer}: {m[1] if m else '?'} inputs in {done.seconds:.0f} s", flush=True)
        else:
            tally.fail(fuzzer, f"inputs that fail are in {relative(ARTIFACTS)}\n{done.err[-3000:]}")
    planted(build, tally, corpus)
    return tally


def planted(build, tally, corpus):
    """Harnesses with a crash planted (CCN_PLANTED_CRASH): it must be found within a minute."""
    names = [p.name for p in sorted((build.folder / "tests").glob("fuzz_*_planted")) if p.is_file()]
    if not names:
        tally.fail("planted crash", "no harness has one: #ifdef CCN_PLANTED_CRASH")
    for name in names:
        fuzzer = name.removesuffix("_planted")
        work = build.folder / "corpus" / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        files = [p for s in seeds(fuzzer, corpus) for p in sorted(s.iterdir())]
        if run([build.folder / "tests" / name, *files]).status != 0:
            tally.fail(f"planted crash of {fuzzer}", "a file of the corpus has it already: that shows nothing")
            continue
        done = run([build.folder / "tests" / name, "-max_total_time=60", "-max_len=4096", f"-artifact_prefix={work}/",
                    work, *seeds(fuzzer, corpus)], timeout=120)
        tally.check(f"planted crash of {fuzzer}", None if done.status else "not found within a minute")
        print(f"    planted crash of {fuzzer}: {'found' if done.status else 'not found'} after {done.seconds:.1f} s",
              flush=True)


def coverage(build, plain, options):
    """Runs the harnesses once on the corpus and reads gcov's counts of the parser and the checker."""
    tally = Tally("coverage")
    if not shutil.which("gcov"):
        tally.skip("coverage", "gcov is not there")
        return tally
    for old in files_below(build.folder, "*.gcda"):
        old.unlink()
    corpus = make_corpus(plain, build.folder / "seeds")

    def feed(fuzzer):
        inputs = [p for s in seeds(fuzzer, corpus) for p in sorted(s.iterdir())]
        return run([build.folder / "tests" / fuzzer, *inputs], timeout=600)

    for fuzzer in fuzzers():  # one after the other: they add to the same counts
        done = feed(fuzzer)
        tally.check(f"{fuzzer} on the corpus", None if done.status == 0 else done.crashed() or done.err)
    hit = gcov_lines(build)
    for group, patterns in COVERED.items():
        files = [p for pattern in patterns for p in sorted(ROOT.glob(pattern))]
        lines = {(f, n): c for f in files for n, c in hit.get(f, {}).items()}
        if not lines:
            tally.fail(f"coverage of the {group}", "no counts: does a harness reach it?")
            continue
        percent = 100 * sum(c > 0 for c in lines.values()) / len(lines)
        print(f"    {group}: {percent:.1f} % of {len(lines)} lines", flush=True)
        each = [f"{relative(f)}: {100 * sum(c > 0 for c in hit[f].values()) / max(1, len(hit[f])):.1f} %"
                for f in files if f in hit]
        tally.check(f"coverage of the {group}", None if percent >= LEAST_COVERED else
                    f"{percent:.1f} %, less than {LEAST_COVERED} %\n" + "\n".join(each))
    return tally


def gcov_lines(build):
    """Path of a source → line → how often it was executed, over all objects."""
    hit = {}
    for data in files_below(build.folder, "*.gcda"):
        if "tests" in data.parts[len(build.folder.parts):][:1]:
            continue
        done = run(["gcov", "--json-format", "--stdout", data], cwd=build.folder)
        for text in done.out.splitlines():
            try:
                report = json.loads(text)
            except ValueError:
                continue
            base = pathlib.Path(report["current_working_directory"])
            for f in report["files"]:
                lines = hit.setdefault((base / f["file"]).resolve(), {})
                for line in f["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
    return hit

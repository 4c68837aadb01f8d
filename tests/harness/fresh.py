# fresh.py: a fresh Debian 12 made by debootstrap: a clean checkout in it, its scripts, nothing else typed.
#
# Mirror, keys and proxies are the host's own: they come from its apt configuration, never from this project.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from .core import ROOT, Tally, run

SUITE = "bookworm"
LONG = 5400


def apt_sources():
    """(uri, suite, component) of Debian's own archives, as the host uses them."""
    done = run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)",
                "Created-By: Packages"])
    rows = []
    for line in done.out.splitlines():
        uri, suite, component, origin = line.split("|")
        if suite.startswith(SUITE) and origin == "Debian" and (uri, suite, component) not in rows:
            rows.append((uri, suite, component))
    return rows


def apt_settings():
    """The host's Acquire settings (proxies, time-outs, checks) as apt.conf text."""
    lines = run(["apt-config", "dump"]).out.splitlines()
    return "\n".join(s for s in lines if s.startswith("Acquire::") and not s.endswith(' "";') and
                     not s.startswith(("Acquire::IndexTargets", "Acquire::cdrom"))) + "\n"


def checkout(target):
    """The files of the working tree that git does not ignore; no .git: the scripts must not need one."""
    listed = run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    names = listed.out.split("\0") if listed.status == 0 else [
        p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*")
        if not p.relative_to(ROOT).parts[0].startswith("build") and "__pycache__" not in p.parts]
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


class FreshRoot:
    """A root folder; `problem` says why it could not be made."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "root"
        self.mounted = []
        self.problem = self.make()

    def make(self):
        sources = apt_sources()
        main = [s for s in sources if s[1] == SUITE and s[2] == "main"]
        if not main:
            return "the host's apt has no source of Debian 12"
        uri, _, _ = main[0]
        done = run(["debootstrap", "--variant=minbase", SUITE, self.path, uri], timeout=LONG)
        if done.status != 0:
            return f"debootstrap:\n{done.out[-3000:]}{done.err[-1000:]}"
        self.configure(sources)
        return None

    def configure(self, sources):
        lists = self.path / "etc/apt/sources.list"
        lists.write_text("".join(f"deb {uri} {suite} {component}\n" for uri, suite, component in sources))
        (self.path / "etc/apt/apt.conf.d/90host").write_text(apt_settings())
        for name in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
            if pathlib.Path("/", name).is_file():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(pathlib.Path("/", name), self.path / name)
        for kind, source, target in (("proc", "proc", "proc"), ("devpts", "devpts", "dev/pts"),
                                     ("tmpfs", "tmpfs", "dev/shm")):
            where = self.path / target
            where.mkdir(parents=True, exist_ok=True)
            if run(["mount", "-t", kind, source, where]).status == 0:
                self.mounted.append(where)
        for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx"):
            node = self.path / "dev" / name
            if not node.exists():  # a container may not make devices: use the host's
                node.touch()
                if run(["mount", "--bind", f"/dev/{name}", node]).status == 0:
                    self.mounted.append(node)

    def command(self, text, log, timeout=LONG):
        """Runs a shell command in it; the output goes to `log`, its end is returned with the status and seconds."""
        env = {k: v for k, v in os.environ.items() if "proxy" in k.lower()}
        env.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8")
        start = time.monotonic()
        with open(log, "wb") as f:
            try:
                status = subprocess.run(["chroot", self.path, "/bin/bash", "-c", text], env=env,
                                        stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT,
                                        timeout=timeout).returncode
            except subprocess.TimeoutExpired:
                status = None
        text = pathlib.Path(log).read_text(errors="replace")
        return status, text, time.monotonic() - start

    def close(self):
        for where in reversed(self.mounted):
            if run(["umount", where]).status != 0:
                run(["umount", "--lazy", where])


def steps(root, folder, tally):
    def step(name, command, judge=lambda text, seconds: None):
        status, text, seconds = root.command(command, folder / "log")
        problem = None if status == 0 else "\n".join([f"exit status {status}", *text.splitlines()[-38:]])
        tally.check(f"fresh Debian: {name}", problem or judge(text, seconds))
        print(f"    {name}: {seconds:.0f} s", flush=True)
        return problem is None

    def trained(text, seconds):
        m = re.findall(r"accuracy\D*([01]\.\d+)", text)
        return None if m and float(m[-1]) >= 0.96 else f"no accuracy of 0.96 or more:\n{text[-1500:]}"

    def quick(text, seconds):
        return trained(text, seconds) or (None if seconds < 20 else f"{seconds:.0f} s, not less than 20")

    def counted(text, seconds):
        last = text.rstrip().splitlines()[-1]
        return None if re.fullmatch(r"\d+ passed, 0 failed, \d+ skipped", last) else last

    step("scripts/quickstart as root", "cd /ccn && scripts/quickstart", trained)
    step("scripts/quickstart again", "cd /ccn && scripts/quickstart", quick)
    step("scripts/test as root", "cd /ccn && scripts/test", counted)
    step("quickstart and scripts/test --quick as an ordinary user",
         "useradd -m tester && cp -r /ccn /home/tester/ccn && rm -rf /home/tester/ccn/build* && "
         "chown -R tester /home/tester/ccn && "
         "su tester -c 'cd ~/ccn && scripts/quickstart && scripts/test --quick'", counted)


def job(options):
    tally = Tally("fresh")
    if os.getuid() != 0:
        tally.skip("fresh Debian", "needs root")
        return tally
    if not shutil.which("debootstrap"):
        tally.skip("fresh Debian", "debootstrap is not there")
        return tally
    with tempfile.TemporaryDirectory(dir=os.environ.get("CCN_FRESH_FOLDER")) as name:
        folder = pathlib.Path(name)
        root = FreshRoot(folder)
        try:
            if root.problem:
                tally.fail("fresh Debian", root.problem)
            else:
                checkout(root.path / "ccn")
                steps(root, folder, tally)
        finally:
            root.close()
    return tally

"""The archive and wheel for any Linux, and roots of other systems to use them in."""

import functools
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import stoker as cli

BUILD = ["cmake", "--workflow", "--preset", "tarball"]
OUT = cli.ROOT / "build"
MADE = ("stoker-*-linux-*.tar.gz", "stoker-*.whl", "SHA256SUMS")
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec /usr/sbin/chroot "$0" "$@"'
# A file of which a process has mapped something that it may execute.
MAPPED = re.compile(r"^\S+ ..x. \S+ \S+ [1-9]\d* +(/.*)$", re.MULTILINE)
SPEC = """version: 1
name: sh
command: [sh, train.sh]
source: {allow_dirty: true}
compile: {kind: none}
metrics:
  - {name: step, regex: "^step: ([0-9]+)"}
"""
SCRIPT = """echo "step: 1"
%s
while [ ! -e PLACE/go ]; do sleep 0.1; done
echo "step: 2"
"""


def run(*argv, code=0, **options):
    options.setdefault("cwd", cli.ROOT)
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, **options)
    assert code is None or done.returncode == code, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def make(into: Path, **options) -> list:
    """Archive, wheel and checksums, as copies in `into`."""
    into.mkdir()
    run(*BUILD, **options)
    made = [path for pattern in MADE for path in OUT.glob(pattern)]
    assert len(made) == len(MADE), made
    return [Path(shutil.copy(path, into)) for path in made]


def below(pid: int) -> list:
    """The process and all that it has started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it has ended
            pass
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


@functools.cache
def owners() -> dict:
    """The packages of this system that brought files of each name."""
    found = {}
    for book in Path("/var/lib/dpkg/info").glob("*.list"):
        for path in book.read_text().splitlines():
            found.setdefault(path.rpartition("/")[2], set()).add(book.stem.partition(":")[0])
    return found


def without_licence(libraries: Path, papers: Path) -> list:
    """Libraries whose package has no papers there."""
    there = {path.name for path in papers.iterdir()}
    return [path.name for path in libraries.rglob("*.so*") if not owners().get(path.name, set()) & there]


class Root:
    """A root with /bin/sh, and stoker's archive unpacked in it; None: the one we are in."""

    def __init__(self, folder: Path | None, home: Path, spec: str | None = SPEC):
        self.folder, self.home = folder, home  # home: as seen from here
        self.place = Path("/", home.relative_to(folder)) if folder else home  # as seen from there
        self.env = {"HOME": str(self.place), "PATH": f"{self.place}/stoker/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.prefix = ("unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, str(folder)) if folder else ()
        if spec:
            (home / "go").touch()
            (home / "stoker.yaml").write_text(spec)
            self.script("")
            (home / ".gitignore").write_text("*\n!train.sh\n")
            for words in (("init", "-q"), ("add", "train.sh"), ("commit", "-q", "-m", "job")):
                run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words, cwd=home)

    def script(self, line: str) -> None:
        (self.home / "train.sh").write_text((SCRIPT % line).replace("PLACE", str(self.place)))

    def unpack(self, archive: Path) -> Path:
        run("tar", "-xzf", archive, "-C", self.home)
        unpacked, = self.home.glob("stoker-*-linux-*")
        return unpacked.rename(self.home / "stoker")

    def start(self, *argv, env=None, prefix=()):
        there = self.place if self.folder else self.home
        words = [*prefix, *self.prefix, "sh", "-c", 'cd "$0" && exec "$@"', str(there), *map(str, argv)]
        return subprocess.Popen(words, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *argv, code=0, **options) -> cli.Result:
        result = cli.finish(self.start(*argv, **options), argv)
        assert code is None or result.code == code, str(result)
        return result

    def libraries(self, pid: int) -> dict:
        """Of each process of stoker below one: the files that it executes."""
        found = {}
        for each in below(pid):
            try:
                maps = Path(f"/proc/{each}/maps").read_text()
            except OSError:
                continue
            files = {name.removeprefix(str(self.folder or "")) for name in MAPPED.findall(maps)}
            if any(name.endswith("/loader") for name in files):
                found[each] = files
        return found

    def is_own(self, name: str) -> bool:
        """Of the bundle, or of the agent's copy in the state."""
        return name.startswith((f"{self.place}/stoker/lib/stoker/", f"{self.place}/.local/state/stoker/"))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    cli.until(lambda: not Path(f"/proc/{pid}").exists())


def busybox(folder: Path) -> Path:
    """A root that holds a busybox and nothing else."""
    for name in ("bin", "proc", "dev", "tmp"):
        (folder / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), folder / "bin/busybox")
    for name in ("sh", "cat", "sleep", "echo", "env"):
        (folder / "bin" / name).symlink_to("busybox")
    return folder


def musl(folder: Path) -> Path:
    """The same with another C library, and a program that is linked to it."""
    busybox(folder)
    source = folder / "says.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("musl says"); return 0; }\n')
    run("musl-gcc", "-o", folder / "bin/says", source)
    loader = re.search(r"interpreter: (\S+)\]", run("readelf", "-l", folder / "bin/says").stdout)[1]
    (folder / "lib").mkdir()
    shutil.copy(loader, folder / loader.lstrip("/"))
    return folder

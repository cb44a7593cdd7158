"""Builds the mutants of a box, all in one build: a copy of the tree beneath build/mutate, in which the sources of the
box are woven (weave.py). It is optimised and without the sanitizers that compile other code, as the product is: the
classifier of failures reads its corpus ten times as fast, and most of the time goes to mutants that survive. Leaks are
looked for when a program ends, as they are in ./test."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from find import Finder, Mutant
from syntax import Enums, Source, clang_arguments, parse
from weave import weave

HERE = Path(__file__).resolve().parent
NUMBERS_A_FILE = 4096
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)[ \t]+\S", re.MULTILINE)


@dataclass
class Found:
    """What is in one file."""
    mutants: list[Mutant]
    left: Counter


def files_of(root: Path) -> list[str]:
    """What git tracks or would track beneath the root; without git, all but what is built."""
    listed = subprocess.run(["git", "-c", f"safe.directory={HERE.parents[1]}", "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], cwd=root, capture_output=True)
    names = [name.decode() for name in listed.stdout.split(b"\0") if name]
    if listed.returncode:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if not re.search(r"(^|/)(build|\.venv|__pycache__)/", name)]
    return sorted(name for name in set(names) if (root / name).is_file())


def write_if_other(path: Path, text: bytes, mode: int = 0o644) -> None:
    """Leaves a file alone that has the text already, so that it is not compiled again."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(text)
    if path.stat().st_mode & 0o777 != mode:
        path.chmod(mode)


class Build:
    """One box of the tree at `root`."""

    def __init__(self, root: Path, folder: Path, box: str, jobs: int):
        self.root, self.box, self.jobs = root, box, jobs
        self.folder = folder / box
        self.tree, self.out = self.folder / "tree", self.folder / "out"
        self.names = files_of(root)
        self.sources = [name for name in self.names
                        if name.startswith(f"jobs/{box}/") and name.endswith(".c")]
        self.found: dict[str, Found] = {}

    # ---- the sources

    def prepare(self) -> None:
        """Copies the tree, finds the mutants, and weaves them in."""
        self.folder.mkdir(parents=True, exist_ok=True)
        others = [name for name in self.names if name not in self.sources]
        for name in others:
            path = self.root / name
            write_if_other(self.tree / name, path.read_bytes(), path.stat().st_mode & 0o777)
        for name in self.sources:
            if not (self.tree / name).exists():
                write_if_other(self.tree / name, (self.root / name).read_bytes())
        for path in sorted(self.tree.rglob("*"), reverse=True):
            if path.is_file() and not (self.root / path.relative_to(self.tree)).exists():
                path.unlink()
        self.make_tools()
        self.configure()
        self.find()

    def make_tools(self) -> None:
        """The runtime of the mutants, and what runs a test where it can do no harm."""
        include = f"-I{HERE.parents[1]}"
        common = ["cc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", include]
        self.tool("libmutant.so", [*common, "-shared", "-fPIC", str(HERE / "mutant.c")])
        self.tool("confine", [*common, str(HERE / "confine.c")])

    def tool(self, name: str, command: list[str]) -> None:
        path, source = self.folder / name, Path(command[-1])
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            path.unlink(missing_ok=True)
            subprocess.run([*command, "-o", str(path)], check=True)

    def environment(self) -> dict[str, str]:
        """ccache, where it is, compiles what is as before from another folder."""
        return {**os.environ, "CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1"}

    def configure(self) -> None:
        if (self.out / "build.ninja").exists():
            self.run(["cmake", str(self.out)])  # a test may be new
            return
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        linker = ["-fsanitize=leak", *(["-fuse-ld=mold"] if shutil.which("mold") else [])]
        runtime = self.folder / "libmutant.so"
        self.run(["cmake", "-S", str(self.tree), "-B", str(self.out), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                  "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DSTOKER_TESTS=ON",
                  # Other builds have read() become __read_chk(), which does not lead into the world.
                  f"-DCMAKE_C_FLAGS=-w -I{HERE.parents[1]}", "-DCMAKE_C_FLAGS_DEBUG=-O2", *launcher,
                  f"-DCMAKE_EXE_LINKER_FLAGS={' '.join(linker)}",
                  f"-DCMAKE_C_STANDARD_LIBRARIES=-Wl,-rpath,{self.folder} {runtime}"])

    def run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{shlex.join(command)}:\n{done.stdout[-20000:]}")

    def digest_of_headers(self) -> str:
        """Of what a tree of syntax depends on beside its file."""
        digest = hashlib.sha256()
        for path in [HERE / "find.py", HERE / "syntax.py", HERE / "build.py"]:
            digest.update(path.read_bytes())
        for name in self.names:
            if name.endswith((".h", ".def")) and not name.startswith("tests/"):
                digest.update((self.root / name).read_bytes())
        return digest.hexdigest()

    def find(self) -> None:
        commands = {row["file"]: shlex.split(row["command"])
                    for row in json.loads((self.out / "compile_commands.json").read_text())}
        texts = [(self.root / name).read_text() for name in self.names
                 if name.startswith("jobs/") and name.endswith((".h", ".def"))]
        macros = {name for text in texts for name in MACRO.findall(text)}
        headers = self.digest_of_headers()
        order = self.order_of_files()

        def one(name: str) -> None:
            arguments = [word.replace(str(self.tree), str(self.root))
                         for word in clang_arguments(commands[str(self.tree / name)])]
            self.found[name] = self.find_in(name, arguments, macros, headers)
            for number, mutant in enumerate(self.found[name].mutants, 1):
                mutant.number = order[name] * NUMBERS_A_FILE + number
            text, taken = weave((self.root / name).read_bytes(), self.found[name].mutants,
                                "tests/mutate/mutant.h")
            self.found[name].left["cut by another"] += len(self.found[name].mutants) - len(taken)
            self.found[name].mutants = sorted(taken, key=lambda mutant: mutant.number)
            write_if_other(self.tree / name, text)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, self.sources))

    def order_of_files(self) -> dict[str, int]:
        """A number for each file that it keeps, so that a change of one file does not compile the others again."""
        path = self.folder / "order.json"
        order = json.loads(path.read_text()) if path.exists() else {}
        for name in self.sources:
            order.setdefault(name, len(order))
        path.write_text(json.dumps(order))
        return order

    def find_in(self, name: str, arguments: list[str], macros: set[str], headers: str) -> Found:
        source = Source((self.root / name).read_bytes())
        key = hashlib.sha256(source.text + headers.encode()).hexdigest()
        kept = self.folder / "found" / f"{key}.json"
        if kept.exists():
            data = json.loads(kept.read_text())
            return Found([Mutant(**row) for row in data["mutants"]], Counter(data["left"]))
        tree = parse(self.root / name, arguments)
        own = set(MACRO.findall(source.text.decode()))
        finder = Finder(name, source, Enums(tree), macros | own)
        finder.file_of(tree)
        write_if_other(kept, json.dumps({"mutants": [asdict(mutant) for mutant in finder.mutants],
                                         "left": finder.left}).encode())
        return Found(finder.mutants, finder.left)

    # ---- the programs

    def unit_tests(self) -> dict[str, list[str]]:
        """Commands of the unit tests whose programs the box is a part of, or needs."""
        listed = subprocess.run(["ctest", "--test-dir", str(self.out), "--show-only=json-v1"], capture_output=True,
                                text=True, check=True).stdout
        names = [row["name"] for row in json.loads(listed)["tests"] if row["name"].startswith("unit_")]
        return {name: [str(self.out / "tests" / name)] for name in names
                if f"libstoker_{self.box}.a" in self.inputs(name)}

    def inputs(self, target: str) -> str:
        return subprocess.run(["ninja", "-C", str(self.out), "-t", "inputs", target], capture_output=True,
                              text=True).stdout

    def has(self, target: str) -> bool:
        listed = subprocess.run(["ninja", "-C", str(self.out), "-t", "targets", "all"], capture_output=True,
                                text=True).stdout
        return f"\n{target}: phony" in "\n" + listed

    def compile(self, targets: list[str]) -> None:
        self.run(["ninja", "-C", str(self.out), f"-j{self.jobs}", *targets])

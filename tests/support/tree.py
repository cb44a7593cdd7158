"""The files of this repository as the house rules see them: which there are,
and C without its comments and literals."""

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files() -> list[str]:
    """All files that belong to the repository, relative to its root: what git
    tracks or would track; in an exported tree, everything but build output."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
        names = [name.decode() for name in listed.split(b"\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
        names = [name for name in names
                 if not re.search(r"(^|/)(build|\.venv|__pycache__|\.git|\.pytest_cache)(/|$)", name)]
    return sorted({name for name in names if (ROOT / name).is_file()})


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def is_golden(name: str) -> bool:
    """Test data: wrong on purpose, or the expected output of something."""
    return bool(re.match(r"tests/(golden|corpus|fuzz/corpus)/|tests/unit/[^/]+/data/", name))


def c_files(*folders: str) -> list[str]:
    """.c, .h and .def files beneath the folders (all of the product if none)."""
    folders = folders or ("jobs", "cmd", "aws")
    return [name for name in files()
            if name.endswith((".c", ".h", ".def")) and name.split("/")[0] in folders]


_TOKENS = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL)


def code(name: str) -> str:
    """C text with comments and the insides of literals blanked; line numbers
    stay. Include lines keep their file names."""
    def blank(match: re.Match) -> str:
        if match["literal"]:
            line = source[source.rfind("\n", 0, match.start()) + 1:match.start()]
            if re.fullmatch(r"\s*#\s*include\s*", line):
                return match[0]
            return match[0][0] + " " * (len(match[0]) - 2) + match[0][0]
        return re.sub(r"[^\n]", " ", match[0])

    source = text(name)
    return _TOKENS.sub(blank, source)


def line_of(source: str, offset: int) -> int:
    return source.count("\n", 0, offset) + 1

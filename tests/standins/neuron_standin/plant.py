"""Things that one finds in a shared cache and that no run of one's own put there:
graphs of another team, in every state and layout. All paths are directories."""

import os
import time
from pathlib import Path

from neuron_standin.files import neff

NEW = "neuronxcc-2.25.3371.0+f524f7f8"
OLD = "neuronxcc-2.12.68.0+4480452af"


def entry(cache: Path, key: str, version: str = NEW, **files: bytes) -> Path:
    """A MODULE folder with these files; names as in neff=…, done=b"", log=…, lock=b""."""
    old = version == OLD
    source = "model.hlo.pb" if old else "model.hlo_module.pb"
    names = {"input": source, "flags": "compile_flags.txt" if old else "compile_flags.json",
             "neff": "model.neff", "done": "model.done", "log": "model.log", "lock": f"{source}.lock"}
    folder = Path(cache) / version / f"MODULE_{key}"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"input": b"another's graph\n", "flags": b"" if old else b'["--target=trn1"]', **files}
    for name, data in content.items():
        (folder / names[name]).write_bytes(data)
    return folder


def done(cache: Path, key: str = "1001+e30acd3a") -> Path:
    return entry(cache, key, neff=neff(20000), done=b"")


def old_done(cache: Path, key: str = "1002+d41d8cd9") -> Path:
    """Compiled before there were markers."""
    return entry(cache, key, OLD, neff=neff(20000))


def unmarked(cache: Path, key: str = "1003+e30acd3a") -> Path:
    """Of the new layout, with its marker lost."""
    return entry(cache, key, neff=neff(20000))


def todo(cache: Path, key: str = "1004+e30acd3a") -> Path:
    return entry(cache, key)


def failed(cache: Path, key: str = "1005+e30acd3a", text: str = "Failed compilation: [NCC_EVRF001] stand-in") -> Path:
    return entry(cache, key, log=text.encode())


def old_failed(cache: Path, key: str = "02e0833b58066ea94f2c+2c2d707e") -> Path:
    """With a compiled graph of five bytes beside its log."""
    return entry(cache, key, OLD, neff=b"12345", log=b"Failed compilation: stand-in")


def tiny(cache: Path, key: str = "1006+e30acd3a", size: int = 5) -> Path:
    """Marked as done, with next to nothing in it."""
    return entry(cache, key, neff=bytes(size), done=b"")


def locked(cache: Path, key: str = "1007+e30acd3a", age: float = 0) -> Path:
    """Somebody compiles it, or died `age` seconds ago while doing so."""
    folder = entry(cache, key, lock=b"")
    then = time.time() - age
    for path in folder.iterdir():
        os.utime(path, (then, then))
    return folder


def lock(folder: Path, age: float = 0) -> Path:
    """A lock on an entry that is there, as a killed compilation leaves it."""
    source = next(path for path in Path(folder).iterdir() if path.name in ("model.hlo.pb", "model.hlo_module.pb"))
    path = source.with_name(f"{source.name}.lock")
    path.touch()
    os.utime(path, (time.time() - age,) * 2)
    return path


def other_team(cache: Path) -> list[Path]:
    """All that another job may have left half done in a shared cache."""
    (Path(cache) / "0_REGISTRY").mkdir(parents=True, exist_ok=True)
    (Path(cache) / "0_REGISTRY" / "index.json").write_text("{}")
    return [done(cache), old_done(cache), unmarked(cache), todo(cache), failed(cache), old_failed(cache),
            tiny(cache), locked(cache)]

"""A training script that behaves like a JAX job as regards the compile cache,
in milliseconds and with nothing but the standard library: the same messages on
stderr, the same files, the same flaws (an entry that exists is never written
again, a damaged one is compiled again on every run).

What a test wants it to do besides is in extra.py, beside it, if that is there:
functions start(args), which may say at which step to begin, step(number, args)
and end(args)."""

import argparse
import hashlib
import os
import sys
import time
import zlib
from pathlib import Path

try:
    import extra
except ModuleNotFoundError as missing:
    if missing.name != "extra":
        raise
    extra = None

ON = {"1", "true", "True"}


def log(module: str, text: str) -> None:
    level = os.environ.get("JAX_LOGGING_LEVEL", "")
    if level in ("ERROR", "CRITICAL"):
        return
    prefix = f"WARNING:{time.strftime('%Y-%m-%d %H:%M:%S')},283:jax._src.{module}:135: " if level else ""
    print(prefix + text, file=sys.stderr, flush=True)


def compile_graph(name: str, shape: str) -> None:
    """One graph through the persistent cache, as JAX 0.10 does it."""
    compiles = os.environ.get("JAX_LOG_COMPILES") in ON
    explains = os.environ.get("JAX_EXPLAIN_CACHE_MISSES") in ON
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    known = f"{name} {shape} {os.environ.get('XLA_FLAGS', '')}"
    key = f"jit_{name}-{hashlib.sha256(known.encode()).hexdigest()}"
    if compiles:
        log("interpreters.pxla", f"Compiling jit({name}) with global shapes and types ({shape}).")
    if folder:
        look_up(Path(folder), key, f"jit_{name}", compiles, explains)
    if compiles:
        log("dispatch", f"Finished XLA compilation of jit({name}) in 0.001103840 sec")


def look_up(folder: Path, key: str, name: str, compiles: bool, explains: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entry = folder / f"{key}-cache"
    if entry.exists():
        try:
            zlib.decompress(entry.read_bytes())
        except (zlib.error, OSError) as error:
            print(f"/site-packages/jax/_src/compiler.py:782: UserWarning: Error reading persistent "
                  f"compilation cache entry for '{name}': error: {error}\n  warnings.warn(",
                  file=sys.stderr, flush=True)
        else:
            if compiles:
                log("compiler", f"Persistent compilation cache hit for '{name}' with key '{key}'")
            return
    if explains:
        log("compiler", f"PERSISTENT COMPILATION CACHE MISS for '{name}' with key '{key}'")
    if float(os.environ.get("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")) > 0:
        if explains:
            log("compiler", f"Not writing persistent cache entry for '{name}' because it took "
                            f"< 1.00 seconds to compile (0.00s)")
        return
    if explains:
        log("compilation_cache",
            f"Writing {name} to persistent compilation cache with key '{key}'")
    if not entry.exists():
        # No two compilations give the same bytes, nor as many of them.
        pad = os.urandom(1 + os.urandom(1)[0])
        entry.write_bytes(zlib.compress(b"\0\0\0\0" + key.encode() * 50 + pad))


def call(name: str, *args: object) -> object:
    function = getattr(extra, name, None)
    return function(*args) if function else None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--max_steps", type=int, default=20)
    args = parser.parse_args()

    first = call("start", args) or 1
    for graph in ("init_state", "train_step", "eval_step"):
        compile_graph(graph, f"float32[{args.batch_size},8]")
    for step in range(first, args.max_steps + 1):
        call("step", step, args)
        if step % 5 == 0 or step == args.max_steps:
            print(f"step: {step} loss: {1 / step:.6f} samples/s: 1000.0", flush=True)
    print(f"eval step: {args.max_steps} accuracy: 0.9750", flush=True)
    call("end", args)


if __name__ == "__main__":
    main()

"""A build cache: each product is a directory named after the checksum of all that went into it."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from .paths import cache_root
from .shell import say


def digest(*inputs) -> str:
    """One short checksum over strings, files and folders (names and contents, in a fixed order)."""
    total = hashlib.sha256()
    for item in inputs:
        _feed(total, item)
    return total.hexdigest()[:16]


def _feed(total, item) -> None:
    if not isinstance(item, Path):
        total.update(repr(item).encode() + b"\0")
    elif item.is_dir():
        for file in sorted(path for path in item.rglob("*") if path.is_file()):
            if "__pycache__" not in file.parts:
                total.update(str(file.relative_to(item)).encode() + b"\0")
                _feed(total, file)
    else:
        total.update(item.read_bytes() + b"\0")


def cached(name: str, inputs: tuple, build: Callable[[Path], None]) -> Path:
    """Return the directory with product `name`, building it if its inputs have changed.

    A product appears by rename, so that an interrupted build leaves nothing that looks finished.
    A lock per product lets several runs share the cache.
    """
    root = cache_root()
    final = root / f"{name}-{digest(*inputs)}"
    with open(root / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.exists():
            _build(name, final, build)
            _drop_older(root, name, final)
    os.utime(final)
    return final


def _build(name: str, final: Path, build: Callable[[Path], None]) -> None:
    work = final.with_name(final.name + ".work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    start = time.monotonic()
    say(f"building {name} …")
    build(work)
    work.rename(final)
    say(f"built {name} in {time.monotonic() - start:.1f}s")


def _drop_older(root: Path, name: str, keep: Path, limit: int = 3) -> None:
    """Keep the newest few versions of a product: switching branches stays cheap, the disk does not fill."""
    pattern = f"{name}-" + "[0-9a-f]" * 16
    others = [path for path in root.glob(pattern) if path != keep]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[limit - 1:]:
        shutil.rmtree(path, ignore_errors=True)

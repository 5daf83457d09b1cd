"""Where things are: the sources of the tests, and the cache that everything built goes to."""

import os
from pathlib import Path

VM = Path(__file__).resolve().parent.parent
REPOSITORY = VM.parent.parent
CASES = VM / "cases"
GUEST = VM / "guest"
MODULES = VM / "modules"
INITRAMFS = VM / "initramfs"
ARTIFACTS = REPOSITORY / "target" / "vm-artifacts"


def cache_root() -> Path:
    """The cache directory, made on first use."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(os.environ.get("PEERMEMD_VM_CACHE") or Path(base) / "peermemd-vm")
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()

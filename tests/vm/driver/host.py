"""What the machine must have: checked by looking for the files, installed only if one is missing."""

import shutil
from pathlib import Path

from .apt import Apt, codename
from .shell import say

# a file or command that proves the package is there → the package
TOOLS = {
    "apt-get": "apt",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "depmod": "kmod",
    "make": "make",
    "gcc-12": "gcc-12",
    "xz": "xz-utils",
    "setpriv": "util-linux",
    "/usr/lib/x86_64-linux-gnu/libelf.so.1": "libelf1",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
EMULATOR = {
    "qemu-system-x86_64": "qemu-system-x86",
}


def _missing(wanted: dict[str, str]) -> list[str]:
    def present(proof: str) -> bool:
        return Path(proof).exists() if proof.startswith("/") else shutil.which(proof) is not None
    return [package for proof, package in wanted.items() if not present(proof)]


def setup() -> None:
    """Install what is missing; does nothing, and asks no mirror, when all is there.

    The emulator comes from backports: the release's own clashes with newer qemu-utils, which a
    development machine may have.
    """
    tools, emulator = _missing(TOOLS), _missing(EMULATOR)
    if not tools and not emulator:
        return
    say(f"installing {' '.join(tools + emulator)} …")
    apt = Apt()
    if tools:
        apt.install(tools)
    if emulator:
        apt.install(emulator, release=f"{codename()}-backports")

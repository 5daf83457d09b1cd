"""The initramfs: a static init, the modules that reach the disks, and the files of the case."""

from pathlib import Path

from .cache import cached
from .cpio import Archive
from .kernel import Kernel
from .modules import built_modules
from .paths import INITRAMFS, VM
from .shell import run

# crc32c is what ext4 asks the crypto layer for by name; nothing here could answer that request later
BOOT_MODULES = ("crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "9pnet_virtio", "9p")


def base_initramfs(kernel: Kernel) -> Path:
    """The part that is the same for all cases."""
    built = built_modules(kernel)
    inputs = (kernel.home.name, built.name, INITRAMFS, VM / "driver/initramfs.py", VM / "driver/cpio.py")
    return cached("initramfs", inputs, lambda home: _build(kernel, built, home)) / "initrd"


def _build(kernel: Kernel, built: Path, home: Path) -> None:
    init = home / "init"
    run("gcc", "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror", "-o", init, INITRAMFS / "init.c")
    archive = Archive()
    for folder in ("dev", "proc", "sysroot"):
        archive.folder(folder)
    archive.device("dev/console", 5, 1)
    archive.file("init", init.read_bytes(), 0o755)
    files = kernel.closure(BOOT_MODULES)
    for file in files:
        archive.file(f"modules/{file.name}", file.read_bytes())
    archive.file("modules/order", "".join(f"{file.name}\n" for file in files).encode())
    for name in ("peermem_test.ko", "fakepci.ko"):
        archive.file(f"modules/{name}", (built / "base" / name).read_bytes())
    (home / "initrd").write_bytes(archive.data())
    init.unlink()


def with_overlay(base: Path, files: dict[str, str], out: Path) -> None:
    """Write an initramfs that also places `files` (absolute path → text) into the guest's root.

    The kernel unpacks archives one after another, so the overlay is simply appended.
    """
    archive = Archive()
    archive.folder("overlay")
    for path, text in files.items():
        mode = 0o755 if text.startswith("#!") else 0o644
        archive.file(f"overlay/{path.lstrip('/')}", text.encode(), mode)
    out.write_bytes(base.read_bytes() + archive.data())

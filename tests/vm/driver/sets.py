"""Module sets: what a guest finds under /lib/modules, as one small disk for each set."""

import shutil
from pathlib import Path

from .cache import cached
from .kernel import Kernel
from .modules import built_modules
from .paths import VM
from .shell import run

# stock modules that a guest can load, with all that they need
STOCK = (
    "virtio_pci", "virtio_blk", "ext4", "9p", "9pnet_virtio", "crc32c_generic", "crc32_generic", "autofs4", "overlay", "dummy",
    "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm", "rdma_rxe",
)

_DRIVER = {"nvidia.ko": "base/nvidia.ko", "nvidia-uvm.ko": "base/nvidia-uvm.ko"}
_TOOLS = {"peermem_test.ko": "base/peermem_test.ko", "fakepci.ko": "base/fakepci.ko"}


def _with_core(core: str, client: str) -> dict[str, str]:
    return {
        **_TOOLS, **_DRIVER,
        "ib_core.ko": f"{core}/ib_core.ko",
        "nvidia-peermem.ko": f"{client}/nvidia-peermem.ko",
        "nv_peer_mem.ko": "client-core/nv_peer_mem.ko",
    }


# set → {file under updates/: file in the module build}
SETS = {
    "ofed": _with_core("core", "client-core"),
    "nosysfs": _with_core("core-nosysfs", "client-core"),
    "uverbs": {
        **_TOOLS, **_DRIVER,
        "ib_uverbs.ko": "uverbs/ib_uverbs.ko",
        "nvidia-peermem.ko": "client-uverbs/nvidia-peermem.ko",
        "nv_peer_mem.ko": "client-uverbs/nv_peer_mem.ko",
    },
    "inbox": {**_TOOLS, **_DRIVER, "nvidia-peermem.ko": "client-stub/nvidia-peermem.ko"},
    "debian": {
        **_TOOLS,
        "ib_core.ko": "core/ib_core.ko",
        "nvidia-current.ko": "base/nvidia.ko",
        "nvidia-current-uvm.ko": "base/nvidia-uvm.ko",
        "nvidia-current-peermem.ko": "client-core/nvidia-peermem.ko",
    },
    "bad-stub": _with_core("core", "client-stub"),
    "bad-crc": _with_core("core", "client-crc"),
    "bad-nocrc": _with_core("core", "client-nocrc"),
    "bad-vermagic": _with_core("core", "client-vermagic"),
}


def module_disk(kernel: Kernel, name: str) -> Path:
    """The ext4 image to mount at /lib/modules for this set."""
    built = built_modules(kernel)
    inputs = (kernel.home.name, built.name, SETS[name], STOCK, VM / "driver/sets.py")
    return cached(f"set-{name}", inputs, lambda home: _build(kernel, built, SETS[name], home)) / "modules.img"


def _build(kernel: Kernel, built: Path, updates: dict[str, str], home: Path) -> None:
    root = home / "root"
    tree = root / "lib/modules" / kernel.release
    _copy_stock(kernel, tree)
    (tree / "updates").mkdir()
    for target, source in updates.items():
        shutil.copy(built / source, tree / "updates" / target)
    run("depmod", "-b", root, kernel.release)
    _add_variants(built, root / "lib/modules/variants")
    run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root / "lib/modules", home / "modules.img", "64M")
    shutil.rmtree(root)


def _copy_stock(kernel: Kernel, tree: Path) -> None:
    shipped = kernel.stock / "lib/modules" / kernel.release
    for file in kernel.closure(STOCK):
        target = tree / file.relative_to(shipped)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(shipped / name, tree)


def _add_variants(built: Path, folder: Path) -> None:
    """Every build of the client, outside the indexed tree: a case can swap one in while it runs."""
    for client in sorted(built.glob("client-*/nvidia-peermem.ko")):
        target = folder / client.parent.name.removeprefix("client-")
        target.mkdir(parents=True)
        shutil.copy(client, target)
    packed = folder / "core-xz"
    packed.mkdir()
    shutil.copy(folder / "core/nvidia-peermem.ko", packed)
    # the one check that the kernel's own decompressor knows, too
    run("xz", "--check=crc32", packed / "nvidia-peermem.ko")

"""Builds the modules of ours: the RDMA core with peer memory, the stand-ins, the broken clients."""

import re
import shutil
from pathlib import Path

from .cache import cached
from .kernel import Kernel
from .paths import MODULES, VM
from .shell import run

STANDINS = ("peermem_test", "fakepci", "nvidia", "nvidia-uvm")
CLIENTS = ("nvidia-peermem", "nv_peer_mem")
REGISTER = "ib_register_peer_memory_client"

# name of the provider build → (module that has peer_mem.c inside, whether it makes memory_peers)
PROVIDERS = {
    "core": ("ib_core", True),
    "core-nosysfs": ("ib_core", False),
    "uverbs": ("ib_uverbs", False),
}


def built_modules(kernel: Kernel) -> Path:
    """A folder with one subfolder of .ko files for each build."""
    inputs = (kernel.home.name, MODULES, VM / "driver/modules.py")
    return cached("modules", inputs, lambda home: _build_all(kernel, home))


def _build_all(kernel: Kernel, home: Path) -> None:
    work = home / ".build"
    for name, (provider, sysfs) in PROVIDERS.items():
        _build_provider(kernel, work / provider, provider, sysfs)
        _keep(work / provider, [provider], home / name)
    base = _build_standins(kernel, work / "base", STANDINS)
    _keep(base, STANDINS, home / "base")
    _build_clients(kernel, work, base, home)
    shutil.rmtree(work)


def _build_provider(kernel: Kernel, work: Path, provider: str, sysfs: bool) -> None:
    """Debian's source of one RDMA module, with peer_mem.c added.

    A second build in the same folder compiles only what its flags change.
    """
    if not work.exists():
        shutil.copytree(kernel.rdma_core_source, work)
        for file in ("peer_mem.c", "peer_mem.h"):
            shutil.copy(MODULES / "rdma" / file, work)
        with open(work / "Makefile", "a") as makefile:
            makefile.write((MODULES / "rdma/Kbuild.peer_mem").read_text())
    _kbuild(kernel, work, f"PEER_MEM_HOME={provider}", f"PEER_MEM_SYSFS={'y' if sysfs else 'n'}")


def _build_standins(kernel: Kernel, work: Path, names: tuple[str, ...], *options: str,
                    symbols: tuple[Path, ...] = ()) -> Path:
    shutil.copytree(MODULES / "standins", work)
    shutil.copy(MODULES / "rdma/peer_mem.h", work)
    objects = " ".join(f"{name}.o" for name in names)
    extra = " ".join(str(file) for file in symbols)
    _kbuild(kernel, work, f"STANDINS={objects}", f"KBUILD_EXTRA_SYMBOLS={extra}", *options)
    return work


def _build_clients(kernel: Kernel, work: Path, base: Path, home: Path) -> None:
    """The clients for each home of the symbol, and the ways in which a build of one goes wrong."""
    nvidia = base / "Module.symvers"
    core = work / "ib_core/Module.symvers"
    uverbs = work / "ib_uverbs/Module.symvers"
    only = ("nvidia-peermem",)

    def build(name: str, names: tuple[str, ...], *options: str, symbols: tuple[Path, ...]) -> None:
        _keep(_build_standins(kernel, work / name, names, *options, symbols=symbols), names, home / name)

    build("client-core", CLIENTS, symbols=(nvidia, core))
    build("client-uverbs", CLIENTS, symbols=(nvidia, uverbs))
    build("client-stub", only, "PEERMEM_STUB=y", symbols=(nvidia,))
    build("client-crc", only, symbols=(nvidia, _with_wrong_crc(core, work / "crc.symvers")))
    build("client-nocrc", only, "KBUILD_MODPOST_WARN=1", symbols=(nvidia,))
    _with_other_vermagic(home / "client-core/nvidia-peermem.ko", home / "client-vermagic")


def _with_wrong_crc(symvers: Path, out: Path) -> Path:
    """As if the client had been built for another release of the RDMA stack."""
    out.write_text(re.sub(rf"^0x\w+(\t{REGISTER}\t)", r"0x12345678\1", symvers.read_text(), flags=re.M))
    return out


def _with_other_vermagic(module: Path, folder: Path) -> None:
    """As if built for a kernel with other options; the release in it would not be compared."""
    folder.mkdir()
    data = module.read_bytes()
    changed = data.replace(b" SMP preempt ", b" SMP PREEMPT ")
    if changed == data:
        raise ValueError("the kernel's vermagic has no 'SMP preempt' to change")
    (folder / module.name).write_bytes(changed)


def _kbuild(kernel: Kernel, folder: Path, *variables: str) -> None:
    run("make", "-s", "-j2", "-C", kernel.headers, f"M={folder}", *variables, "modules")


def _keep(folder: Path, names, into: Path) -> None:
    into.mkdir()
    for name in names:
        run("strip", "--strip-debug", "-o", into / f"{name}.ko", folder / f"{name}.ko")

"""The stock Debian kernel: image, module files, headers and the RDMA core's source, unpacked only."""

import lzma
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from .apt import Apt
from .cache import cached
from .paths import VM
from .shell import run

CORE = "drivers/infiniband/core"


@dataclass(frozen=True)
class Kernel:
    """One unpacked kernel."""

    home: Path

    @property
    def release(self) -> str:
        return (self.home / "release").read_text()

    @property
    def vmlinux(self) -> Path:
        return self.home / "vmlinux"

    @property
    def stock(self) -> Path:
        """A root folder with `lib/modules/RELEASE` as shipped, indexed."""
        return self.home / "stock"

    def closure(self, names: tuple[str, ...]) -> list[Path]:
        """The stock files of these modules and all that they need, in loading order."""
        lines = []
        for name in names:
            lines += run("modprobe", "-d", self.stock, "-S", self.release, "--show-depends", name).splitlines()
        files = (line.split()[1] for line in lines if line.startswith("insmod "))
        return [Path(file) for file in dict.fromkeys(files)]

    @property
    def headers(self) -> Path:
        """The folder to build external modules against."""
        return self.home / "headers" / "usr/src" / f"linux-headers-{self.release}"

    @property
    def rdma_core_source(self) -> Path:
        """`drivers/infiniband/core` of exactly this kernel's source."""
        return self.home / "core"


def kernel() -> Kernel:
    """The newest signed kernel of the release, from the cache if it is there."""
    apt = Apt()
    inputs = (apt.version("linux-image-amd64"), VM / "driver/kernel.py")
    return Kernel(cached("kernel", inputs, lambda home: _unpack(apt, home)))


def _unpack(apt: Apt, home: Path) -> None:
    image = next(name for name in apt.depends("linux-image-amd64") if name.startswith("linux-image-"))
    release = image.removeprefix("linux-image-")
    (home / "release").write_text(release)
    _unpack_image(apt, image, release, home)
    _unpack_headers(apt, release, home)
    _unpack_core(apt, release, home)


def _unpack_image(apt: Apt, image: str, release: str, home: Path) -> None:
    tree = home / "image"
    apt.unpack([image], tree)
    bzimage = (tree / f"boot/vmlinuz-{release}").read_bytes()
    (home / "vmlinux").write_bytes(extract_vmlinux(bzimage))
    (home / "stock").mkdir()
    (tree / "lib").rename(home / "stock/lib")
    shutil.rmtree(tree)
    run("depmod", "-b", home / "stock", release)


def extract_vmlinux(bzimage: bytes) -> bytes:
    """The ELF kernel inside a bzImage (boot protocol 2.08): booting it saves the guest the unpacking."""
    setup_sectors = bzimage[0x1F1] or 4
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    # the payload ends with its unpacked size, four bytes that are not part of the xz stream
    return lzma.decompress(bzimage[start:start + length - 4])


def _unpack_headers(apt: Apt, release: str, home: Path) -> None:
    tree = home / "headers"
    headers = f"linux-headers-{release}"
    needed = apt.depends(headers)
    apt.unpack([headers, *(name for name in needed if name.startswith("linux-"))], tree)
    # the package's Makefile names its companion by absolute path
    makefile = tree / "usr/src" / headers / "Makefile"
    final = home.with_name(home.name.removesuffix(".work")) / "headers"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{final}/usr/src/"))


def _unpack_core(apt: Apt, release: str, home: Path) -> None:
    series = ".".join(release.split(".")[:2])
    tree = home / "source"
    apt.unpack([f"linux-source-{series}"], tree)
    archive = tree / f"usr/src/linux-source-{series}.tar.xz"
    run("tar", "--use-compress-program=xz -T0", "--extract", "--file", archive, "--directory", tree,
        "--strip-components=1", f"linux-source-{series}/{CORE}")
    (tree / CORE).rename(home / "core")
    shutil.rmtree(tree)

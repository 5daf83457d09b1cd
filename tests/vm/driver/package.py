"""Another version of the package under test."""

from pathlib import Path

from .cache import cached
from .paths import VM
from .shell import run


def upgrade_of(deb: Path) -> Path:
    """The same package with a higher version, as the next release would come."""
    inputs = (deb, VM / "driver/package.py")
    return cached("upgrade", inputs, lambda home: _repack(deb, home)) / "upgrade.deb"


def _repack(deb: Path, home: Path) -> None:
    tree = home / "tree"
    run("dpkg-deb", "--raw-extract", deb, tree)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines()
    control.write_text("".join(_raised(line) + "\n" for line in lines))
    # Emulated, decompression takes longer than anything else of an installation.
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, home / "upgrade.deb")
    run("rm", "-r", tree)


def _raised(line: str) -> str:
    return f"{line}+upgrade" if line.startswith("Version: ") else line

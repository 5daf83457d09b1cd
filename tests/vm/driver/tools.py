"""Small programs that a case runs in the guest."""

from pathlib import Path

from .cache import cached
from .paths import VM
from .shell import run


def tool(name: str) -> Path:
    """One of `tools/`, compiled."""
    source = VM / "tools" / f"{name}.rs"

    def build(home: Path) -> None:
        run("rustc", "--edition=2024", "-O", source, "-o", home / name)

    return cached(f"tool-{name}", (source,), build) / name

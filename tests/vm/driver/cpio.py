"""A writer for the initramfs format (newc): the few lines that are needed, no host tool."""

import stat
from pathlib import Path


class Archive:
    """Collects entries; `data()` is the finished archive."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._folders: set[str] = set()

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Add a regular file, with the folders above it."""
        self._parents(path)
        self._entry(path, stat.S_IFREG | mode, content)

    def folder(self, path: str) -> None:
        """Add a folder, once."""
        self._parents(path)
        if path not in self._folders:
            self._folders.add(path)
            self._entry(path, stat.S_IFDIR | 0o755)

    def device(self, path: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._parents(path)
        self._entry(path, stat.S_IFCHR | 0o600, device=(major, minor))

    def data(self) -> bytes:
        """The archive, closed."""
        return b"".join([*self._parts, _entry("TRAILER!!!", 0, b"", (0, 0))])

    def _parents(self, path: str) -> None:
        parent = str(Path(path).parent)
        if parent != ".":
            self.folder(parent)

    def _entry(self, path: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._parts.append(_entry(path, mode, content, device))


def _entry(path: str, mode: int, content: bytes, device: tuple[int, int]) -> bytes:
    name = path.encode() + b"\0"
    #         ino mode uid gid nlink mtime size         devmajor devminor rdev…   namesize   check
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)

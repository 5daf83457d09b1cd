"""Debian packages: a private view of the machine's own mirror, with backports added.

The machine's apt configuration is read, never changed. Mirror addresses come from it, so that
this works behind whatever mirror the machine uses.
"""

import os
import re
import time
from pathlib import Path

from .cache import digest
from .paths import cache_root
from .shell import CommandFailed, run, say

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_MAX_AGE = 24 * 3600


def codename() -> str:
    """The release that the machine runs; the guest is built from the same one."""
    text = Path("/etc/os-release").read_text()
    return re.search(r"^VERSION_CODENAME=(\w+)", text, re.M).group(1)


def mirrors() -> dict[str, str]:
    """Map suite to mirror address, for the suites of this release that the machine's sources name."""
    found = {}
    for file in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            found.update(_from_stanza(stanza))
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.list"))]
    for file in lists:
        if file.exists():
            found.update(_from_lines(file.read_text()))
    wanted = {suite: uri for suite, uri in found.items() if suite.split("-")[0] == codename()}
    if codename() not in wanted:
        raise CommandFailed(f"no apt source of this machine names the suite {codename()}")
    return wanted


def _from_stanza(stanza: str) -> dict[str, str]:
    fields = dict(re.findall(r"^(Types|URIs|Suites|Enabled):\s*(.+)$", stanza, re.M))
    if "deb" not in fields.get("Types", "").split() or fields.get("Enabled", "yes") == "no":
        return {}
    return {suite: fields["URIs"].split()[0] for suite in fields["Suites"].split()}


def _from_lines(text: str) -> dict[str, str]:
    lines = re.findall(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s", text, re.M)
    return {suite: uri for uri, suite in lines}


def source_lines(backports: bool) -> list[str]:
    """One-line apt sources for this release, optionally with backports from the main mirror."""
    suites = mirrors()
    if backports:
        suites.setdefault(f"{codename()}-backports", suites[codename()])
    return [f"deb [signed-by={KEYRING}] {uri} {suite} main" for suite, uri in sorted(suites.items())]


class Apt:
    """apt with its own sources, lists and archive folder, over the machine's package status."""

    def __init__(self) -> None:
        self._lines = source_lines(backports=True)
        self._home = cache_root() / f"apt-{digest(self._lines)}"
        for folder in ("lists/partial", "archives/partial", "parts", "debs"):
            (self._home / folder).mkdir(parents=True, exist_ok=True)
        (self._home / "sources.list").write_text("\n".join(self._lines) + "\n")
        self._refresh()

    def _options(self) -> list[str]:
        home = self._home
        return [
            "-o", f"Dir::Etc::SourceList={home}/sources.list",
            "-o", f"Dir::Etc::SourceParts={home}/parts",
            "-o", f"Dir::State::Lists={home}/lists",
            "-o", f"Dir::Cache={home}",
            "-o", f"Dir::Cache::Archives={home}/archives",
            "-o", "APT::Sandbox::User=root",
            "-o", "Acquire::Retries=3",
            "-o", "DPkg::Lock::Timeout=600",
        ]

    def _refresh(self) -> None:
        """Fetch the package lists, at most once a day; lists that are there do when the mirror is not."""
        stamp = self._home / "refreshed"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_MAX_AGE:
            return
        try:
            run("apt-get", *self._options(), "update")
        except CommandFailed as failure:
            if not stamp.exists():
                raise
            say(f"using older package lists: {failure}")
        stamp.touch()

    def install(self, packages: list[str], release: str | None = None) -> None:
        """Install packages on this machine, without recommendations."""
        target = ["-t", release] if release else []
        run("apt-get", *self._options(), "install", "-y", "--no-install-recommends", *target, *packages,
            env=_noninteractive())

    def depends(self, package: str) -> list[str]:
        """The packages that `package` directly depends on."""
        text = run("apt-cache", *self._options(), "depends", package)
        return re.findall(r"^\s+Depends: ([^<\s]+)", text, re.M)

    def version(self, package: str) -> str:
        """The version that would be downloaded."""
        text = run("apt-cache", *self._options(), "policy", package)
        return re.search(r"Candidate: (\S+)", text).group(1)

    def unpack(self, packages: list[str], into: Path) -> None:
        """Download packages and unpack them into a folder: nothing is installed, no script runs."""
        downloads = into / ".debs"
        downloads.mkdir(parents=True)
        run("apt-get", *self._options(), "download", *packages, cwd=downloads)
        for deb in sorted(downloads.glob("*.deb")):
            run("dpkg-deb", "--extract", deb, into)
            deb.unlink()
        downloads.rmdir()


def _noninteractive() -> dict:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

"""The guest's root file system: a small Debian, and the same with the package under test installed."""

import os
import shutil
from pathlib import Path

from .apt import codename, source_lines
from .cache import cached
from .paths import GUEST, VM
from .shell import run

PACKAGES = ("systemd", "systemd-sysv", "dbus", "udev", "kmod", "procps", "util-linux", "bash", "iproute2")
IMAGE_SIZE = "700M"

# units that only cost emulated time
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "fstrim.timer", "systemd-tmpfiles-clean.timer", "getty.target", "getty-static.service", "console-getty.service",
    "systemd-random-seed.service", "systemd-hwdb-update.service", "systemd-journal-catalog-update.service",
    "systemd-machine-id-commit.service", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
    "systemd-pstore.service", "systemd-networkd.service", "systemd-timesyncd.service", "systemd-logind.service",
    "systemd-ask-password-wall.path", "systemd-ask-password-console.path", "systemd-binfmt.service",
    "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
    "dev-hugepages.mount", "dev-mqueue.mount", "proc-sys-fs-binfmt_misc.automount", "modprobe@configfs.service",
    "modprobe@drm.service", "modprobe@efi_pstore.service", "modprobe@fuse.service", "modprobe@dm_mod.service",
    "modprobe@loop.service",
)

# fstab's mounts, and systemd.mask= on the kernel command line
KEPT_GENERATORS = ("systemd-fstab-generator", "systemd-debug-generator")


def base_image() -> Path:
    """The image without the package under test."""
    tree = _base_tree()
    return cached("image", (tree.name, VM / "driver/image.py"), lambda home: _pack(tree / "root", home)) / "root.img"


def image_with(deb: Path) -> Path:
    """The image with the package installed as on a real node, only that nothing was started."""
    tree = _base_tree()
    inputs = (tree.name, deb, VM / "driver/image.py")
    return cached("image-deb", inputs, lambda home: _install(tree / "root", deb, home)) / "root.img"


def _base_tree() -> Path:
    inputs = (source_lines(backports=False), PACKAGES, GUEST / "image", VM / "driver/image.py")
    return cached("tree", inputs, _bootstrap)


def _bootstrap(home: Path) -> None:
    root = home / "root"
    sources = home / "sources.list"
    sources.write_text("\n".join(source_lines(backports=False)) + "\n")
    run("mmdebstrap", "--quiet", "--mode=root", "--variant=essential", f"--include={','.join(PACKAGES)}",
        "--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/man/*",
        codename(), root, sources, timeout=500)
    _adapt(root)


def _adapt(root: Path) -> None:
    shutil.copytree(GUEST / "image", root, dirs_exist_ok=True)
    units = root / "etc/systemd/system"
    for unit in MASKED:
        _link(units / unit, "/dev/null")
    for generator in (root / "usr/lib/systemd/system-generators").iterdir():
        if generator.name not in KEPT_GENERATORS:
            _link(root / "etc/systemd/system-generators" / generator.name, "/dev/null")
    _link(units / "default.target", "/usr/lib/systemd/system/multi-user.target")
    _link(units / "multi-user.target.wants/vm-agent.service", "../vm-agent.service")
    # nothing is out of date: no caches are rebuilt at boot
    for stamp in ("etc/.updated", "var/.updated"):
        (root / stamp).touch()
    for folder in ("mnt/tests", "mnt/results", "usr/lib/modules"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _install(base: Path, deb: Path, home: Path) -> None:
    root = home / "root"
    run("cp", "--archive", "--reflink=auto", base, root)
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    shutil.copy(deb, root / "package.deb")
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    run("chroot", root, "dpkg", "--install", "/package.deb", env={**os.environ, **environment}, timeout=120)
    (root / "package.deb").unlink()
    policy.unlink()
    _pack(root, home)
    shutil.rmtree(root)


def _pack(root: Path, home: Path) -> None:
    run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, home / "root.img", IMAGE_SIZE)

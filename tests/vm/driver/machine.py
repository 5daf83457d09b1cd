"""One guest: the emulator's command line, started and ended within a time limit."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .paths import VM

MEMORY = "1G"
BOOT_LIMIT = 90
CMDLINE = (
    "console=ttyS0 loglevel=4 panic=-1 mitigations=off random.trust_cpu=on nokaslr cryptomgr.notests "
    "no_timer_check rdinit=/init systemd.show_status=0 systemd.firstboot=0 net.ifnames=0"
)


@dataclass
class Machine:
    """What a guest boots from, and the folder that it reports to."""

    vmlinux: Path
    initramfs: Path
    root: Path
    modules: Path
    cmdline: str
    results: Path
    boots: int

    def run(self, script_limit: int) -> None:
        """Boot, let the guest do its work and power itself off.

        `timeout` ends an emulator that hangs; the parent-death signals end it with this program.
        """
        limit = self.boots * (BOOT_LIMIT + script_limit)
        guard = ["setpriv", "--pdeathsig", "KILL"]
        command = [*guard, "timeout", "-k", "5", str(limit), *guard, *self._command()]
        environment = {**os.environ, "TMPDIR": str(self.results)}
        with open(self.results / "qemu.log", "w") as log:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                           timeout=limit + 30, check=False)

    def _command(self) -> list[str]:
        return [
            "qemu-system-x86_64", "-M", "pc", "-accel", "tcg,thread=multi", "-cpu", "Nehalem,+rdrand,+rdseed",
            "-smp", "2", "-m", MEMORY, "-nodefaults", "-no-user-config", "-display", "none",
            "-action", f"reboot={'reset' if self.boots > 1 else 'shutdown'}",
            "-serial", f"file:{self.results}/console.log",
            "-kernel", str(self.vmlinux), "-initrd", str(self.initramfs), "-append", f"{CMDLINE} {self.cmdline}",
            *_disk(self.root), *_disk(self.modules),
            *_share("tests", VM, ",readonly=on"), *_share("results", self.results, ""),
        ]


def _disk(image: Path) -> list[str]:
    """A disk that forgets: what the guest writes goes to a temporary overlay."""
    return ["-drive", f"file={image},format=raw,if=virtio,snapshot=on,cache=unsafe"]


def _share(tag: str, folder: Path, options: str) -> list[str]:
    return ["-virtfs", f"local,path={folder},mount_tag={tag},security_model=none{options}"]

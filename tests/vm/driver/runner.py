"""Runs cases and prints one line for each."""

import shlex
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .case import Case
from .image import base_image, image_with
from .initramfs import base_initramfs, with_overlay
from .kernel import Kernel, kernel
from .machine import Machine
from .package import upgrade_of
from .sets import module_disk
from .shell import say
from .tools import tool


@dataclass
class Tally:
    """How the run went."""

    passed: int
    failed: int
    skipped: int

    def line(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


class Runner:
    """Holds what all cases of a run share."""

    def __init__(self, deb: Path | None, artifacts: Path) -> None:
        self._deb = deb
        self._artifacts = artifacts
        self._kernel: Kernel = kernel()
        self._initramfs = base_initramfs(self._kernel)

    def run_all(self, cases: list[Case], jobs: int) -> Tally:
        """Run the cases, some at a time; a failing one does not stop the others."""
        possible = [case for case in cases if not self._why_not(case)]
        for case in cases:
            if case not in possible:
                say(f"skip {case.name} ({self._why_not(case)})")
        with ThreadPoolExecutor(jobs) as pool:
            passed = sum(pool.map(self._run_and_tell, possible))
        return Tally(passed, len(possible) - passed, len(cases) - len(possible))

    def _why_not(self, case: Case) -> str:
        """Why the case cannot or should not run; empty if it does."""
        return "needs --deb" if case.needs_deb and not self._deb else case.skip

    def _run_and_tell(self, case: Case) -> bool:
        results = self._artifacts / case.name
        start = time.monotonic()
        self._boot(case, results)
        if _passed(results):
            say(f"ok {case.name} {time.monotonic() - start:.1f}s")
            _show_report(results)
            return True
        say(f"FAIL {case.name} (see {results})")
        _show_tail(results)
        return False

    def _boot(self, case: Case, results: Path) -> None:
        """Boot the case's guest; an emulator that never got to its first line of output is started once more."""
        machine = self._machine(case, results)
        for again in (True, False):
            _fresh(results)
            self._prepare(case, results)
            machine.run(case.limit)
            console = results / "console.log"
            if (results / "started").exists() or (console.exists() and console.stat().st_size):
                break
            if again:
                say(f"{case.name}: the emulator gave no output at all, starting it once more")
        (results / "initrd").unlink(missing_ok=True)

    def _machine(self, case: Case, results: Path) -> Machine:
        return Machine(
            vmlinux=self._kernel.vmlinux,
            initramfs=results / "initrd",
            root=image_with(self._deb) if case.needs_deb and self._deb else base_image(),
            modules=module_disk(self._kernel, case.set),
            cmdline=case.cmdline,
            results=results,
            boots=int(case.boots),
        )

    def _prepare(self, case: Case, results: Path) -> None:
        with_overlay(self._initramfs, case.files, results / "initrd")
        if case.package and self._deb:
            shutil.copy(upgrade_of(self._deb), results / "upgrade.deb")
        for name in case.tools.split():
            shutil.copy(tool(name), results)
        settings = {"CASE": case.name, "SET": case.set, "START": case.start, "LIMIT": case.limit,
                    "ROUNDS": case.rounds, "BOOTS": case.boots}
        lines = (f"{key}={shlex.quote(str(value))}\n" for key, value in settings.items())
        (results / "case.env").write_text("".join(lines))


def _fresh(results: Path) -> None:
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)


def _passed(results: Path) -> bool:
    """Whether the script's unit ended well; a guest that never reported has failed."""
    status = results / "status"
    return status.exists() and status.read_text().strip() == "success"


def _show_report(results: Path) -> None:
    """What a benchmark measured."""
    report = results / "report.txt"
    if report.exists():
        say("\n".join(f"    {line}" for line in report.read_text().splitlines()))


def _show_tail(results: Path, lines: int = 15) -> None:
    """Most failures explain themselves in the script's last lines."""
    _show_report(results)
    for name in ("output.txt", "console.log"):
        file = results / name
        if file.exists() and file.stat().st_size:
            tail = file.read_text(errors="replace").splitlines()[-lines:]
            say("\n".join(f"    {line}" for line in tail))
            return

"""One test case: a shell script whose leading comment says what machine it needs.

    # title: what it shows, in one line
    # set: ofed                      module set (see sets.py)
    # cmdline: fakepci.gpus=1        more words for the kernel command line
    # start: booted                  or early: do not wait for the boot to finish
    # needs: deb                     the package under test is installed in the image
    # package: upgrade               /mnt/results/upgrade.deb is the same package with a higher version
    # tools: bus_latency             programs of tools/ to find under /mnt/results
    # group: bench                   not part of the default run; chosen with --group
    # rounds: 3                      how often the script does it again, as $ROUNDS
    # proof: 50 1200                 as many rounds, and seconds for them, with --group proof
    # skip: why                      not run unless it is named; the runner says why
    # timeout: 120                   seconds for the script
    # boots: 2                       the script runs in so many boots of one machine, as $BOOT 1, 2, …
    #> /etc/modprobe.d/x.conf        a file to place before the machine boots; its lines follow
    #| options nvidia need_gpu=1
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from .paths import CASES, GUEST
from .sets import SETS

KEYS = ("title", "set", "cmdline", "start", "needs", "package", "tools", "group", "rounds", "proof", "skip", "timeout",
        "boots")
GROUPS = ("test", "bench")
DAEMON_CONFIG = "/etc/peermemd/peermemd.toml.d/10-vm.toml"


class BadCase(Exception):
    """A header that says something unknown."""


@dataclass
class Case:
    """A case as its header declares it."""

    name: str
    title: str = ""
    set: str = "ofed"
    cmdline: str = ""
    start: str = "booted"
    needs: str = ""
    package: str = ""
    tools: str = ""
    group: str = "test"
    rounds: str = "1"
    proof: str = ""
    skip: str = ""
    timeout: str = "90"
    boots: str = "1"
    files: dict[str, str] = field(default_factory=dict)

    @property
    def needs_deb(self) -> bool:
        return self.needs == "deb"

    @property
    def limit(self) -> int:
        """Seconds that the script may take."""
        return int(self.timeout)

    def at_length(self) -> "Case":
        """The same with the rounds and the time of the proof."""
        rounds, timeout = self.proof.split()
        return replace(self, rounds=rounds, timeout=timeout)


def all_cases() -> list[Case]:
    """Every case in the folder, in the order of names."""
    return [read_case(path) for path in sorted(CASES.glob("*.sh"))]


def read_case(path: Path) -> Case:
    """Parse the header of one script."""
    case = Case(path.stem)
    target = None
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            break
        if line.startswith("#> "):
            target = line[3:].strip()
            case.files[target] = ""
        elif line.startswith("#|") and target:
            case.files[target] += line[2:].removeprefix(" ") + "\n"
        elif line.startswith("# "):
            _set_key(case, line[2:])
    _check(case)
    if case.needs_deb:
        case.files.setdefault(DAEMON_CONFIG, (GUEST / "peermemd-vm.toml").read_text())
    return case


def _set_key(case: Case, text: str) -> None:
    key, colon, value = text.partition(": ")
    if colon and key in KEYS:
        setattr(case, key, value.strip())


def _check(case: Case) -> None:
    allowed = {
        "set": tuple(SETS), "start": ("booted", "early"), "needs": ("", "deb"),
        "package": ("", "upgrade"), "group": GROUPS,
    }
    for key, values in allowed.items():
        if getattr(case, key) not in values:
            raise BadCase(f"{case.name}: {key} is {getattr(case, key)!r}, not one of {', '.join(values)}")
    if not case.title or not case.timeout.isdigit() or not case.rounds.isdigit():
        raise BadCase(f"{case.name}: the header needs a title, and timeout and rounds in whole numbers")
    if case.boots not in ("1", "2", "3"):
        raise BadCase(f"{case.name}: boots is {case.boots!r}, not 1, 2 or 3")
    if case.proof and [word.isdigit() for word in case.proof.split()] != [True, True]:
        raise BadCase(f"{case.name}: proof is {case.proof!r}, not two numbers, rounds and seconds")

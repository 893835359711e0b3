"""Run the whole suite in its groups, fast ones first, and say what each cost against its budget.

Runs on the system's Python with the standard library alone, since installing is the first thing it measures.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from scripts.services.shared import BASE, kept
from scripts.shown import PAGE, shown, told

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
NOTHING_COLLECTED = 5
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
ROOM_BYTES = 2 << 30
"""The room in memory from which tests have their files there."""
SLOWEST = 20
"""Tests that are named with their time at the end."""

# Independent HTTP/2 servers, a load generator, a compiler, an installer of judges, a browser, a judge of rules, stores:
# command -> Debian package.
PROGRAMS = {
    "nghttpd": "nghttp2-server",
    "h2load": "nghttp2-client",
    "nginx": "nginx",
    "h2o": "h2o",
    "node": "nodejs",
    "npm": "npm",
    "go": "golang-go",
    "cc": "build-essential",
    "python3-config": "python3-dev",
    "mvn": "maven",
    "javac": "default-jdk-headless",
    "chromium": "chromium",
    "redis-server": "redis-server",
    "firefox-esr": "firefox-esr",
    "promtool": "prometheus",
    "pg_createcluster": "postgresql",  # its own programs are not on the path
}


@dataclass(frozen=True)
class Group:
    """Tests that run together within *budget_s* seconds on two cores with cold caches."""

    name: str
    budget_s: int
    folders: tuple[str, ...]
    side_by_side: tuple[str, ...] = ("-n", "2", "--dist", "loadfile")
    """Two files at a time, for two cores; tests that mostly wait for processes of their own may be more."""
    select: str = "not long"
    """Which tests of the folders: pytest's expression over marks."""
    in_memory: bool = False
    """Whether files of its tests may be in memory: what it ends is processes, never power."""


# The budgets add up to 25 of the 25 minutes that the whole suite may take.
SET_UP = Group("set-up", 110, ())
ENGINES = (
    "tests/adapters/sql",
    "tests/adapters/kafka",
    "tests/adapters/redis",
    "tests/adapters/stream",
    "tests/adapters/cassandra",
    "tests/adapters/services",
    "tests/contract",
    "tests/hostile",
)
GROUPS = (
    Group(
        "unit and contract",
        190,
        ("tests/unit", "tests/contract", "tests/architecture", "tests/simulation"),
        select="not engines",
        in_memory=True,
    ),
    Group("protocols", 160, ("tests/adapters/http2", "tests/adapters/lab", "tests/adapters/senders")),
    Group("engines", 430, ENGINES, select="(adapters or engines) and not long"),
    Group(
        "entry points",
        140,
        (
            "tests/adapters/rest",
            "tests/adapters/grpc",
            "tests/adapters/jwt",
            "tests/adapters/telemetry",
            "tests/hostile",
        ),
        side_by_side=("-n", "2", "--dist", "worksteal"),
        select="not long and not engines",
        in_memory=True,
    ),
    Group("browsers", 100, ("tests/browsers", "tests/web")),
    Group("journeys", 370, ("tests/journeys",), side_by_side=("-n", "3", "--dist", "worksteal")),
)


@dataclass
class Counts:
    """How many tests ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        return f"{text}, {self.skipped} skipped" if self.skipped else text


@dataclass
class Result:
    """What one group did."""

    group: Group
    seconds: float
    ok: bool
    counts: Counts = field(default_factory=Counts)
    covered: frozenset[tuple[str, str]] = frozenset()
    """What its passed tests say they cover (tests/survival.py): (`adapter`, `log: work`), (`fault`, …)."""
    last_line: str = ""
    took: tuple[tuple[float, str], ...] = ()
    """The seconds of each of its tests, with their fixtures, and its name."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """How each of its tests ended, by its id."""

    @property
    def late(self) -> bool:
        """Tell whether the group took longer than its budget."""
        return self.seconds > self.group.budget_s


def main() -> None:
    """Set up, run every group whatever the others did, report; end with 1 if one failed."""
    with kept() as base:
        os.environ[BASE] = str(base)
        results = [set_up()]
        results += [run_group(group) for group in GROUPS]
    report(results)
    sys.exit(0 if all(result.ok for result in results) else 1)


def set_up() -> Result:
    """Install the environment and what tests talk to, the compiled kernel too; a failure here ends the run."""
    started = time.monotonic()
    with ThreadPoolExecutor() as beside:
        environment = beside.submit(subprocess.run, [sys.executable, "scripts/install.py"], cwd=ROOT, check=False)
        install_missing(PROGRAMS)
        servers("fetch")
        if environment.result().returncode != 0:
            sys.exit(1)
    if subprocess.run([PYTHON, "-m", "scripts.compiled", "--keep"], cwd=ROOT, check=False).returncode != 0:
        sys.exit(1)
    servers("up")
    in_background([PYTHON, "-m", "tests.journeys.go_caller"])
    return Result(SET_UP, time.monotonic() - started, ok=True)


def servers(action: str) -> None:
    """Fetch or start the servers in the background: tests that need one wait for it, and say what is wrong with it."""
    in_background([sys.executable, "-m", "scripts.services", action, "--base", os.environ[BASE]])


def in_background(command: list[str | Path]) -> None:
    """Run what a later test needs; it finds out itself where that failed."""
    threading.Thread(
        target=subprocess.run, args=[command], kwargs={"cwd": ROOT, "capture_output": True, "check": False}
    ).start()


def install_missing(programs: dict[str, str]) -> None:
    """Install the packages of the commands that are not there."""
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])  # Debian hides nghttpd from users there
    missing = sorted(package for command, package in programs.items() if shutil.which(command, path=search) is None)
    if missing:
        install_packages(missing)


def install_packages(packages: list[str]) -> None:
    """Fetch Debian packages as root; otherwise say how. Under CI nothing may be missing."""
    wish = f"apt-get install {' '.join(packages)}"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"Installing {' '.join(packages)} ...", flush=True)
        unattended = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        for command in (["apt-get", "update", "-qq"], install):
            if subprocess.run(command, env=unattended, stdout=subprocess.DEVNULL, check=False).returncode != 0:
                sys.exit(f"{' '.join(command)} failed.")
    elif os.environ.get("CI") == "true":
        sys.exit(f"Missing programs. As root: {wish}")
    else:
        print(f"Tests that need {' and '.join(packages)} will be skipped. To run them: sudo {wish}", flush=True)


def run_group(group: Group) -> Result:
    """Run one group's folders under pytest, its output passed on as it comes."""
    print(f"\n== {group.name} ==", flush=True)
    started = time.monotonic()
    present = [folder for folder in group.folders if (ROOT / folder).is_dir()]
    absent = sorted(set(group.folders) - set(present))
    if absent:
        print(f"No such folder: {', '.join(absent)}", flush=True)
    if not present:
        return Result(group, 0.0, ok=False, last_line="no tests found")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if group.in_memory and has_room(IN_MEMORY) else None) as scratch:
        record = Path(scratch) / "results.xml"
        how = ["-q", *group.side_by_side, "-m", group.select, f"--junitxml={record}"]
        if group.in_memory:
            how += [f"--basetemp={scratch}/tests", "-o", "tmp_path_retention_policy=failed"]
        code, last_line = pass_on([PYTHON, "-m", "pytest", *how, *present])
        result = Result(group, 0.0, code == 0 and not absent, read_counts(record), read_covered(record), last_line)
        result.took, result.outcomes = read_took(record), read_outcomes(record)
    result.seconds = time.monotonic() - started
    return result


def has_room(folder: Path) -> bool:
    """Tell whether there is such a folder, with room for what tests write."""
    return folder.is_dir() and shutil.disk_usage(folder).free >= ROOM_BYTES


def pass_on(command: list[str | Path]) -> tuple[int, str]:
    """Run *command*, print its output as it comes, return its exit code and its last line."""
    last_line = ""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last_line = line.strip() or last_line
    if running.returncode == NOTHING_COLLECTED:
        last_line = "no tests found"
    return running.returncode, last_line


def read_counts(record: Path) -> Counts:
    """Sum pytest's own record of a run; an error in a fixture counts as a failure."""
    if not record.exists():
        return Counts()
    counts = Counts()
    for suite in ET.parse(record).getroot().iter("testsuite"):  # noqa: S314 - pytest wrote it a moment ago
        total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        counts += Counts(total - failed - skipped, failed, skipped)
    return counts


def read_covered(record: Path) -> frozenset[tuple[str, str]]:
    """What the passed tests of a run said of themselves."""
    if not record.exists():
        return frozenset()
    cases = ET.parse(record).getroot().iter("testcase")  # noqa: S314 - as above
    passed = (case for case in cases if not {part.tag for part in case} & {"failure", "error", "skipped"})
    said = (each for case in passed for each in case.iter("property"))
    return frozenset((each.get("name", ""), each.get("value", "")) for each in said)


def read_took(record: Path) -> tuple[tuple[float, str], ...]:
    """Read how long each test took, with its fixtures."""
    if not record.exists():
        return ()
    cases = ET.parse(record).getroot().iter("testcase")  # noqa: S314 - as above
    return tuple((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases)


def read_outcomes(record: Path) -> dict[str, str]:
    """Read how each test ended: passed, failed or skipped."""
    if not record.exists():
        return {}
    outcomes = {}
    for case in ET.parse(record).getroot().iter("testcase"):  # noqa: S314 - as above
        parts = {part.tag for part in case}
        outcome = "failed" if parts & {"failure", "error"} else "skipped" if "skipped" in parts else "passed"
        outcomes[f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"] = outcome
    return outcomes


def print_shown(results: list[Result]) -> None:
    """Print which requirements this run has shown."""
    outcomes: dict[str, list[str]] = {}
    for result in results:
        for test, outcome in result.outcomes.items():
            outcomes.setdefault(test, []).append(outcome)
    print("\n== requirements ==")
    print("\n".join(told(shown(PAGE.read_text(encoding="utf-8"), outcomes))))


def print_slowest(took: list[tuple[float, str]]) -> None:
    """Print the tests that cost most, the slowest first."""
    print(f"\n== the slowest {SLOWEST} ==")
    for seconds, name in sorted(took, reverse=True)[:SLOWEST]:
        print(f"{seconds:6.1f} s  {name}")


def print_covered(covered: set[tuple[str, str]]) -> None:
    """Print each adapter with its suites, then the faults."""
    suites: dict[str, list[str]] = {}
    for adapter, suite in sorted(value.split(": ") for name, value in covered if name == "adapter"):
        suites.setdefault(adapter, []).append(suite)
    print("\n== adapters and faults covered ==")
    for adapter, found in suites.items():
        print(f"{adapter:14} {', '.join(found)}")
    for fault in sorted(value for name, value in covered if name == "fault"):
        print(f"fault          {fault}")


def report(results: list[Result]) -> None:
    """Print what was covered, the table of costs, pytest's summary of each group, and the sum as the last line."""
    print_covered({said for result in results for said in result.covered})
    print_shown(results)
    print_slowest([each for result in results for each in result.took])
    print("\n== time and budget ==")
    for result in results:
        state = "FAILED" if not result.ok else "OVER BUDGET" if result.late else "ok"
        print(f"{result.group.name:18} {result.seconds:6.1f} s of {result.group.budget_s:4} s  {state}")
    for result in results:
        if result.late:
            print(f"DEFECT: {result.group.name} took {result.seconds:.0f} s, its budget is {result.group.budget_s} s")
    print()
    for result in results[1:]:
        print(f"{result.group.name}: {result.last_line}")
    print(sum((result.counts for result in results), Counts()))


if __name__ == "__main__":
    main()

"""Processes of the servers: told apart from later ones with the same pid, waited for, ended with all their children."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Stat(NamedTuple):
    """What is needed of `/proc/PID/stat` (proc(5))."""

    state: str
    parent: int
    started: str
    """Clock ticks since boot: with the pid it names one process."""


def stat(pid: int) -> Stat | None:
    """Facts of a living process; None once it has ended, reaped or not."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else Stat(fields[0], int(fields[1]), fields[19])


def is_moving(pid: int) -> bool:
    """Tell whether a living process is not stopped."""
    facts = stat(pid)
    return facts is not None and facts.state != "T"


def spawn(command: list[str], folder: Path, log: Path) -> int:
    """Start *command* in *folder*, in a session of its own, its output appended to *log*; return its pid."""
    output = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawnp(
        "env",
        ["env", f"--chdir={folder}", *command],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def send(pid: int, which: signal.Signals) -> None:
    """Signal one process; one that has ended meanwhile needs none."""
    try:
        os.kill(pid, which)
    except ProcessLookupError:
        reap(pid)


def wait_end(pid: int, patience_s: float) -> bool:
    """Wait until the process has ended, and reap it if it is a child; False if it takes longer."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return ended(watched, patience_s)
    finally:
        os.close(watched)
        reap(pid)


def ended(watched: int, patience_s: float) -> bool:
    """Wait until the process of that pidfd has ended; False if it takes longer."""
    return bool(select.select([watched], [], [], patience_s)[0])


def reap(pid: int) -> None:
    """Take leave of an ended child; others' children are theirs to reap."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def tree(pid: int) -> list[int]:
    """A process and all that descend from it, parents first."""
    children: dict[int, list[int]] = {}
    for other in pids():
        facts = stat(other)
        if facts is not None:
            children.setdefault(facts.parent, []).append(other)
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def pids() -> Iterator[int]:
    """Every process."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def memory_mib(pid: int) -> int:
    """Resident memory of a process and its descendants; pages they share count once for each."""
    return sum(_resident_kib(each) for each in tree(pid)) // 1024


def _resident_kib(pid: int) -> int:
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))

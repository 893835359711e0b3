"""What limits a load: whose CPU it is, how long the write lock is held, what the disk takes, what others have."""

from __future__ import annotations

import fcntl
import os
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waypost.bench.machine import CORES, busy_s
from waypost.bench.programs import cpu_s
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack
from waypost.stores.sql.connection import database_path, run_directory

LOOK_S: Final = 0.01
FSYNCS: Final = 20
FSYNC_BYTES: Final = 16_384
BUSY: Final = 0.9
"""A share of the cores, or of one core, from which there is no more to be had."""
HELD: Final = 0.75
"""A share of the time from which whoever wants to write waits for the lock more often than not."""
OTHERS: Final = 0.1
SLOW_FSYNC_MS: Final = 2.0
_OF_THE_MACHINE: Final = "of the machine: {}"
_OF_A_CORE: Final = "of one core: {}"
_LOCK: Final = "of the time the write lock was held"
_FSYNC: Final = "fsync of 16 KiB, median"


@dataclass(frozen=True)
class Limits:
    """The shares of a time, 1 being all of it."""

    waypost: float
    """The share of all cores that it had; the next three likewise."""
    gateway: float
    load: float
    others: float
    locked: float
    """The share of the time in which the write lock was held."""
    fsync_ms: float
    cores: int

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Limits:
        """Read them from rows."""
        of = {each["name"]: each["value"] / (100 if each["unit"] == "%" else 1) for each in rows}
        gateway, one_core = of[_OF_THE_MACHINE.format("gateway")], of[_OF_A_CORE.format("gateway")]
        return cls(
            waypost=of[_OF_THE_MACHINE.format("Waypost")],
            gateway=gateway,
            load=of[_OF_THE_MACHINE.format("load generator")],
            others=of[_OF_THE_MACHINE.format("others")],
            locked=of[_LOCK],
            fsync_ms=of[_FSYNC],
            cores=max(1, round(one_core / gateway)) if gateway else CORES,
        )

    def rows(self, bench: str) -> list[Row]:
        """Return them as rows of a table."""
        shares = {"Waypost": self.waypost, "gateway": self.gateway, "load generator": self.load, "others": self.others}
        machine = [row(bench, _OF_THE_MACHINE.format(name), 100 * share, "%") for name, share in shares.items()]
        alone = {"gateway": self.gateway, "load generator": self.load}
        core = [row(bench, _OF_A_CORE.format(name), 100 * each * self.cores, "%") for name, each in alone.items()]
        held = row(bench, _LOCK, 100 * self.locked, "%")
        return [*machine, *core, held, row(bench, _FSYNC, self.fsync_ms, "ms")]

    def said(self) -> list[str]:
        """Say what limits, the most important first."""
        said: list[str] = []
        if self.others >= OTHERS:
            said.append(f"Others had {self.others:.0%} of the machine meanwhile: run it again when they are done.")
        used = self.waypost + self.gateway + self.load + self.others
        if used >= BUSY:
            said.append(
                f"CPU: of {self.cores} cores Waypost had {self.waypost:.0%}, the gateway {self.gateway:.0%}, "
                f"the load generator {self.load:.0%}, others {self.others:.0%}. Providers and callers elsewhere leave "
                "their part to Waypost."
            )
        for name, share in (("gateway", self.gateway), ("load generator", self.load)):
            if share * self.cores >= BUSY:
                said.append(f"The {name} of the bench, a process on one core, was busy all the time.")
        if self.locked >= HELD:
            slow = f", and fsync takes {self.fsync_ms:.1f} ms" if self.fsync_ms >= SLOW_FSYNC_MS else ""
            said.append(f"The write lock was held {self.locked:.0%} of the time{slow}: one process writes at a time.")
        elif self.fsync_ms >= SLOW_FSYNC_MS:
            said.append(f"The disk: fsync takes {self.fsync_ms:.1f} ms, which each durable commit waits for.")
        return said or ["Nothing was used up: latency between the processes, or the load that was offered, limits it."]


class Contention:
    """The use of a machine by a stack on SQLite, from now on."""

    def __init__(self, stack: BenchStack) -> None:
        self._stack = stack
        self._folder = run_directory(database_path(stack.base.url))
        self._fsync_ms = fsync_ms(self._folder)
        self._looks = self._held = 0
        self._began_s = time.perf_counter()
        self._before = self._spent()

    def watch(self, seconds: float) -> float:
        """Look at the write lock again and again for so long; return how long it was."""
        with _opened(self._folder / "write.lock") as lock:
            while (lasted_s := time.perf_counter() - self._began_s) < seconds:
                self._held += _is_held(lock)
                self._looks += 1
                time.sleep(LOOK_S)
        return lasted_s

    def limits(self, load: float) -> Limits:
        """Return what was used until now; *load* is the part of a core that the load generator had."""
        lasted_s = time.perf_counter() - self._began_s
        own, gateway, busy = (
            (now - before) / lasted_s / CORES for before, now in zip(self._before, self._spent(), strict=True)
        )
        others = max(0.0, busy - own - gateway - load / CORES)
        return Limits(own, gateway, load / CORES, others, self._held / max(self._looks, 1), self._fsync_ms, CORES)

    def _spent(self) -> tuple[float, float, float]:
        return self._stack.cpu_s(), cpu_s(self._stack.gateway.pid), busy_s()


def fsync_ms(folder: Path) -> float:
    """Measure how long it takes until some bytes are durable there."""
    taken: list[float] = []
    path = folder / "fsync.probe"
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            file.write(b"x" * FSYNC_BYTES)
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began_s) * 1e3)
    path.unlink()
    return statistics.median(taken)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    lock = os.open(path, os.O_RDWR)
    try:
        yield lock
    finally:
        os.close(lock)


def _is_held(lock: int) -> bool:
    """Tell whether somebody has the lock; whoever wants it meanwhile comes again within 50 µs."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False

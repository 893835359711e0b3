"""The shards and roles of this process: ``flock`` on a file for each, and that ownership is the lease.

    shard-NN      shared by whoever has something of the shard: versions that know one owner a shard want it alone
    general-NN    the shard, but for its critical lane
    critical-NN   the critical lane of the shard
    role-NAME     a role

Who takes a shard takes its critical lane with it where that is free; a process may have that lane alone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from waypost.domain.ids import SHARDS
from waypost.stores.sql.units import Leasing, critical_of

_GENERAL = "general"
_CRITICAL = "critical"


class _Held:
    """The locks of one kind that are held, by shard: each the file of that kind, and a part in the shard's own."""

    def __init__(self, run_dir: Path, kind: str) -> None:
        self._run_dir = run_dir
        self._kind = kind
        self._files: dict[int, tuple[int, int]] = {}
        self.shards: frozenset[int] = frozenset()

    def take(self, shard: int) -> bool:
        """Take *shard*, unless it is held here or elsewhere."""
        if shard in self._files:
            return False
        own = lock(self._run_dir / f"{self._kind}-{shard:02}", fcntl.LOCK_EX)
        if own is None:
            return False
        try:
            part = lock(self._run_dir / f"shard-{shard:02}", fcntl.LOCK_SH)
        except OSError:
            os.close(own)
            raise
        if part is None:
            os.close(own)
            return False
        self._files[shard] = own, part
        self.shards = frozenset(self._files)
        return True

    def release(self, shards: Iterable[int]) -> None:
        """Let others have *shards*."""
        for shard in shards:
            for file in self._files.pop(shard):
                os.close(file)
        self.shards = frozenset(self._files)


class Shards:
    """The shards and roles of one process; one that dies loses them at once, whatever it was doing (engine.Locks)."""

    splits = True

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._general = _Held(run_dir, _GENERAL)
        self._critical = _Held(run_dir, _CRITICAL)
        self._roles: dict[str, int] = {}
        self.version = 0
        """The version of ``owned`` and ``critical``: it changes whenever one of them does."""

    @property
    def owned(self) -> frozenset[int]:
        """The shards that are this process's."""
        return self._general.shards

    @property
    def critical(self) -> frozenset[int]:
        """The shards whose critical lane is this process's."""
        return self._critical.shards

    async def attend(self) -> None:
        """Do nothing: processes of this machine need not be looked for."""

    async def acquire(self, wanted: int = SHARDS) -> list[int]:
        """Take free shards until *wanted* are owned; those taken now.

        Each process begins its search elsewhere, so that starting together they do not all try the same files.
        """
        start = os.getpid() * 7 % SHARDS
        taken: list[int] = []
        for shard in ((start + step) % SHARDS for step in range(SHARDS)):
            if len(self.owned) >= wanted:
                break
            if self._general.take(shard):
                self.version += 1
                taken.append(shard)
                self._critical.take(shard)
        return taken

    async def release(self, shards: Iterable[int]) -> None:
        """Let other processes have *shards*; nothing of them may be held any more."""
        for shard in shards:
            self._general.release([shard])
            self.version += 1

    async def acquire_critical(self, shards: Iterable[int]) -> list[int]:
        """Take the critical lane of those of *shards* where it is free; those taken now."""
        taken: list[int] = []
        for shard in shards:
            if self._critical.take(shard):
                self.version += 1
                taken.append(shard)
        return taken

    async def release_critical(self, shards: Collection[int]) -> None:
        """Let other processes have the critical lane of *shards*; nothing of it may be held any more."""
        if shards:
            self._critical.release(shards)
            self.version += 1

    async def borrow(self, units: Iterable[int]) -> Borrowed:
        """Take those of *units* that nobody owns, for a moment."""
        wanted = Leasing.of_units(units)
        general, critical = _Held(self._run_dir, _GENERAL), _Held(self._run_dir, _CRITICAL)
        borrowed = Borrowed(general, critical)
        try:
            for shard in wanted.others:
                general.take(shard)
            for shard in wanted.critical:
                critical.take(shard)
        except OSError:
            await borrowed.give_back()
            raise
        return borrowed

    async def take_role(self, name: str) -> bool:
        """Own *name*, now or still."""
        if name not in self._roles and (file := lock(self._run_dir / f"role-{name}", fcntl.LOCK_EX)) is not None:
            self._roles[name] = file
        return name in self._roles

    def sharers(self) -> None:
        """Return None: the processes of this machine are all."""

    async def leave(self) -> None:
        """Do nothing: the worker slots say who of this machine is leaving."""

    async def close(self) -> None:
        """Release everything."""
        self._general.release(self.owned)
        self._critical.release(self.critical)
        self.version += 1
        while self._roles:
            os.close(self._roles.popitem()[1])


class Borrowed:
    """The units without an owner that are held while something is decided about them."""

    def __init__(self, general: _Held, critical: _Held) -> None:
        self._general = general
        self._critical = critical

    @property
    def units(self) -> frozenset[int]:
        """The units that could be had."""
        return self._general.shards | critical_of(self._critical.shards)

    async def give_back(self) -> None:
        """Release them."""
        self._general.release(self._general.shards)
        self._critical.release(self._critical.shards)


def lock(path: Path, how: int) -> int | None:
    """Lock the file at *path*, which is made where it is missing; None where another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError as taken:
        os.close(descriptor)
        if not isinstance(taken, BlockingIOError):
            raise
        return None
    return descriptor

"""The shards and roles of this process: ``flock`` on a file for each, and that ownership is the lease."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from waypost.domain.ids import SHARDS


class Shards:
    """The shards and roles of one process; one that dies loses them at once, whatever it was doing (engine.Locks)."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._locks: dict[int, int] = {}
        self._roles: dict[str, int] = {}
        self.version = 0
        """The version of ``owned``: it changes whenever that does."""

    @property
    def owned(self) -> frozenset[int]:
        """The shards that are this process's."""
        return frozenset(self._locks)

    async def attend(self) -> None:
        """Do nothing: processes of this machine need not be looked for."""

    async def acquire(self, wanted: int = SHARDS) -> list[int]:
        """Take free shards until *wanted* are owned; those taken now.

        Each process begins its search elsewhere, so that starting together they do not all try the same files.
        """
        start = os.getpid() * 7 % SHARDS
        taken: list[int] = []
        for shard in ((start + step) % SHARDS for step in range(SHARDS)):
            if len(self._locks) >= wanted:
                break
            if shard not in self._locks and self._take(shard):
                taken.append(shard)
        if taken:
            self.version += 1
        return taken

    async def release(self, shards: Iterable[int]) -> None:
        """Let other processes have *shards*; nothing of them may be held any more."""
        for shard in shards:
            os.close(self._locks.pop(shard))
            self.version += 1

    async def borrow(self, shards: Iterable[int]) -> Borrowed:
        """Take those of *shards* that nobody owns, for a moment."""
        locks = {shard: self._lock(f"shard-{shard:02}") for shard in shards if shard not in self._locks}
        return Borrowed({shard: lock for shard, lock in locks.items() if lock is not None})

    async def take_role(self, name: str) -> bool:
        """Own *name*, now or still."""
        if name not in self._roles and (lock := self._lock(f"role-{name}")) is not None:
            self._roles[name] = lock
        return name in self._roles

    def sharers(self) -> None:
        """Return None: the processes of this machine are all."""

    async def leave(self) -> None:
        """Do nothing: the worker slots say who of this machine is leaving."""

    async def close(self) -> None:
        """Release everything."""
        await self.release(list(self._locks))
        while self._roles:
            os.close(self._roles.popitem()[1])

    def _take(self, shard: int) -> bool:
        lock = self._lock(f"shard-{shard:02}")
        if lock is None:
            return False
        self._locks[shard] = lock
        return True

    def _lock(self, name: str) -> int | None:
        descriptor = os.open(self._run_dir / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


class Borrowed:
    """The shards without an owner that are held while something is decided about them."""

    def __init__(self, locks: dict[int, int]) -> None:
        self._locks = locks

    @property
    def shards(self) -> frozenset[int]:
        """The shards that could be had."""
        return frozenset(self._locks)

    async def give_back(self) -> None:
        """Release the shards."""
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()

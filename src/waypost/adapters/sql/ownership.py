"""Which shards and roles are this process's: ``flock`` on a file for each, and that ownership is the lease."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from waypost.domain.ids import SHARDS


class Role:
    """Something that exists once for all processes of a store (sweep, report); held until ``close``."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Let somebody else have it."""
        os.close(self._descriptor)


class Shards:
    """The shards of one process; a process that dies loses them at once, whatever it was doing."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._locks: dict[int, int] = {}
        self.version = 0
        """Moves whenever ``owned`` changes."""

    @property
    def owned(self) -> frozenset[int]:
        """What is this process's."""
        return frozenset(self._locks)

    def acquire(self, wanted: int = SHARDS) -> list[int]:
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

    def take(self, shard: int) -> bool:
        """Take this shard; False where another process has it."""
        if shard in self._locks:
            return True
        if not self._take(shard):
            return False
        self.version += 1
        return True

    def release(self, shard: int) -> None:
        """Let another process have *shard*; nothing of it may be held any more."""
        os.close(self._locks.pop(shard))
        self.version += 1

    def close(self) -> None:
        """Let go of everything."""
        for shard in list(self._locks):
            self.release(shard)

    def borrow(self, shards: Iterable[int]) -> Borrowed:
        """Take those of *shards* that nobody owns, for a moment."""
        locks = {shard: self._lock(f"shard-{shard:02}") for shard in shards if shard not in self._locks}
        return Borrowed({shard: lock for shard, lock in locks.items() if lock is not None})

    def role(self, name: str) -> Role | None:
        """Take a role; None where another process has it."""
        lock = self._lock(f"role-{name}")
        return None if lock is None else Role(lock)

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
    """Shards without an owner, held while something is decided about them."""

    def __init__(self, locks: dict[int, int]) -> None:
        self._locks = locks

    @property
    def shards(self) -> frozenset[int]:
        """Those that could be had."""
        return frozenset(self._locks)

    def close(self) -> None:
        """Let them go."""
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()

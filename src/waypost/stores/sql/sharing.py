"""Sharing: how one process's shards grow, shrink and are handed over."""

from __future__ import annotations

from waypost.domain.ids import SHARDS
from waypost.domain.notification import Lane
from waypost.ports.ownership import CriticalMoved, CriticalPart
from waypost.stores.sql.engine import Locks
from waypost.stores.sql.units import critical_of, unit_of
from waypost.stores.sql.work import SqlWork

_ALL = frozenset(range(SHARDS))


class SqlOwnership:
    """The shards and roles of this process (fulfils ports.ownership.Ownership)."""

    def __init__(self, locks: Locks, work: SqlWork) -> None:
        self._locks = locks
        self._work = work
        self._offered: set[int] = set()

    def owned(self) -> int:
        """Count the shards that are this process's."""
        return len(self._locks.owned)

    def sharers(self) -> int | None:
        """Count the processes that share the shards; None where only those of this machine do."""
        return self._locks.sharers()

    async def attend(self) -> None:
        """Join the others and know of them, without a share."""
        await self._locks.attend()

    async def acquire(self, wanted: int) -> int:
        """Take at most *wanted* free shards; return how many it got."""
        return len(await self._locks.acquire(self.owned() + wanted))

    async def leave(self) -> None:
        """Leave those who share the shards."""
        await self._locks.leave()

    def offer(self, n: int) -> None:
        """Lease nothing more from *n* of the owned shards."""
        chosen = sorted(self._locks.owned - self._offered)[:n]
        self._offered.update(chosen)
        self._work.stop_leasing(chosen)

    async def hand_over(self) -> int:
        """Release the offered shards that hold no leased item."""
        self._offered &= self._locks.owned
        free = self._offered - self._work.busy_units()
        self._offered -= free
        try:
            await self._locks.release(free)
        finally:
            self._work.lease_again(free)
        return len(free)

    async def claim_critical(self, part: CriticalPart) -> CriticalMoved:
        """Go for *part* of the critical lane."""
        if not self._locks.splits:
            return CriticalMoved(0, 0)
        held = self._locks.critical
        wanted = {
            CriticalPart.ALL: _ALL,
            CriticalPart.OWN: self._locks.owned - self._offered,
            CriticalPart.NONE: frozenset[int](),
        }[part]
        self._work.lease_again(critical_of(held & wanted))
        self._work.stop_leasing(critical_of(held - wanted))
        busy = self._work.busy_units()
        free = [shard for shard in held - wanted if unit_of(Lane.CRITICAL, shard) not in busy]
        await self._locks.release_critical(free)
        self._work.lease_again(critical_of(free))
        taken = await self._locks.acquire_critical(wanted - held)
        return CriticalMoved(len(taken), len(free))

    def offered(self) -> int:
        """Count the offered shards that are still held."""
        return len(self._offered)

    async def take_role(self, name: str) -> bool:
        """Own *name*, now or still."""
        return await self._locks.take_role(name)

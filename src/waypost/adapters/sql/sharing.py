"""Sharing: how one process's shards grow, shrink and are handed over."""

from __future__ import annotations

from waypost.adapters.sql.ownership import Role, Shards
from waypost.adapters.sql.work import SqlWork


class SqlOwnership:
    """The shards and roles of this process (fulfils ports.ownership.Ownership)."""

    def __init__(self, shards: Shards, work: SqlWork) -> None:
        self._shards = shards
        self._work = work
        self._offered: set[int] = set()
        self._roles: dict[str, Role] = {}

    def owned(self) -> int:
        """How many shards are this process's."""
        return len(self._shards.owned)

    def acquire(self, wanted: int) -> int:
        """Take at most *wanted* free shards, without waiting; how many it got."""
        return len(self._shards.acquire(self.owned() + wanted))

    def offer(self, n: int) -> None:
        """Lease nothing more from *n* of the owned shards."""
        chosen = sorted(self._shards.owned - self._offered)[:n]
        self._offered.update(chosen)
        self._work.stop_leasing(chosen)

    def hand_over(self) -> int:
        """Let go of the offered shards that hold no leased item."""
        free = self._offered - self._work.busy_shards()
        for shard in free:
            self._shards.release(shard)
        self._work.lease_again(free)
        self._offered -= free
        return len(free)

    def offered(self) -> int:
        """How many offered shards are still held."""
        return len(self._offered)

    def take_role(self, name: str) -> bool:
        """Own *name*, now or still."""
        if name not in self._roles and (role := self._shards.role(name)) is not None:
            self._roles[name] = role
        return name in self._roles

    def close(self) -> None:
        """Let go of every shard and role."""
        for role in self._roles.values():
            role.close()
        self._roles.clear()
        self._shards.close()

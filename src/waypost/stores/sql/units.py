"""Units: what one process leases of a shard, by number. The critical lane is one, all other lanes are another.

The other lanes' has the number of the shard, the critical lane's that and ``SHARDS``. Where a process owns whole shards
(PostgreSQL), it has both.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from waypost.domain.ids import SHARDS
from waypost.domain.notification import Lane


def unit_of(lane: str, shard: int) -> int:
    """Return the unit that the *lane* of *shard* belongs to, also one that only a newer version knows."""
    return shard + SHARDS if lane == Lane.CRITICAL else shard


def critical_of(shards: Iterable[int]) -> frozenset[int]:
    """Return the units of the critical lane of *shards*."""
    return frozenset(shard + SHARDS for shard in shards)


class Leasing(Struct, frozen=True):
    """The shards that are leased from."""

    others: frozenset[int] = frozenset()
    """The shards of all lanes but the critical one."""
    critical: frozenset[int] = frozenset()

    @classmethod
    def of_units(cls, units: Iterable[int]) -> Leasing:
        """Build it from units."""
        found = frozenset(units)
        others = frozenset(unit for unit in found if unit < SHARDS)
        return cls(others, frozenset(unit - SHARDS for unit in found - others))

    def of(self, lane: Lane) -> frozenset[int]:
        """Return the shards of *lane*."""
        return self.critical if lane is Lane.CRITICAL else self.others

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is leased."""
        return not (self.others or self.critical)


WHOLE = Leasing(frozenset(range(SHARDS)), frozenset(range(SHARDS)))
"""Every lane of every shard."""

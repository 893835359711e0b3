"""Dedup keys in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tests.memory.store import MemoryStore
from waypost.ports.clock import Clock


class MemoryDedup:
    """See Dedup."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def forget(self, keys: Sequence[bytes]) -> int:
        """See Dedup."""
        claims, now = self._store.claims, self._clock.now()
        doomed = [name for name, claimed in claims.items() if name[1] in keys and claimed.claim.until > now]
        for name in doomed:
            del claims[name]
        return len(doomed)

    async def drop_over(self) -> int:
        """See Dedup: counts keys."""
        claims, now = self._store.claims, self._clock.now()
        over = [name for name, claimed in claims.items() if claimed.claim.until <= now]
        for name in over:
            del claims[name]
        return len(over)

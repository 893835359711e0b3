"""Retention in memory."""

from __future__ import annotations

from waypost.adapters.memory.store import MemoryStore
from waypost.domain.ids import created_at
from waypost.domain.time import Instant


class MemoryRetention:
    """See Retention."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Retention."""
        rows = self._store.rows
        old = [one for one, row in rows.items() if row.is_final and created_at(one) < before][:n]
        for one in old:
            del rows[one]
        return len(old)

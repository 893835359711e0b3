"""Retention in memory."""

from __future__ import annotations

from tests.memory.store import MemoryStore
from waypost.domain.balance import DELIVERY, DROPPED
from waypost.domain.ids import created_at
from waypost.domain.time import Instant


class MemoryRetention:
    """See Retention."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def drop_whole(self, before: Instant) -> Instant:
        """See Retention: nothing lies apart."""
        return before

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Retention."""
        rows = self._store.rows
        final = [one for one, row in rows.items() if row.finished_at is not None and row.finished_at < before]
        old = [one for one in final if created_at(one) < before][:n]
        for one in old:
            row = rows[one]
            ended = [row.status, *(f"{DELIVERY}{each.status}" for each in row.receipts.values())]
            self._store.tally(row.notification, [(f"{DROPPED}{word}", 1) for word in ended])
            del rows[one]
            self._store.feed.pop(one, None)
        return len(old)

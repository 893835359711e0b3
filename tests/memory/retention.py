"""Retention in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tests.memory.store import MemoryStore
from waypost.domain.ids import NotificationId, created_at
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
        return self._drop([one for one in final if created_at(one) < before][:n])

    async def drop_hidden(self, n: int) -> int:
        """See Retention."""
        feed = self._store.feed
        final = [one for one, row in self._store.rows.items() if row.is_final and one in feed]
        return self._drop([one for one in final if feed[one].hidden_at is not None][:n])

    def _drop(self, ids: Sequence[NotificationId]) -> int:
        for one in ids:
            self._store.drop(one)
        return len(ids)

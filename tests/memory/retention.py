"""Retention in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tests.memory.store import MemoryStore
from waypost.domain.ids import NotificationId, created_at
from waypost.domain.time import Instant, later
from waypost.ports.clock import Clock
from waypost.ports.retention import HIDDEN_FOR_MS


class MemoryRetention:
    """See Retention."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

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
        before = later(self._clock.now(), -HIDDEN_FOR_MS)
        hidden = [(one, feed[one].hidden_at) for one in final]
        return self._drop([one for one, at in hidden if at is not None and at <= before][:n])

    def _drop(self, ids: Sequence[NotificationId]) -> int:
        for one in ids:
            self._store.drop(one)
        return len(ids)

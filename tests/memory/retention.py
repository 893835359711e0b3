"""Retention in memory."""

from __future__ import annotations

from tests.memory.store import MemoryStore
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
            del rows[one]
            self._store.marks.pop(one, None)
        return len(old)

    async def drop_hidden(self, n: int) -> int:
        """See Retention."""
        rows, marks = self._store.rows, self._store.marks
        hidden = [
            one for one, row in rows.items() if row.is_final and one in marks and marks[one].hidden_at is not None
        ]
        for one in hidden[:n]:
            del rows[one]
            del marks[one]
        return len(hidden[:n])

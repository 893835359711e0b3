"""The journal in memory."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from tests.memory.store import MemoryStore
from waypost.domain.ids import DeviceId
from waypost.ports.journal import JournalRow


class MemoryJournal:
    """Rows in the order of their transactions, and each reader's position."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def read(self, after: int, n: int, naming: Collection[DeviceId] | None = None) -> list[JournalRow]:
        """See Journal."""
        return list(islice((row for row in self._store.journal if row.position > after), n))

    async def position(self, reader: str) -> int:
        """See Journal."""
        return self._store.positions.get(reader, 0)

    async def advance(self, reader: str, position: int) -> None:
        """See Journal."""
        self._store.positions[reader] = max(position, self._store.positions.get(reader, 0))

    async def drop_before(self, position: int, n: int) -> int:
        """See Journal."""
        doomed = list(islice((row.position for row in self._store.journal if row.position < position), n))
        self._store.journal = [row for row in self._store.journal if row.position not in doomed]
        return len(doomed)

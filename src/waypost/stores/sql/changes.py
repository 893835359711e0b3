"""The changes of a database: each commit moves the number on, whoever made it.

    SQLite       PRAGMA data_version: another one after each commit of another connection
    PostgreSQL   pg_current_snapshot(): the same means that the same transactions can be seen (postgres/mark.py)

What this process commits is noted as it is answered. What others commit is seen by a look: in a file that is a few
microseconds, on a server a round trip, so that a process may take fewer of those (``looks_every_s``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from waypost.stores.sql.engine import Mark
from waypost.stores.sql.state import StoreState


class StoreChanges:
    """The changes of one database, as one process knows of them (fulfils ports.Changes)."""

    def __init__(self, read_mark: Callable[[], Awaitable[Mark]], looks_every_s: float = 0.0) -> None:
        """Create it; *read_mark* reads what is committed."""
        self.version = 0
        self._read_mark = read_mark
        self._looks_every_s = looks_every_s
        self._mark: Mark | None = None
        self._looked_s = -looks_every_s
        self._news = asyncio.Event()

    async def look(self) -> None:
        """See Changes."""
        now_s = time.monotonic()
        if self._looks_every_s and now_s - self._looked_s < self._looks_every_s:
            return
        self._looked_s = now_s
        mark = await self._read_mark()
        before, self._mark = self._mark, mark
        if before is None or mark.has_news(before):
            self.note()

    async def wait(self, seen: int) -> None:
        """See Changes."""
        while self.version == seen:
            await self._news.wait()

    def note(self) -> None:
        """See Changes."""
        self.version += 1
        self._news.set()
        self._news.clear()

    def store_changed(self, state: StoreState) -> None:
        """Note that the store is back: what was seen of it may be gone."""
        if state is StoreState.OK:
            self.note()

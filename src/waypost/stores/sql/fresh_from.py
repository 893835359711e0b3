"""The record of where fresh work begins, for processes that start: they need not pass over all that is over.

    tail   one row: the place of the tail of the process that owns the first shard, as that tail wrote it down

See postgres/tail.py for what a place says and when it holds; where one process writes there is no need of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from waypost.domain.time import SECOND_MS, Instant, later
from waypost.stores.sql.database import Database
from waypost.stores.sql.engine import Tail
from waypost.stores.sql.transaction import OperationKind, Transaction

RECORDED_EVERY_MS: Final = 30 * SECOND_MS
"""How often it is recorded: whoever starts reads what was accepted since."""
_RECORD = "INSERT INTO tail (name, place) VALUES ('fresh', ?) ON CONFLICT (name) DO UPDATE SET place = excluded.place"


class FreshFrom:
    """A recorder of where the tail of one process stands."""

    def __init__(self, database: Database, tail: Tail, reading: asyncio.Lock) -> None:
        """Create it; *reading* is held by whoever reads with *tail*."""
        self._database = database
        self._tail = tail
        self._reading = reading
        self._recorded_at = Instant(0)

    async def record(self, now: Instant) -> None:
        """Record the place, now and then; nobody waits for that, and what is not written is written the next time."""
        if not self._database.engine.is_remote or now < later(self._recorded_at, RECORDED_EVERY_MS):
            return
        self._recorded_at = now
        async with self._reading:
            place = await self._database.read_to_lease(self._tail.place)
        written = self._database.commits.submit(_RECORDING, place)
        written.add_done_callback(lambda done: done.cancelled() or done.exception())


def _record(transaction: Transaction, places: Sequence[str]) -> list[None]:
    transaction.connection.execute(_RECORD, (places[-1],))
    return [None] * len(places)


_RECORDING: OperationKind[str, None] = OperationKind("record_fresh", _record, durable=False)

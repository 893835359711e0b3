"""The journal on SQL: written by every transaction (transaction.py), tailed here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from typing import cast

import msgspec

from waypost.domain.ids import DeviceId
from waypost.domain.moves import ActionTaken, Moved
from waypost.ports.journal import JournalRow
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.held_back import HeldBack
from waypost.stores.sql.reached import ARRIVALS_DROPPED, reach, reached
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.telemetry import Event

_READ = "SELECT position, moves FROM journal WHERE position > ? AND position < ? ORDER BY position LIMIT 0 + ?"
_READ_BY_ALL = "SELECT position FROM journal WHERE position > ? AND position < ? ORDER BY position LIMIT 0 + ?"
_DROP = "DELETE FROM journal WHERE position > ? AND position <= ?"
DROPPED = "journal dropped"
"""The name of the place up to which nothing is left; nothing comes in behind what every reader has passed."""

_ADVANCE = (
    "INSERT INTO reader (name, position) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE reader.position < excluded.position"
)
_HORIZON = "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
_DROP_ARRIVALS = "DELETE FROM arrival WHERE tx >= ? AND tx < ?"
_HEARD_S = 120.0
"""Seconds by which every tail has heard of what was over, or begins again (ArrivalTail)."""

_NOTE_DROPPED = (
    "INSERT INTO reader (name, position) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET position = greatest(reader.position, excluded.position)"
)
"""It never goes back, whoever comes late."""

_BYTES_A_TURN = 64 * 1024
"""The most bytes of rows that are decoded in one turn of the event loop, or one row: some 600 moves, a millisecond."""
_NOTHING = msgspec.msgpack.encode(())
_now_s = time.monotonic
_changes = msgspec.msgpack.Decoder(tuple[Moved | ActionTaken, ...])


class SqlJournal:
    """The journal: rows in an order that never grows in the middle; rows before which an open one may come wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._horizon: tuple[float, int] | None = None
        """The moment when it was noted before which transaction all were over."""
        self._held_back = HeldBack(database)

    async def read(self, after: int, n: int, naming: Collection[DeviceId] | None = None) -> list[JournalRow]:
        """See Journal; text stands in a row as it is: most that name nobody who is sought need not be decoded."""
        rows = await self._database.read(lambda connection: _read(connection, after, n))
        if naming is not None:
            sought = [each.encode() for each in naming]
            rows = [(at, changes if any(each in changes for each in sought) else _NOTHING) for at, changes in rows]
        read: list[JournalRow] = []
        size = 0
        for position, changes in rows:
            if size and size + len(changes) > _BYTES_A_TURN:
                size = 0
                await asyncio.sleep(0)
            size += len(changes)
            read.append(_row(position, self._changes_in(position, changes)))
        return read

    def _changes_in(self, position: int, changes: bytes) -> tuple[Moved | ActionTaken, ...]:
        """Read what a row says; nothing of one that cannot be read, so that those behind it are."""
        try:
            return _changes.decode(changes)
        except (msgspec.MsgspecError, UnicodeDecodeError) as surprise:
            error = type(surprise).__name__
            self._database.telemetry.event(Event.STAGE_FAILED, stage="report", error=error, position=position)
            return ()

    async def position(self, reader: str) -> int:
        """See Journal."""
        return await self._database.read(lambda connection: reached(connection, reader))

    async def advance(self, reader: str, position: int) -> None:
        """See Journal."""
        await self._database.commits.submit(_ADVANCING, (reader, position))

    async def drop_before(self, position: int, n: int) -> int:
        """See Journal; and what was said of arrivals, of which all have heard."""
        if self._database.engine.is_remote:
            await self._drop_arrivals(_now_s())
            await self._held_back.look()
        return await self._database.commits.submit(_DROPPING, (position, n), rows=n)

    async def _drop_arrivals(self, now_s: float) -> None:
        if self._horizon is not None and now_s - self._horizon[0] < _HEARD_S:
            return
        if self._horizon is not None:
            await self._database.commits.submit(_FORGETTING, self._horizon[1])
        row = await self._database.read(lambda connection: connection.execute(_HORIZON).fetchone())
        self._horizon = (now_s, int(row[0]))


def _row(position: int, changes: tuple[Moved | ActionTaken, ...]) -> JournalRow:
    """Tell moves from pressed buttons, which lie in rows of their own (Transaction.finish)."""
    if changes and isinstance(changes[0], ActionTaken):
        return JournalRow(position, (), cast("tuple[ActionTaken, ...]", changes))
    return JournalRow(position, cast("tuple[Moved, ...]", changes))


def _read(connection: Connection, after: int, n: int) -> list[Row]:
    return connection.execute(_READ, (after, connection.whole_before(), n)).fetchall()


def _advance(transaction: Transaction, positions: Sequence[tuple[str, int]]) -> list[None]:
    transaction.connection.executemany(_ADVANCE, positions)
    return [None] * len(positions)


def _drop(transaction: Transaction, orders: Sequence[tuple[int, int]]) -> list[int]:
    return [_drop_page(transaction.connection, before, n) for before, n in orders]


def _drop_page(connection: Connection, before: int, n: int) -> int:
    after = reached(connection, DROPPED)
    rows = connection.execute(_READ_BY_ALL, (after, before, n)).fetchall()
    if rows:
        connection.execute(_DROP, (after, rows[-1][0]))
        reach(connection, DROPPED, rows[-1][0])
    return len(rows)


def _forget(transaction: Transaction, horizons: Sequence[int]) -> list[None]:
    """Drop arrivals before the last of *horizons*, and say so in the same transaction."""
    connection, before = transaction.connection, horizons[-1]
    connection.execute(_DROP_ARRIVALS, (reached(connection, ARRIVALS_DROPPED), before))
    connection.execute(_NOTE_DROPPED, (ARRIVALS_DROPPED, before))
    return [None] * len(horizons)


_FORGETTING = OperationKind("drop_arrivals", _forget, durable=False)
_ADVANCING = OperationKind("advance_reader", _advance, durable=False, patient=True)
_DROPPING = OperationKind("drop_journal", _drop, durable=False, patient=True)

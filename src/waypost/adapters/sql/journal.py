"""The journal on SQL: written by every transaction (transaction.py), tailed here."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from waypost.adapters.sql.database import Database
from waypost.adapters.sql.engine import Connection, Row
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.moves import Moved
from waypost.ports.journal import JournalRow
from waypost.telemetry import Event

_READ = "SELECT position, moves FROM journal WHERE position > ?{end} ORDER BY position LIMIT ?"
_POSITION = "SELECT position FROM reader WHERE name = ?"
_ADVANCE = (
    "INSERT INTO reader (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position"
)
_DROP = """\
DELETE FROM journal
WHERE position IN (SELECT position FROM journal WHERE position < ? ORDER BY position LIMIT ?)
"""

_moves = msgspec.msgpack.Decoder(tuple[Moved, ...])


class SqlJournal:
    """Rows in an order that never grows in the middle: what an open transaction may still come before is not read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, after: int, n: int) -> list[JournalRow]:
        """See Journal."""
        rows = await self._database.read(lambda connection: _read(connection, after, n))
        return [JournalRow(position, self._moves_in(position, moves)) for position, moves in rows]

    def _moves_in(self, position: int, moves: bytes) -> tuple[Moved, ...]:
        """What a row says; of one that cannot be read nothing, so that those behind it are."""
        try:
            return _moves.decode(moves)
        except (msgspec.MsgspecError, UnicodeDecodeError) as surprise:
            error = type(surprise).__name__
            self._database.telemetry.event(Event.STAGE_FAILED, stage="report", error=error, position=position)
            return ()

    async def position(self, reader: str) -> int:
        """See Journal."""
        row = await self._database.read(lambda connection: connection.execute(_POSITION, (reader,)).fetchone())
        return 0 if row is None else int(row[0])

    async def advance(self, reader: str, position: int) -> None:
        """See Journal."""
        await self._database.commits.submit(_ADVANCING, (reader, position))

    async def drop_before(self, position: int, n: int) -> int:
        """See Journal."""
        return await self._database.commits.submit(_DROPPING, (position, n), rows=n)


def _read(connection: Connection, after: int, n: int) -> list[Row]:
    sql = _READ.format(end=connection.dialect.below_open_transactions)
    return connection.execute(sql, (after, n)).fetchall()


def _advance(transaction: Transaction, positions: Sequence[tuple[str, int]]) -> list[None]:
    transaction.connection.executemany(_ADVANCE, positions)
    return [None] * len(positions)


def _drop(transaction: Transaction, orders: Sequence[tuple[int, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, order).rowcount for order in orders]


_ADVANCING = Kind("advance_reader", _advance, durable=False, patient=True)
_DROPPING = Kind("drop_journal", _drop, durable=False, patient=True)

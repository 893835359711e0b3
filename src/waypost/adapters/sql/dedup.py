"""Dedup keys: tables ``dedup_<slice>``, one for all keys claimed within some hours.

    key BLOB PRIMARY KEY, kind TEXT, id BLOB, body_hash BLOB, until INTEGER    (without a row id)

A slice is made by the first accept that claims in it and dropped whole when no window in it is open any more; so
nothing is ever deleted key by key, and the random inserts stay within one small tree. A claim is looked up in every
slice that still has an open window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from waypost.adapters.sql.rows import Row, select_in
from waypost.adapters.sql.transaction import Transaction
from waypost.domain.dedup import Claim
from waypost.domain.ids import NotificationId
from waypost.domain.time import HOUR_MS, Instant

if TYPE_CHECKING:
    from sqlite3 import Connection

_MAKE = (
    "CREATE TABLE IF NOT EXISTS dedup_{slice} (key BLOB PRIMARY KEY, kind TEXT NOT NULL, id BLOB NOT NULL,"
    " body_hash BLOB NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID"
)
_NOTE = (
    "INSERT INTO dedup_slice (slice, until) VALUES (?, ?) ON CONFLICT DO UPDATE SET until = max(until, excluded.until)"
)
_LOOK_UP = "SELECT key, id, body_hash, until FROM dedup_{slice} WHERE key IN ({{keys}})"
_CLAIM = "INSERT OR REPLACE INTO dedup_{slice} (key, kind, id, body_hash, until) VALUES (?, ?, ?, ?, ?)"


class Claimed(Struct, frozen=True):
    """A key in its window."""

    first_id: NotificationId
    body_hash: bytes


class Forget(Struct, frozen=True):
    """An order to end the window of *key* now."""

    key: bytes


def look_up(connection: Connection, keys: Sequence[bytes], now: Instant) -> dict[bytes, Claimed]:
    """Which of *keys* are claimed at *now*."""
    found: dict[bytes, Claimed] = {}
    if not keys:
        return found
    for (number,) in connection.execute("SELECT slice FROM dedup_slice WHERE until > ?", (now,)).fetchall():
        for key, first_id, body_hash, until in select_in(connection, _LOOK_UP.format(slice=number), keys):
            if until > now:
                found[key] = Claimed(first_id, body_hash)
    return found


def claim(transaction: Transaction, claims: Sequence[tuple[Claim, NotificationId]], slice_h: int) -> None:
    """Store *claims* in the slice of now."""
    if not claims:
        return
    connection = transaction.connection
    number = transaction.now // (slice_h * HOUR_MS)
    until = -(-max(made.until for made, _ in claims) // HOUR_MS) * HOUR_MS  # whole hours: the note changes seldom
    noted: Row | None = connection.execute("SELECT until FROM dedup_slice WHERE slice = ?", (number,)).fetchone()
    if noted is None:
        connection.execute(_MAKE.format(slice=number))
    if noted is None or noted[0] < until:
        connection.execute(_NOTE, (number, until))
    rows = [(made.key, made.kind, first_id, made.body_hash, made.until) for made, first_id in claims]
    connection.executemany(_CLAIM.format(slice=number), rows)


def forget(transaction: Transaction, ops: Sequence[Forget]) -> list[bool]:
    """End windows by force; for each whether it was open."""
    slices = [number for (number,) in transaction.connection.execute("SELECT slice FROM dedup_slice")]
    return [_forget(transaction, op.key, slices) for op in ops]


def _forget(transaction: Transaction, key: bytes, slices: Sequence[int]) -> bool:
    opened = 0
    for number in slices:
        sql = f"DELETE FROM dedup_{number} WHERE key = ? AND until > ?"  # noqa: S608 - a number of our own
        opened += transaction.connection.execute(sql, (key, transaction.now)).rowcount
    return opened > 0


def drop_over(transaction: Transaction, ops: Sequence[None]) -> list[int]:
    """Drop every slice whose windows are all over; how many it was."""
    connection = transaction.connection
    over = connection.execute("SELECT slice FROM dedup_slice WHERE until <= ?", (transaction.now,)).fetchall()
    for (number,) in over:
        connection.execute(f"DROP TABLE IF EXISTS dedup_{number}")
        connection.execute("DELETE FROM dedup_slice WHERE slice = ?", (number,))
    return [len(over)] * len(ops)

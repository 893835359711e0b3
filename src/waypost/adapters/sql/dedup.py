"""Dedup keys: tables ``dedup_<slice>``, one for all keys claimed within some hours.

    key BLOB PRIMARY KEY, kind TEXT, id BLOB, body_hash BLOB, until INTEGER    (without a row id)

A slice is made by the first accept that claims in it and dropped whole when no window in it is open any more; so
nothing is ever deleted key by key, and the random inserts stay within one small tree. A claim is looked up in every
slice that still has an open window.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from waypost.adapters.sql.database import Database
from waypost.adapters.sql.engine import Connection, Row
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.dedup import Claim
from waypost.domain.ids import NotificationId
from waypost.domain.time import HOUR_MS, Instant
from waypost.ports.dedup import Claimed

_MAKE = (
    "CREATE TABLE IF NOT EXISTS dedup_{slice} (key {blob} PRIMARY KEY, kind TEXT NOT NULL, id {blob} NOT NULL,"
    " body_hash {blob} NOT NULL, until BIGINT NOT NULL) WITHOUT ROWID"
)
_NOTE = (
    "INSERT INTO dedup_slice (slice, until) VALUES (?, ?)"
    " ON CONFLICT (slice) DO UPDATE SET until = excluded.until WHERE dedup_slice.until < excluded.until"
)
_CLAIM = "INSERT OR REPLACE INTO dedup_{slice} (key, kind, id, body_hash, until) VALUES "


def look_up(connection: Connection, keys: Sequence[bytes], now: Instant) -> dict[bytes, Claimed]:
    """Which of *keys* are claimed at *now*."""
    if not keys:
        return {}
    open_slices = connection.execute("SELECT slice FROM dedup_slice WHERE until > ?", (now,)).fetchall()
    if not open_slices:
        return {}
    rows = connection.found_in([f"dedup_{number}" for (number,) in open_slices], "key, id, body_hash, until", keys)
    return {key: Claimed(first_id, body_hash) for key, first_id, body_hash, until in rows if until > now}


def claim(
    transaction: Transaction, claims: Sequence[tuple[Claim, NotificationId]], slice_h: int, held: str | None = None
) -> None:
    """Store *claims* in the slice of now; *held* stands for their kind while they are not done."""
    if not claims:
        return
    connection = transaction.connection
    number = transaction.now // (slice_h * HOUR_MS)
    until = -(-max(made.until for made, _ in claims) // HOUR_MS) * HOUR_MS  # whole hours: the note changes seldom
    noted: Row | None = connection.execute("SELECT until FROM dedup_slice WHERE slice = ?", (number,)).fetchone()
    if noted is None:
        connection.execute(_MAKE.format(slice=number, blob=connection.dialect.blob))
    if noted is None or noted[0] < until:
        connection.execute(_NOTE, (number, until))
    rows = [(made.key, held or made.kind, first_id, made.body_hash, made.until) for made, first_id in claims]
    connection.insert_all(_CLAIM.format(slice=number), "(?, ?, ?, ?, ?)", rows)


class _LookUp(Struct):
    """A look-up that is to be made."""

    now: Instant
    found: asyncio.Task[dict[bytes, Claimed]]
    keys: set[bytes] = set()


class SqlDedup:
    """The port; claims are made by accept, in its own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next: _LookUp | None = None
        self._turn = asyncio.Lock()

    async def claimed(self, keys: Sequence[bytes], now: Instant) -> Mapping[bytes, Claimed]:
        """Which of *keys* are claimed at *now*; who asks while a look-up is under way shares the next."""
        asked = self._next = self._next or _LookUp(now, asyncio.create_task(self._look_up()))
        asked.keys.update(keys)
        return await asyncio.shield(asked.found)

    async def _look_up(self) -> dict[bytes, Claimed]:
        async with self._turn:
            asked, self._next = self._next, None
            assert asked is not None, "whoever began this is waiting"
            return await self._database.read(lambda connection: look_up(connection, list(asked.keys), asked.now))

    async def forget(self, keys: Sequence[bytes]) -> int:
        """See Dedup."""
        return await asyncio.shield(self._database.commits.submit(_FORGET, keys, len(keys)))

    async def drop_over(self) -> int:
        """See Dedup: counts tables."""
        return await asyncio.shield(self._database.commits.submit(_DROP_OVER, None))


def _forget(transaction: Transaction, ops: Sequence[Sequence[bytes]]) -> list[int]:
    connection = transaction.connection
    slices = [number for (number,) in connection.execute("SELECT slice FROM dedup_slice").fetchall()]
    forgotten: list[int] = []
    for keys in ops:
        marks = ",".join("?" * len(keys))
        sql = f"DELETE FROM dedup_{{slice}} WHERE until > ? AND key IN ({marks})"  # noqa: S608 - marks
        asked = (transaction.now, *keys)
        forgotten.append(sum(connection.execute(sql.format(slice=number), asked).rowcount for number in slices))
    return forgotten


def _drop_over(transaction: Transaction, ops: Sequence[None]) -> list[int]:
    connection = transaction.connection
    over = connection.execute("SELECT slice FROM dedup_slice WHERE until <= ?", (transaction.now,)).fetchall()
    for (number,) in over:
        connection.execute(f"DROP TABLE IF EXISTS dedup_{number}")
        connection.execute("DELETE FROM dedup_slice WHERE slice = ?", (number,))
    return [len(over)] * len(ops)


_FORGET: Kind[Sequence[bytes], int] = Kind("forget keys", _forget, durable=True, ordered=True)
_DROP_OVER: Kind[None, int] = Kind("drop keys", _drop_over, durable=False, ordered=True)

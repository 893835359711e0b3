"""Dedup keys: tables ``dedup_<partition>``, one for all keys claimed within some hours.

    key BLOB PRIMARY KEY, kind TEXT, id BLOB, body_hash BLOB, until INTEGER    (without a row id)

A partition is made by the first accept that claims in it and dropped whole when no window in it is open any more; so
nothing is ever deleted key by key, and the random inserts stay within one small tree. A claim is looked up in every
partition that still has an open window.

A key that is forgotten while what claimed it is only in a log has a row of the kind ``forgotten``: no window, and the
smallest id whose claim counts again. It lasts as long as its partition.

Where others write at the same time (PostgreSQL) two claims of one key meet in the table's key: the second waits for the
first, and is decided anew. So that they meet on either side of a change of partition, too, the first minutes of one
are claimed in the one before as well: for longer than a transaction lasts and the clocks of machines differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from waypost.domain.dedup import ENDED_BADLY, Claim
from waypost.domain.ids import NotificationId, first_id_at
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, Instant, later
from waypost.ports.dedup import Claimed
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.transaction import OperationKind, Transaction

_BOTH_MS = 15 * MINUTE_MS
"""Milliseconds after a change of partition for which a key is claimed in both."""

_FORGOTTEN = "forgotten"
_FORGOTTEN_MS = DAY_MS
"""Milliseconds that a recorder may be behind what was forgotten."""

_MAKE = (
    "CREATE TABLE IF NOT EXISTS dedup_{partition} (key {blob} PRIMARY KEY, kind TEXT NOT NULL, id {blob} NOT NULL,"
    " body_hash {blob} NOT NULL, until BIGINT NOT NULL) WITHOUT ROWID"
)
_NOTE = (
    "INSERT INTO dedup_slice (slice, until) VALUES (?, ?)"
    " ON CONFLICT (slice) DO UPDATE SET until = excluded.until WHERE dedup_slice.until < excluded.until"
)
_COLUMNS = "key, kind, id, body_hash, until"
_REPLACE = f"INSERT OR REPLACE INTO dedup_{{partition}} ({_COLUMNS}) VALUES "  # noqa: S608 - columns
_PARTITIONS = "SELECT slice, until FROM dedup_slice WHERE until > ?"
_FOUND = "key, id, body_hash, until"
_FOUND_WITH_END = f"{_FOUND}, (SELECT status FROM notification AS its WHERE its.id = {{table}}.id)"  # noqa: S608 - names of ours
"""The same, and how what it stands for has ended."""


class Partitions:
    """The partitions that this process knows of, so that it need not ask for them before it looks into them."""

    def __init__(self, partition_h: int) -> None:
        self._partition_ms = partition_h * HOUR_MS
        self.until: dict[int, Instant] = {}
        """The end of the last window in each partition."""

    def of(self, now: Instant, *, has_other_writers: bool) -> Sequence[int]:
        """Return the partitions in which a key is claimed at *now*, in their order."""
        number = now // self._partition_ms
        return (number - 1, number) if has_other_writers and now % self._partition_ms < _BOTH_MS else (number,)


def look_up(connection: Connection, keys: Sequence[bytes], now: Instant) -> dict[bytes, Claimed]:
    """Find which of *keys* are claimed at *now*."""
    tables = [f"dedup_{number}" for number, _ in connection.execute(_PARTITIONS, (now,)).fetchall()]
    return _claimed_in(connection.ask_in(tables, _FOUND, keys)(), now)


def _claimed_in(rows: Sequence[Row], now: Instant) -> dict[bytes, Claimed]:
    """Pick the keys whose window is not over at *now* from *rows* of _FOUND."""
    return {key: Claimed(first_id, body_hash) for key, first_id, body_hash, until, *_ in rows if until > now}


class LookUp:
    """A question for keys, asked at once, so that where that is a round trip others go with it."""

    def __init__(self, connection: Connection, claims: Sequence[Claim], now: Instant, partitions: Partitions) -> None:
        keys = sorted([claim.key for claim in claims])  # as they stand in the table: neighbours share a page
        self._until = max((claim.until for claim in claims), default=now)
        self._connection, self._keys, self._now, self._partitions = connection, keys, now, partitions
        self._open = connection.execute(_PARTITIONS, (now,)) if keys else None
        if self._open is not None and not connection.dialect.has_other_writers:
            partitions.until = dict(self._open.fetchall())
        self._asked = [number for number, until in partitions.until.items() if until > now]
        if self._open is not None and connection.dialect.has_other_writers:
            partitions.until = {}  # should one have been dropped, the next question begins with which there are
        self._rows = connection.ask_in(self._tables(self._asked), _FOUND_WITH_END, keys)
        self.ended_badly: set[bytes] = set()
        """The keys, of those answered, whose notification reached nobody."""

    def answer(self) -> dict[bytes, Claimed]:
        """Return which of the keys are claimed."""
        if self._open is None:
            return {}
        rows = self._rows()
        if self._connection.dialect.has_other_writers:
            self._partitions.until = dict(self._open.fetchall())
            news = [number for number in self._partitions.until if number not in self._asked]
            rows += self._connection.ask_in(self._tables(news), _FOUND_WITH_END, self._keys)()
            self._make_what_is_missing()
        self.ended_badly = {key for key, *_, until, end in rows if until > self._now and end in ENDED_BADLY}
        return _claimed_in(rows, self._now)

    def _make_what_is_missing(self) -> None:
        """Make missing tables in a transaction that ends at once, so that nobody waits for one until this ends."""
        for number in self._partitions.of(self._now, has_other_writers=True):
            if _make(self._connection, number, self._until, self._partitions.until):
                self._connection.commit_so_far()

    def _tables(self, numbers: Sequence[int]) -> list[str]:
        return [f"dedup_{number}" for number in numbers]


def end(connection: Connection, over: Mapping[bytes, NotificationId], partitions: Partitions) -> None:
    """End the window of each key that still stands for the notification beside it."""
    for number in partitions.until if over else ():
        delete = f"DELETE FROM dedup_{number} WHERE key = ? AND id = ?"  # noqa: S608 - a number of ours
        connection.executemany(delete, sorted(over.items()))


def claim(transaction: Transaction, claims: Sequence[tuple[Claim, NotificationId]], partitions: Partitions) -> None:
    """Store *claims* of keys that nobody has; where somebody else was first, the commit raises Overtaken."""
    if not claims:
        return
    connection, now = transaction.connection, transaction.now
    rows = [(made.key, made.kind._value_, first_id, made.body_hash, made.until) for made, first_id in claims]
    rows.sort(key=itemgetter(0))
    for number in partitions.of(now, has_other_writers=connection.dialect.has_other_writers):
        _make(connection, number, max(row[-1] for row in rows), partitions.until)
        connection.claim_all(f"dedup_{number}", _COLUMNS, rows, now)


def replace(
    transaction: Transaction, claims: Sequence[tuple[Claim, NotificationId]], partition_h: int, held: str | None = None
) -> None:
    """Store *claims* whatever was there, in a transaction that is alone; *held* stands for a kind that is not done."""
    if not claims:
        return
    connection, number = transaction.connection, transaction.now // (partition_h * HOUR_MS)
    rows = [(made.key, held or made.kind, first_id, made.body_hash, made.until) for made, first_id in claims]
    noted: Row | None = connection.execute("SELECT until FROM dedup_slice WHERE slice = ?", (number,)).fetchone()
    _make(connection, number, max(row[-1] for row in rows), {} if noted is None else {number: noted[0]})
    connection.insert_all(_REPLACE.format(partition=number), "(?, ?, ?, ?, ?)", rows)


def _make(connection: Connection, number: int, until: Instant, noted: dict[int, Instant]) -> bool:
    """Make the partition, kept until then, if it is not *noted*; tell whether anything had to be done."""
    if number not in noted:
        connection.execute(_MAKE.format(partition=number, blob=connection.dialect.blob))
    if noted.get(number, 0) >= until:
        return False
    noted[number] = Instant(-(-until // HOUR_MS) * HOUR_MS)  # whole hours: the note changes seldom
    connection.execute(_NOTE, (number, noted[number]))
    return True


def forget(transaction: Transaction, keys: Sequence[bytes]) -> int:
    """End the windows of *keys*; return how many were open."""
    return _forget(transaction, [keys])[0]


def note_forgotten(transaction: Transaction, keys: Sequence[bytes], partition_h: int) -> None:
    """Refuse from now on any claim on *keys* whose id was made before."""
    if not keys:
        return
    connection, now = transaction.connection, transaction.now
    number = now // (partition_h * HOUR_MS)
    noted: Row | None = connection.execute("SELECT until FROM dedup_slice WHERE slice = ?", (number,)).fetchone()
    _make(connection, number, later(now, _FORGOTTEN_MS), {} if noted is None else {number: noted[0]})
    since = first_id_at(later(now, 1))
    rows = [(key, _FORGOTTEN, since, b"", 0) for key in sorted(set(keys))]
    connection.insert_all(_REPLACE.format(partition=number), "(?, ?, ?, ?, ?)", rows)


def forgotten(transaction: Transaction, keys: Sequence[bytes]) -> dict[bytes, NotificationId]:
    """Find which of *keys* were forgotten, and from which id on their claims count again."""
    connection = transaction.connection
    if not keys:
        return {}
    tables = [f"dedup_{number}" for number, _ in connection.execute(_PARTITIONS, (transaction.now,)).fetchall()]
    rows = connection.ask_in(tables, "key, kind, id", keys)()
    since: dict[bytes, NotificationId] = {}
    for key, kind, first_id in rows:
        if kind == _FORGOTTEN:
            since[key] = max(first_id, since.get(key, first_id))
    return since


class _LookUp(Struct):
    """A look-up that is to be made."""

    now: Instant
    found: asyncio.Task[dict[bytes, Claimed]]
    keys: set[bytes] = set()


class SqlDedup:
    """The dedup keys of the store; claims are made by accept, in its own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next: _LookUp | None = None
        self._turn = asyncio.Lock()

    async def claimed(self, keys: Sequence[bytes], now: Instant) -> Mapping[bytes, Claimed]:
        """Find which of *keys* are claimed at *now*; who asks while a look-up is under way shares the next."""
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
    partitions = [number for (number,) in connection.execute("SELECT slice FROM dedup_slice").fetchall()]
    forgotten: list[int] = []
    for keys in ops:
        marks = ",".join("?" * len(keys))
        sql = f"DELETE FROM dedup_{{partition}} WHERE until > ? AND key IN ({marks}) RETURNING key"  # noqa: S608 - marks
        asked = (transaction.now, *keys)
        gone = {
            row[0]
            for number in partitions
            for row in connection.execute(sql.format(partition=number), asked).fetchall()
        }
        forgotten.append(len(gone))  # a key of the first minutes of a partition is in two
    return forgotten


def _drop_over(transaction: Transaction, ops: Sequence[None]) -> list[int]:
    connection = transaction.connection
    over = connection.execute("SELECT slice FROM dedup_slice WHERE until <= ?", (transaction.now,)).fetchall()
    for (number,) in over:
        connection.execute(f"DROP TABLE IF EXISTS dedup_{number}")
        connection.execute("DELETE FROM dedup_slice WHERE slice = ?", (number,))
    return [len(over)] * len(ops)


_FORGET: OperationKind[Sequence[bytes], int] = OperationKind("forget keys", _forget, durable=True)
_DROP_OVER: OperationKind[None, int] = OperationKind("drop keys", _drop_over, durable=False)

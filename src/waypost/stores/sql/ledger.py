"""The ledger of a log: the tables of accept and settle, written by the same code, of shards that nobody leases.

A row of the log's has its shard 64 higher than its user's. A replay takes it back: from then on its truth is here.

How far recorders are is in the rows of readers: for each part of the log a position in it, which changes in the
transaction that writes what was there, and the time up to which the part is complete. A recorder that lost a part to
another finds its position moved, and writes nothing. All lock in one order: positions, then notifications by id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from waypost.domain.amendment import Supersede
from waypost.domain.balance import Count
from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Change, Unsure
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.ledger import Arrived, Completed, Decided, LogEntry, Mark
from waypost.ports.work import NewNotification
from waypost.stores.sql import dedup
from waypost.stores.sql.accept import Arrivals
from waypost.stores.sql.amend import older
from waypost.stores.sql.database import Database
from waypost.stores.sql.dedup import Partitions
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.pending_changes import PendingChanges
from waypost.stores.sql.plain_settlements import PlainSettlements
from waypost.stores.sql.rows import NOTIFICATION, WITH_CONTENT, notification_of, select_in
from waypost.stores.sql.settle import settle_all
from waypost.stores.sql.transaction import OperationKind, Transaction

PATIENCE_MS = 15 * SECOND_MS
"""Milliseconds after its deadline for which an intent's outcome may still be on its way into the log."""

_OPEN = (
    f"SELECT {NOTIFICATION} FROM {WITH_CONTENT} WHERE notification.id IN ({{keys}})"  # noqa: S608 - columns
    f" AND shard >= {SHARDS} AND status = 'pending'"
)
_INTENTS = (
    "SELECT notification_id, n, attempt, code, due_at FROM receipt"  # noqa: S608 - a number
    f" WHERE lane = ? AND due_at IS NOT NULL AND due_at <= ? AND status = 'unknown' AND shard >= {SHARDS} LIMIT ?"
)
_AT = "recorder at "
"""The prefix of the names of readers of the log, each in one part of it; their positions are the log's."""
_COMPLETE = "recorded until "
"""The prefix of the names of those whose position is the time up to which a part is complete."""
_BEGIN = "INSERT INTO reader (name, position) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
_WHERE = "SELECT name, position FROM reader WHERE name IN ({keys})"
_STEP = "UPDATE reader SET position = ? WHERE name = ? AND position = ?"
_HOLD = f"UPDATE reader SET position = position WHERE substr(name, 1, {len(_AT)}) = '{_AT}'"  # noqa: S608 - a constant
_WATCHED = f"SELECT name FROM reader WHERE substr(name, 1, {len(_COMPLETE)}) = '{_COMPLETE}'"  # noqa: S608 - a constant
_UNWATCH = "DELETE FROM reader WHERE name = ?"
_PASS = "UPDATE reader SET position = ? WHERE name = ? AND position < ?"  # noqa: S105 - no password
_UNTIL = f"SELECT min(position) FROM reader WHERE substr(name, 1, {len(_COMPLETE)}) = '{_COMPLETE}'"  # noqa: S608 - as above


class _Recording(Struct, frozen=True):
    """The entries that one recorder wants written."""

    entries: Sequence[LogEntry]
    marks: Sequence[Mark]


class _Begun(Struct, frozen=True):
    """The state from which a recorder begins."""

    known: Mapping[str, int]
    every: Collection[str]


class _Elsewhere(Exception):
    """A part of the log is not where its recorder left it."""


class SqlLedger:
    """See Ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        partition_h = database.settings.dedup_partition_h
        self._record: OperationKind[_Recording, None] = OperationKind(
            "record", lambda transaction, ops: _record(transaction, ops, partition_h), durable=True
        )
        self._forget: OperationKind[Sequence[bytes], int] = OperationKind(
            "forget", lambda transaction, ops: [_forget(transaction, op, partition_h) for op in ops], durable=True
        )

    async def begin(self, known: Mapping[str, int], every: Collection[str]) -> Mapping[str, int]:
        """See Ledger."""
        return await asyncio.shield(self._database.commits.submit(_BEGINNING, _Begun(known, every), len(every)))

    async def record(self, batch: Sequence[LogEntry], marks: Sequence[Mark] = ()) -> bool:
        """See Ledger."""
        op = _Recording(batch, marks)
        try:
            await asyncio.shield(self._database.commits.submit(self._record, op, 2 * len(batch)))
        except _Elsewhere:
            return False
        return True

    async def forget(self, keys: Sequence[bytes]) -> int:
        """See Ledger."""
        return await asyncio.shield(self._database.commits.submit(self._forget, keys, len(keys)))

    async def of_log(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Notification]:
        """See Ledger."""

        def query(connection: Connection) -> list[Row]:
            return list(select_in(connection, _OPEN, ids))

        found = map(notification_of, await self._database.read(query))
        return {each.id: each for each in found if each.app == app}

    async def older(self, order: Supersede) -> Sequence[NotificationId]:
        """See Ledger."""
        return await self._database.read(lambda connection: older(connection, order))

    async def close_intents(self, n: int) -> int:
        """See Ledger; some seconds after their deadline, as KafkaRecords says of a part that it is complete."""
        if not await self._database.read(_has_intents):
            return 0
        return await asyncio.shield(self._database.commits.submit(_CLOSE, n, 2 * n))

    async def complete(self, completed: Completed) -> None:
        """See Ledger."""
        await self._database.commits.submit(_COMPLETING, completed, len(completed.parts))

    async def complete_until(self) -> Instant:
        """See Ledger."""
        return await self._database.read(complete_until)


def _begin(transaction: Transaction, ops: Sequence[_Begun]) -> list[dict[str, int]]:
    connection = transaction.connection
    answers = []
    for op in ops:
        watched = sorted(_COMPLETE + part for part in op.every)
        gone = {name for (name,) in connection.execute(_WATCHED).fetchall()} - set(watched)
        if gone:
            connection.executemany(_UNWATCH, [(name,) for name in sorted(gone)])
        rows = [*((_AT + part, at) for part, at in sorted(op.known.items())), *((name, 0) for name in watched)]
        connection.executemany(_BEGIN, rows)
        found = select_in(connection, _WHERE, [_AT + part for part in op.known])
        answers.append({name.removeprefix(_AT): position for name, position in found})
    return answers


def _complete(transaction: Transaction, ops: Sequence[Completed]) -> list[None]:
    rows = [(op.until, _COMPLETE + part, op.until) for op in ops for part in op.parts]
    transaction.connection.executemany(_PASS, sorted(rows, key=lambda row: row[1]))
    return [None] * len(ops)


def complete_until(connection: Connection) -> Instant:
    """Find the time up to which every part of the log is recorded; 0 where there is none."""
    (until,) = connection.execute(_UNTIL).fetchone()
    return Instant(until or 0)


def _record(transaction: Transaction, ops: Sequence[_Recording], partition_h: int) -> list[None]:
    _step(transaction.connection, [mark for op in ops for mark in op.marks])
    entries = [entry for op in ops for entry in op.entries]
    named = [each.settled.notification if isinstance(each, Decided) else each.notification for each in entries]
    notifications = sorted(named, key=attrgetter("id"))
    arrivals = Arrivals(
        transaction, [NewNotification(each) for each in notifications], Partitions(partition_h), shards_after=SHARDS
    )
    for notification in notifications:
        arrivals.take(NewNotification(notification))
    arrivals.write()
    for each in arrivals.kept():  # who asked for more was answered elsewhere
        transaction.tally(each.notification.app, each.notification.lane, Count.REQUESTS, 1)
    arrived = [entry for entry in entries if isinstance(entry, Arrived)]
    claims = [(each, entry.notification.id) for entry in arrived for each in entry.claims]
    gone = dedup.forgotten(transaction, [each.key for each, _ in claims])
    running = [
        (each, first_id)
        for each, first_id in claims
        if each.until > transaction.now and first_id >= gone.get(each.key, first_id)
    ]
    dedup.replace(transaction, sorted(running, key=lambda claim: claim[0].key), partition_h)
    decided = [entry for entry in entries if isinstance(entry, Decided)]
    cases = PendingChanges(transaction, (entry.settled.notification.id for entry in decided))
    plain = PlainSettlements(transaction)
    for entry in decided:
        if entry.withdrawn is not None and (case := cases.get(entry.settled.notification.id)) is not None:
            case.mark_withdrawn(entry.withdrawn)
        settle_all(transaction, cases, plain, [entry.settled])
    plain.write()
    cases.write()
    return [None] * len(ops)


def _forget(transaction: Transaction, keys: Sequence[bytes], partition_h: int) -> int:
    transaction.connection.execute(_HOLD)  # whoever records is through, or sees what is noted here
    open_windows = dedup.forget(transaction, keys)
    dedup.note_forgotten(transaction, keys, partition_h)
    return open_windows


def _step(connection: Connection, marks: Sequence[Mark]) -> None:
    """Move the positions, and hold them until the transaction ends; _Elsewhere where another recorder moved one."""
    steps = [(mark.until, _AT + mark.part, mark.since) for mark in sorted(marks, key=attrgetter("part"))]
    if steps and connection.executemany(_STEP, steps).rowcount != len(steps):
        raise _Elsewhere


def _has_intents(connection: Connection) -> bool:
    found = "SELECT 1 FROM receipt WHERE due_at IS NOT NULL AND status = 'unknown' AND lane = ? AND shard >= ? LIMIT 1"
    return any(connection.execute(found, (lane, SHARDS)).fetchone() for lane in Lane)


def _close(transaction: Transaction, ops: Sequence[int]) -> list[int]:
    connection = transaction.connection
    over: dict[NotificationId, list[Change]] = {}
    until = min(later(transaction.now, -PATIENCE_MS), complete_until(connection))
    for lane in Lane:
        for one, n, attempt, code, due_at in connection.execute(_INTENTS, (lane, until, max(ops))).fetchall():
            over.setdefault(one, []).append(Change(n, attempt, Unsure(code or "unanswered"), due_at))
    cases = PendingChanges(transaction, over)
    for one, changes in over.items():
        case = cases.get(one)
        assert case is not None, "a receipt has its notification"
        case.take(transaction, case.progress.settle(changes, transaction.now))
    cases.write()
    return [len(over)] * len(ops)


_BEGINNING: OperationKind[_Begun, dict[str, int]] = OperationKind("begin recording", _begin, durable=True)
_COMPLETING: OperationKind[Completed, None] = OperationKind("complete", _complete, durable=False)
_CLOSE: OperationKind[int, int] = OperationKind("close intents", _close, durable=False)

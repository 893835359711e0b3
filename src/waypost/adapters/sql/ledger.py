"""The ledger of a log: the tables of accept and settle, written by the same code, of shards that nobody leases.

A row of the log's has its shard 64 higher than its user's. A replay takes it back: from then on its truth is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waypost.adapters.sql.accept import Arrivals
from waypost.adapters.sql.amend import older
from waypost.adapters.sql.cases import Cases
from waypost.adapters.sql.database import Database
from waypost.adapters.sql.dedup import Slices, replace
from waypost.adapters.sql.engine import Connection, Row
from waypost.adapters.sql.journal import SqlJournal
from waypost.adapters.sql.rows import NOTIFICATION, WITH_CONTENT, notification_of, select_in
from waypost.adapters.sql.settle import settle_all
from waypost.adapters.sql.straight import StraightWay
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.amendment import Supersede
from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Change, Unsure
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.ledger import Arrived, Decided, LogEntry
from waypost.ports.work import Arrival

PATIENCE_MS = 15 * SECOND_MS
"""How long after its deadline an intent's outcome may still be on its way from another recorder's partition."""

_OPEN = (
    f"SELECT {NOTIFICATION} FROM {WITH_CONTENT} WHERE notification.id IN ({{keys}})"  # noqa: S608 - columns
    f" AND shard >= {SHARDS} AND status = 'pending'"
)
_INTENTS = (
    "SELECT notification_id, n, attempt, code, due_at FROM receipt"  # noqa: S608 - a number
    f" WHERE lane = ? AND due_at IS NOT NULL AND due_at <= ? AND status = 'unknown' AND shard >= {SHARDS} LIMIT ?"
)
_RECORDER = "recorder"
"""The reader of the log among the readers of the journal; its position is a time."""


class SqlLedger:
    """See Ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._readers = SqlJournal(database)
        slice_h = database.settings.dedup_slice_h
        self._record: Kind[Sequence[LogEntry], None] = Kind(
            "record", lambda transaction, ops: _record(transaction, ops, slice_h), durable=True
        )

    async def record(self, batch: Sequence[LogEntry]) -> None:
        """See Ledger."""
        await asyncio.shield(self._database.commits.submit(self._record, batch, 2 * len(batch)))

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
        """See Ledger; some seconds after their deadline."""
        if not await self._database.read(_has_intents):
            return 0
        return await asyncio.shield(self._database.commits.submit(_CLOSE, n, 2 * n))

    async def complete(self, until: Instant) -> None:
        """See Ledger."""
        await self._readers.advance(_RECORDER, until)

    async def complete_until(self) -> Instant:
        """See Ledger."""
        return Instant(await self._readers.position(_RECORDER))


def _record(transaction: Transaction, ops: Sequence[Sequence[LogEntry]], slice_h: int) -> list[None]:
    entries = [entry for op in ops for entry in op]
    notifications = [each.settled.notification if isinstance(each, Decided) else each.notification for each in entries]
    arrivals = Arrivals(transaction, [Arrival(each) for each in notifications], Slices(slice_h), shards_after=SHARDS)
    for notification in notifications:
        arrivals.take(Arrival(notification))
    arrivals.write()
    arrived = [entry for entry in entries if isinstance(entry, Arrived)]
    claims = [(each, entry.notification.id) for entry in arrived for each in entry.claims]
    running = [(each, first_id) for each, first_id in claims if each.until > transaction.now]
    replace(transaction, sorted(running, key=lambda claim: claim[0].key), slice_h)
    decided = [entry for entry in entries if isinstance(entry, Decided)]
    cases = Cases(transaction, (entry.settled.notification.id for entry in decided))
    straight = StraightWay(transaction)
    for entry in decided:
        case = cases.get(entry.settled.notification.id)
        if case is not None and entry.withdrawn is not None:
            case.mark_withdrawn(entry.withdrawn)
        settle_all(transaction, cases, straight, [entry.settled])
    straight.write()
    cases.write()
    return [None] * len(ops)


def _has_intents(connection: Connection) -> bool:
    found = "SELECT 1 FROM receipt WHERE due_at IS NOT NULL AND status = 'unknown' AND lane = ? AND shard >= ? LIMIT 1"
    return any(connection.execute(found, (lane, SHARDS)).fetchone() for lane in Lane)


def _close(transaction: Transaction, ops: Sequence[int]) -> list[int]:
    connection = transaction.connection
    over: dict[NotificationId, list[Change]] = {}
    until = later(transaction.now, -PATIENCE_MS)
    for lane in Lane:
        for one, n, attempt, code, due_at in connection.execute(_INTENTS, (lane, until, max(ops))).fetchall():
            over.setdefault(one, []).append(Change(n, attempt, Unsure(code or "unanswered"), due_at))
    cases = Cases(transaction, over)
    for one, changes in over.items():
        case = cases.get(one)
        assert case is not None, "a receipt has its notification"
        case.take(transaction, case.progress.settle(changes, transaction.now))
    cases.write()
    return [len(over)] * len(ops)


_CLOSE: Kind[int, int] = Kind("close intents", _close, durable=False)

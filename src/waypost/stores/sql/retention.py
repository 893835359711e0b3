"""Retention: old notifications leave with their content and receipts, oldest first, a page a transaction.

Where months lie apart (PostgreSQL) they leave whole, and by pages goes what is left of a month that keeps something.

notification  by id, which begins with its time     content  by seq     receipt  by (notification_id, n)
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.balance import DELIVERY, DROPPED
from waypost.domain.ids import first_id_at
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, later
from waypost.ports.clock import Clock
from waypost.ports.retention import HIDDEN_FOR_MS
from waypost.stores.sql.added import AddedTable, names_of_notifications, names_of_what_is_to_be_told
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Row
from waypost.stores.sql.engine import Months
from waypost.stores.sql.history import DROP_EMPTY_SLICES
from waypost.stores.sql.rows import execute_in, select_in
from waypost.stores.sql.transaction import COUNT, OperationKind, Transaction
from waypost.telemetry import Event, Metric

_LEFT = """\
DELETE FROM {table} WHERE notification_id IN (
    SELECT notification_id FROM {table} WHERE notification_id < ?
    AND NOT EXISTS (SELECT 1 FROM notification WHERE id = notification_id) LIMIT ?
)
"""
_TAKE_COUNTERS = "DELETE FROM counter WHERE hour > 0 AND hour < ? RETURNING app, lane, status, delta"
"""One statement takes and tells them: others count on PostgreSQL meanwhile, and what they add counts too."""
_HOURS_APART = 48
"""Hours that clocks may differ: nobody's is so wrong that it still counts in what is older."""
_PAGE = 500
_FIND_HIDDEN = """\
SELECT seq, id, notification.app, lane, status FROM feed_entry JOIN notification ON id = notification_id
WHERE hidden_at IS NOT NULL AND hidden_at <= ? AND finished_at IS NOT NULL {nothing_to_be_told} LIMIT ?
"""
_NOTHING_TO_BE_TOLD = "AND NOT EXISTS (SELECT 1 FROM {table} AS told WHERE told.notification_id = notification.id)"
_OLD = "SELECT seq, id, app, lane, status FROM notification WHERE id < ? AND finished_at < ? ORDER BY id LIMIT ?"
_RECEIPTS = (
    "SELECT notification.app, notification.lane, receipt.status, count(*) FROM notification"
    " JOIN receipt ON notification_id = id WHERE id IN ({keys})"
    " GROUP BY notification.app, notification.lane, receipt.status"
)


class _Page(Struct, frozen=True):
    """A page of what to drop, at most."""

    before: Instant
    n: int
    table: str = ""
    """The table of a feature, whose rows belong to notifications."""
    beside: tuple[str, ...] = ()
    """The tables of features from which rows go with their notifications."""


class _Hidden(Struct, frozen=True):
    """A page of what readers hid, at most."""

    before: Instant
    n: int
    beside: tuple[str, ...]
    to_be_told: tuple[str, ...]


class SqlRetention:
    """The retention of the store: see Retention."""

    def __init__(self, database: Database, clock: Clock, tables: Sequence[AddedTable] = ()) -> None:
        """Create it; *tables* are those of features."""
        self._database = database
        self._clock = clock
        self._beside = names_of_notifications(tables)
        self._to_be_told = names_of_what_is_to_be_told(tables)
        self._day = -1

    async def drop_whole(self, before: Instant) -> Instant:
        """See Retention; once a day, and whoever clears away behind makes room ahead.

        The rows of features on what has left until then follow; the counters of hours long past become one.
        """
        engine = self._database.engine
        if before // DAY_MS != self._day:
            whole = await self._whole_before(before)
            self._tell(await asyncio.to_thread(engine.keep_up, self._clock.now(), whole))
            for table in self._beside:
                page = _Page(before, _PAGE, table)
                while await self._database.commits.submit(_DROP_LEFT, page, _PAGE) == _PAGE:
                    pass
            await self._database.commits.submit(DROP_EMPTY_SLICES, None)
            await self._database.commits.submit(_FOLD_COUNTERS, self._clock.now() // HOUR_MS - _HOURS_APART)
            self._day = before // DAY_MS
        return engine.by_pages(before)

    async def _whole_before(self, before: Instant) -> Instant:
        """Return the time before which all that is over may go at once."""
        return before

    def _tell(self, months: Months) -> None:
        """Report which tables by month are not as they should be."""
        telemetry = self._database.telemetry
        telemetry.gauge(Metric.MONTHS_MISSING, len(months.missing))
        telemetry.gauge(Metric.MONTHS_UNDROPPED, len(months.undropped))
        if months.missing or months.undropped:
            missing, undropped = " ".join(months.missing), " ".join(months.undropped)
            telemetry.event(Event.STORE_MONTHS, missing=missing, undropped=undropped)

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Retention."""
        page = _Page(before, n, beside=self._beside)
        return await asyncio.shield(self._database.commits.submit(_DROP, page, n))

    async def drop_hidden(self, n: int) -> int:
        """See Retention."""
        hidden = _Hidden(later(self._clock.now(), -HIDDEN_FOR_MS), n, self._beside, self._to_be_told)
        return await asyncio.shield(self._database.commits.submit(_DROP_HIDDEN, hidden, n))


def delete_notifications(transaction: Transaction, rows: Sequence[Row], beside: Sequence[str] = ()) -> int:
    """Delete the notifications of *rows* (seq, id, app, lane, status), and what is of them in the tables *beside*.

    Return how many it was; the balance counts them as dropped.
    """
    connection = transaction.connection
    ids = [row[1] for row in rows]
    for _, _, app, lane, status in rows:
        transaction.tally(app, lane, f"{DROPPED}{status}", 1)
    for app, lane, status, n in select_in(connection, _RECEIPTS, ids):
        transaction.tally(app, lane, f"{DROPPED}{DELIVERY}{status}", n)
    execute_in(connection, "DELETE FROM receipt WHERE notification_id IN ({keys})", ids)
    execute_in(connection, "DELETE FROM content WHERE seq IN ({keys})", [row[0] for row in rows])
    execute_in(connection, "DELETE FROM notification WHERE id IN ({keys})", ids)
    for table in beside:
        execute_in(connection, f"DELETE FROM {table} WHERE notification_id IN ({{keys}})", ids)  # noqa: S608 - its name is the code's
    return len(rows)


def _drop(transaction: Transaction, ops: Sequence[_Page]) -> list[int]:
    return [_drop_page(transaction, page) for page in ops]


def _drop_page(transaction: Transaction, page: _Page) -> int:
    connection = transaction.connection
    rows = connection.execute(_OLD, (first_id_at(page.before), page.before, page.n)).fetchall()
    return delete_notifications(transaction, rows, page.beside)


def _drop_hidden(transaction: Transaction, ops: Sequence[_Hidden]) -> list[int]:
    return [_drop_page_of_hidden(transaction, op) for op in ops]


def _drop_page_of_hidden(transaction: Transaction, page: _Hidden) -> int:
    nothing_to_be_told = " ".join(_NOTHING_TO_BE_TOLD.format(table=table) for table in page.to_be_told)
    find = _FIND_HIDDEN.format(nothing_to_be_told=nothing_to_be_told)
    rows = transaction.connection.execute(find, (page.before, page.n)).fetchall()
    return delete_notifications(transaction, rows, page.beside)


def _drop_left(transaction: Transaction, ops: Sequence[_Page]) -> list[int]:
    execute = transaction.connection.execute
    return [execute(_LEFT.format(table=page.table), (first_id_at(page.before), page.n)).rowcount for page in ops]


def _fold_counters(transaction: Transaction, ops: Sequence[int]) -> list[None]:
    for before_hour in ops:
        sums: Counter[tuple[str, str, str]] = Counter()
        for app, lane, status, delta in transaction.connection.execute(_TAKE_COUNTERS, (before_hour,)).fetchall():
            sums[app, lane, status] += delta
        rows = [(app, lane, 0, status, delta) for (app, lane, status), delta in sorted(sums.items()) if delta]
        transaction.connection.executemany(COUNT, rows)
    return [None] * len(ops)


_DROP: OperationKind[_Page, int] = OperationKind("retention", _drop, durable=False)
_DROP_HIDDEN: OperationKind[_Hidden, int] = OperationKind("retention_of_hidden", _drop_hidden, durable=False)
_DROP_LEFT: OperationKind[_Page, int] = OperationKind("retention_of_features", _drop_left, durable=False)
_FOLD_COUNTERS: OperationKind[int, None] = OperationKind("retention_of_counters", _fold_counters, durable=False)

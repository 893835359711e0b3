"""The balance on SQL: counters and open rows read in one snapshot, and the recount of every row in another.

counter        all rows
notification   the open ones, in the indexes of what is fresh and of what is due
receipt        the open ones: those that are due by their index, those that wait for a sibling by another; one that is
               open is why its notification is processed
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from waypost.domain.balance import (
    SCHEDULED_MOST,
    Count,
    Difference,
    Line,
    Outline,
    Place,
    Seen,
    Sheet,
    Waiting,
    balance_of,
    differences_of,
    outline_of,
)
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.status import FINAL
from waypost.domain.time import HOUR_MS, Instant
from waypost.ports.clock import Clock
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.ledger import complete_until
from waypost.stores.sql.rows import LANES
from waypost.stores.sql.transaction import OperationKind, Transaction

T = TypeVar("T")

_WRITE_AFTER_S: Final = 1.0
"""Seconds for which refusals are gathered: they are many just when the store has enough to do."""
_PAGE: Final = 5_000
_FIRST_ID = NotificationId(bytes(16))
_LAST_ID = NotificationId(b"\xff" * 16)

_COUNTED = "SELECT app, lane, status, CAST(sum(delta) AS BIGINT) FROM counter GROUP BY app, lane, status"
_COUNTED_OF = "SELECT status, CAST(sum(delta) AS BIGINT) FROM counter WHERE app = ? GROUP BY status"
_SCHEDULED_OF = (
    "SELECT count(*) FROM (SELECT 1 FROM notification INDEXED BY notification_due_of_app"
    " WHERE lane = ? AND app = ? AND due_at > 0 AND due_at > ?"
    " ORDER BY due_at LIMIT ?) AS found"
)
"""In the order of the index, which PostgreSQL would leave for the whole table where it thinks much is scheduled."""
_BY_HOUR = "SELECT hour, delta FROM counter WHERE app = ? AND lane = ? AND status = ? AND hour > 0"
_FRESH = (
    "SELECT lane, app, 'waiting', count(*) FROM notification INDEXED BY notification_fresh"
    " WHERE due_at = 0 GROUP BY lane, app"
)
_DUE = (
    "SELECT lane, app, CASE WHEN due_at > ?1 THEN 'scheduled' ELSE 'waiting' END AS place, count(*)"
    " FROM notification INDEXED BY notification_due_of_app WHERE due_at > 0 GROUP BY lane, app, place"
)
_ROUTED = (
    "SELECT lane, app, 'processing', count(DISTINCT notification_id) FROM receipt INDEXED BY receipt_due_of_app"
    " WHERE due_at IS NOT NULL GROUP BY lane, app"
)
_OPEN = (
    "SELECT lane, app, CASE WHEN status = 'unknown' THEN 'under_way' WHEN parked IS NOT NULL THEN 'parked'"
    " ELSE 'waiting' END AS place, count(*)"
    " FROM receipt INDEXED BY receipt_due_of_app WHERE due_at IS NOT NULL GROUP BY lane, app, place"
)
_FOR_SIBLINGS = (
    "SELECT lane, app, 'waiting', count(*) FROM receipt INDEXED BY receipt_waiting"
    " WHERE due_at IS NULL AND status = 'pending' GROUP BY lane, app"
)
_END = "SELECT id FROM notification WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?"
_NOTIFICATIONS = (
    f"SELECT app, lane, status, finished_at / {HOUR_MS} AS hour, count(*) FROM notification"  # noqa: S608 - a number
    " WHERE id > ? AND id <= ? GROUP BY app, lane, status, hour"
)
_DELIVERIES = (
    "SELECT notification.app, notification.lane, CASE WHEN receipt.due_at IS NULL THEN receipt.status"
    " ELSE 'pending' END AS stands, count(*) FROM notification JOIN receipt ON notification_id = id"
    " WHERE id > ? AND id <= ? GROUP BY notification.app, notification.lane, stands"
)


class SqlBalance:
    """See BalanceSheet."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._refused: Counter[Place] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[asyncio.Task[None]] = set()

    async def read(self, app: AppId | None = None) -> Sheet:
        """See BalanceSheet."""
        now = self._clock.now()
        until, seen = await self._database.read(
            lambda connection: _in_snapshot(connection, lambda: (complete_until(connection), _look(connection, now)))
        )
        balances = {place: balance_of(each) for place, each in sorted(seen.items()) if app in (None, place[0])}
        return Sheet(until or now, balances)

    async def outline(self, app: AppId) -> Outline:
        """See BalanceSheet."""
        now = self._clock.now()
        return await self._database.read(lambda connection: _outline(connection, app, now))

    def refused(self, app: AppId, lane: Lane, n: int) -> None:
        """See BalanceSheet."""
        self._refused[app, lane] += n
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_AFTER_S, self._begin_writing)

    async def audit(self) -> list[Difference]:
        """See BalanceSheet."""
        return await self._database.read(lambda connection: _in_snapshot(connection, lambda: _audit(connection)))

    async def flush(self) -> None:
        """Write which requests were refused; where that fails they are kept for the next time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._refused = self._refused, Counter()
        if not counts:
            return
        try:
            await self._database.commits.submit(_COUNT_REFUSED, counts)
        except Unavailable:
            for (app, lane), n in counts.items():
                self.refused(app, lane, n)

    def _begin_writing(self) -> None:
        task = asyncio.get_running_loop().create_task(self.flush())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def close(self) -> None:
        """Write what is gathered, where the store takes it."""
        await self.flush()
        if self._timer is not None:
            self._timer.cancel()


def _in_snapshot(connection: Connection, read: Callable[[], T]) -> T:
    connection.execute(connection.dialect.snapshot)
    try:
        return read()
    finally:
        with contextlib.suppress(Exception):  # of a connection that is lost: what it was lost by is raised
            connection.execute("COMMIT")


class _Place(msgspec.Struct):
    """The findings in one app and lane, in the making."""

    counted: Counter[str] = msgspec.field(default_factory=Counter)
    notifications: Counter[Waiting] = msgspec.field(default_factory=Counter)
    deliveries: Counter[Waiting] = msgspec.field(default_factory=Counter)


def _look(connection: Connection, now: Instant) -> dict[Place, Seen]:
    """Read the counters and count what is open; a lane of a newer version is for that to look at."""
    found: defaultdict[tuple[str, str], _Place] = defaultdict(_Place)
    for app, lane, word, n in connection.execute(_COUNTED).fetchall():
        found[app, lane].counted[word] += n
    for lane, app, place, n in _rows(connection, now, _FRESH, _DUE, _ROUTED):
        found[app, lane].notifications[Waiting(place)] += n
    for lane, app, place, n in _rows(connection, now, _OPEN, _FOR_SIBLINGS):
        found[app, lane].deliveries[Waiting(place)] += n
    return {
        (AppId(app), LANES[lane]): Seen(each.counted, each.notifications, each.deliveries)
        for (app, lane), each in found.items()
        if lane in LANES
    }


def _outline(connection: Connection, app: AppId, now: Instant) -> Outline:
    counted = dict(connection.execute(_COUNTED_OF, (app,)).fetchall())
    scheduled = [connection.execute(_SCHEDULED_OF, (lane, app, now, SCHEDULED_MOST)).fetchone()[0] for lane in Lane]
    return outline_of(counted, sum(scheduled))


def _rows(connection: Connection, now: Instant, *statements: str) -> list[Row]:
    return [row for sql in statements for row in connection.execute(sql, (now,) if "?1" in sql else ()).fetchall()]


def _audit(connection: Connection) -> list[Difference]:
    counted: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for app, lane, word, n in connection.execute(_COUNTED).fetchall():
        counted[app, lane][word] += n
    found, by_hour = _recount(connection)
    differences = [
        each
        for app, lane in sorted({*counted, *found})
        for each in differences_of(AppId(app), lane, counted[app, lane], found[app, lane])
    ]
    if connection.dialect.has_other_writers:  # there a counter's rows are divided among writers, not by hours
        return differences
    return [_with_hours(connection, each, by_hour) for each in differences]


_Found = defaultdict[tuple[str, str], dict[Line, Counter[str]]]
_ByHour = Counter[tuple[str, str, str, int | None]]


def _recount(connection: Connection) -> tuple[_Found, _ByHour]:
    """Count all rows by status, and those of notifications by the hour in which they ended, too."""
    found: _Found = defaultdict(lambda: {line: Counter[str]() for line in (Line.NOTIFICATIONS, Line.DELIVERIES)})
    by_hour: _ByHour = Counter()
    after, is_last = _FIRST_ID, False
    while not is_last:
        end = connection.execute(_END, (after, _PAGE - 1)).fetchone()
        until, is_last = (_LAST_ID, True) if end is None else (end[0], False)
        for app, lane, status, hour, n in connection.execute(_NOTIFICATIONS, (after, until)).fetchall():
            found[app, lane][Line.NOTIFICATIONS][status] += n
            by_hour[app, lane, status, hour] += n
        for app, lane, status, n in connection.execute(_DELIVERIES, (after, until)).fetchall():
            found[app, lane][Line.DELIVERIES][status] += n
        after = until
    return found, by_hour


def _with_hours(connection: Connection, each: Difference, found: _ByHour) -> Difference:
    """Name the hours of which counters and rows differ, of notifications that ended; older counters are one."""
    if each.line is not Line.NOTIFICATIONS or each.status not in FINAL:
        return each
    rows: list[tuple[int, int]] = connection.execute(_BY_HOUR, (each.app, each.lane, each.status)).fetchall()
    hours = sorted(hour for hour, n in rows if found[each.app, each.lane, each.status, hour] != n)
    return msgspec.structs.replace(each, hours=tuple(hours))


def _count_refused(transaction: Transaction, ops: Sequence[Counter[Place]]) -> list[None]:
    for op in ops:
        for (app, lane), n in op.items():
            for word in (Count.REQUESTS, Count.REFUSED):
                transaction.tally(app, lane, word, n)
    return [None] * len(ops)


_COUNT_REFUSED: OperationKind[Counter[Place], None] = OperationKind("count_refused", _count_refused, durable=False)

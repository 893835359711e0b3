"""The reads on SQL, each by key or by pages of keys; none leaves a cursor open.

``scheduled`` and ``processing`` are never stored: pending with a due time ahead, pending without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from waypost.adapters.sql.bulk_views import waiting_recipient
from waypost.adapters.sql.database import Database
from waypost.adapters.sql.engine import Connection, Row
from waypost.adapters.sql.rows import (
    NOTIFICATION,
    NOTIFICATION_WIDTH,
    RECEIPT,
    WITH_CONTENT,
    notification_of,
    receipt_of,
    select_in,
)
from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.views import DeadLetter, DeadQuery, HistoryQuery, Record, Story

_DUPLICATES_SHOWN = 100
_PAGE = 1_000
_BALANCE_PAGE = 20_000
_FIRST_ID = NotificationId(bytes(16))
_LAST_ID = NotificationId(b"\xff" * 16)

_RECORDS = f"""\
SELECT {NOTIFICATION}, status, due_at, finished_at, reason, duplicate_of, round
FROM {WITH_CONTENT} WHERE notification.id IN ({{keys}})
"""  # noqa: S608 - a list of columns
_RECEIPTS_OF = f"SELECT {RECEIPT} FROM receipt WHERE notification_id = ? ORDER BY n"  # noqa: S608 - a list of columns
_DUPLICATES_OF = "SELECT id FROM notification WHERE duplicate_of = ? ORDER BY seq LIMIT ?"
_STATUSES = "SELECT id, app, status, due_at FROM notification WHERE id IN ({keys})"
_OF_APP = """\
SELECT id, app, status, due_at FROM notification INDEXED BY notification_id WHERE id < ? ORDER BY id DESC LIMIT ?
"""
_OF_USER = """\
SELECT id, app, status, due_at FROM notification INDEXED BY notification_history
WHERE app = ? AND user_id = ? AND id < ? ORDER BY id DESC LIMIT ?
"""
_DEAD = f"""\
SELECT {RECEIPT} FROM receipt INDEXED BY receipt_dead
WHERE app = ? AND dead = 1 AND (notification_id, n) < (?, ?)
ORDER BY notification_id DESC, n DESC LIMIT ?
"""  # noqa: S608 - a list of columns
_HELD = (
    "SELECT notification_id FROM outbox"
    " WHERE notification_id IN ({keys}) AND n = -1 AND done_at IS NULL AND holder IN (SELECT id FROM member)"
)
_BALANCE_END = "SELECT id FROM notification WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?"
_BALANCE = "SELECT app, status, count(*) FROM notification WHERE id > ? AND id <= ? GROUP BY app, status"


class SqlViews:
    """Reads in reader threads: they wait for nobody and nobody waits for them."""

    def __init__(self, database: Database, clock: Clock, *, leases_are_stored: bool = False) -> None:
        """Where *leases_are_stored*, what is leased reads ``processing`` before it is routed, too."""
        self._database = database
        self._clock = clock
        self._find_held = _held if leases_are_stored else None

    def _look(self) -> _Look:
        return _Look(self._clock.now(), self._find_held)

    async def story(self, app: AppId, notification_id: NotificationId) -> Story | None:
        """See Views."""
        look = self._look()
        return await self._database.read(lambda connection: _story(connection, app, notification_id, look))

    async def history(self, query: HistoryQuery) -> list[Record]:
        """See Views."""
        look = self._look()
        return await self._database.read(lambda connection: _history(connection, query, look))

    async def dead(self, query: DeadQuery) -> list[DeadLetter]:
        """See Views."""
        look = self._look()
        return await self._database.read(lambda connection: _dead(connection, query, look))

    async def balance(self, app: AppId | None = None) -> Mapping[NotificationStatus, int]:
        """See Views."""
        counts: Counter[NotificationStatus] = Counter()
        after, last = _FIRST_ID, False
        while not last:
            rows, after, last = await self._database.read(_balance_page(after))
            for of_app, status, count in rows:
                if app in (None, of_app):
                    counts[NotificationStatus(status)] += count
        return counts

    async def statuses(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, NotificationStatus]:
        """See Views."""
        look = self._look()
        return await self._database.read(
            lambda connection: {
                row[0]: status
                for row, status in look.statuses(connection, list(select_in(connection, _STATUSES, ids)))
                if row[1] == app
            }
        )


class _Look(Struct, frozen=True):
    """When a read was made, and how to find what is leased then."""

    now: Instant
    held: Callable[[Connection, Sequence[NotificationId]], set[NotificationId]] | None

    def statuses(self, connection: Connection, rows: Sequence[Row]) -> Iterator[tuple[Row, NotificationStatus]]:
        """How rows (id, app, status, due_at) read."""
        pending = NotificationStatus.PENDING
        held: set[NotificationId] = set()
        if self.held is not None:
            held = self.held(connection, [row[0] for row in rows if row[2] == pending and row[3] is not None])
        for row in rows:
            yield row, NotificationStatus.PROCESSING if row[0] in held else _status(row[2], row[3], self.now)


def _held(connection: Connection, ids: Sequence[NotificationId]) -> set[NotificationId]:
    return {row[0] for row in select_in(connection, _HELD, ids)}


def _story(connection: Connection, app: AppId, notification_id: NotificationId, look: _Look) -> Story | None:
    record = _records(connection, [notification_id], look).get(notification_id)
    if record is None:
        waiting = waiting_recipient(connection, app, notification_id)
        return None if waiting is None else Story(waiting)
    if record.notification.app != app:
        return None
    receipts = connection.execute(_RECEIPTS_OF, (notification_id,)).fetchall()
    duplicates = connection.execute(_DUPLICATES_OF, (notification_id, _DUPLICATES_SHOWN)).fetchall()
    return Story(record, tuple(map(receipt_of, receipts)), tuple(row[0] for row in duplicates))


def _history(connection: Connection, query: HistoryQuery, look: _Look) -> list[Record]:
    wanted = frozenset(query.statuses) or frozenset(NotificationStatus)
    chosen = (
        row[0]
        for page in _newest_first(connection, query)
        for row, status in look.statuses(connection, page)
        if row[1] == query.app and status in wanted
    )
    ids = list(islice(chosen, query.limit))
    found = _records(connection, ids, look)
    return [found[notification_id] for notification_id in ids]


def _newest_first(connection: Connection, query: HistoryQuery) -> Iterator[Sequence[Row]]:
    """Keys and statuses, a page at a time; pages of an app alone run over the other apps' rows too."""
    before: NotificationId = query.before or _LAST_ID
    while True:
        if query.user_id is None:
            page = connection.execute(_OF_APP, (before, _PAGE)).fetchall()
        else:
            page = connection.execute(_OF_USER, (query.app, query.user_id, before, _PAGE)).fetchall()
        yield page
        if len(page) < _PAGE:
            return
        before = page[-1][0]


def _dead(connection: Connection, query: DeadQuery, look: _Look) -> list[DeadLetter]:
    letters: list[DeadLetter] = []
    before = query.before or (_LAST_ID, 0)
    while len(letters) < query.limit:
        page = [receipt_of(row) for row in connection.execute(_DEAD, (query.app, *before, _PAGE)).fetchall()]
        chosen = [receipt for receipt in page if _is_asked_for(receipt, query)]
        records = _records(connection, list(dict.fromkeys(receipt.notification_id for receipt in chosen)), look)
        for receipt in chosen:
            record = records[receipt.notification_id]
            if query.user_id in (None, record.notification.user_id):
                letters.append(DeadLetter(record, receipt))
        if len(page) < _PAGE:
            break
        before = (page[-1].notification_id, page[-1].n)
    return letters[: query.limit]


def _is_asked_for(receipt: Receipt, query: DeadQuery) -> bool:
    young = query.since is None or (receipt.resolved_at or 0) >= query.since
    return young and query.code in (None, receipt.code)


def _balance_page(after: NotificationId) -> Callable[[Connection], tuple[list[Row], NotificationId, bool]]:
    """Counts of a page, where it ends, and whether it is the last."""

    def read(connection: Connection) -> tuple[list[Row], NotificationId, bool]:
        end = connection.execute(_BALANCE_END, (after, _BALANCE_PAGE - 1)).fetchone()
        until = _LAST_ID if end is None else end[0]
        return connection.execute(_BALANCE, (after, until)).fetchall(), until, end is None

    return read


def _records(connection: Connection, ids: Sequence[NotificationId], look: _Look) -> dict[NotificationId, Record]:
    rows = {row[0]: row for row in select_in(connection, _RECORDS, ids)}
    keys = [(one, row[1], *row[NOTIFICATION_WIDTH : NOTIFICATION_WIDTH + 2]) for one, row in rows.items()]
    statuses = {key[0]: status for key, status in look.statuses(connection, keys)}
    return {
        one: Record(notification_of(row), statuses[one], *row[NOTIFICATION_WIDTH + 2 :]) for one, row in rows.items()
    }


def _status(stored: str, due_at: Instant | None, now: Instant) -> NotificationStatus:
    """How a row reads: what is routed and open is being processed."""
    if stored != NotificationStatus.PENDING:
        return NotificationStatus(stored)
    if due_at is None:
        return NotificationStatus.PROCESSING
    return NotificationStatus.SCHEDULED if due_at > now else NotificationStatus.PENDING

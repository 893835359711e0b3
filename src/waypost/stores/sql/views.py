"""The reads on SQL, each by key or by pages of keys; none leaves a cursor open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, DeviceId, NotificationId
from waypost.domain.status import NotificationStatus
from waypost.ports.clock import Clock
from waypost.ports.views import (
    Addressed,
    DeadLetter,
    DeadQuery,
    HistoryQuery,
    Marked,
    NotificationDetail,
    NotificationRecord,
    Page,
    PageQuery,
)
from waypost.stores.sql.bulk_views import waiting_recipient
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.history import NEWEST_FIRST, SLICES
from waypost.stores.sql.pages import marks_on, read_page
from waypost.stores.sql.reading import Look, held, records
from waypost.stores.sql.rows import RECEIPT, receipt_of, select_in, status_of

_DUPLICATES_SHOWN = 100
_PAGE = 1_000
_BALANCE_PAGE = 20_000
_FIRST_ID = NotificationId(bytes(16))
_LAST_ID = NotificationId(b"\xff" * 16)

_RECEIPTS_OF = f"SELECT {RECEIPT} FROM receipt WHERE notification_id = ? ORDER BY n"  # noqa: S608 - a list of columns
_DUPLICATES_OF = "SELECT id FROM notification WHERE duplicate_of = ? ORDER BY seq LIMIT ?"
_STATUSES = "SELECT id, app, status, due_at FROM notification WHERE id IN ({keys})"
_USERS = "SELECT id, app, user_id FROM notification WHERE id IN ({keys})"
_NUMBERS = "SELECT notification_id, n, device_id FROM receipt WHERE notification_id IN ({keys}) ORDER BY n"
_OF_APP = """\
SELECT id, app, status, due_at FROM notification INDEXED BY notification_of_app
WHERE app = ? AND id < ? ORDER BY id DESC LIMIT ?
"""
_OF_USER = f"""\
SELECT id, app, status, due_at FROM {SLICES}
WHERE app = ?1 AND user_id = ?2 AND id < ?3 {NEWEST_FIRST} LIMIT ?4
"""  # noqa: S608 - how history is read
_DEAD = f"""\
SELECT {RECEIPT} FROM receipt INDEXED BY receipt_dead
WHERE app = ? AND dead = 1 AND (notification_id, n) < (?, ?)
ORDER BY notification_id DESC, n DESC LIMIT ?
"""  # noqa: S608 - a list of columns
_BALANCE_END = "SELECT id FROM notification WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?"
_BALANCE = "SELECT app, status, count(*) FROM notification WHERE id > ? AND id <= ? GROUP BY app, status"


class SqlViews:
    """The reads of the store, in reader threads: they wait for nobody and nobody waits for them."""

    def __init__(self, database: Database, clock: Clock, *, leases_are_stored: bool = False) -> None:
        """Create it; where *leases_are_stored*, what is leased reads ``processing`` before it is routed, too."""
        self._database = database
        self._clock = clock
        self._find_held = held if leases_are_stored else None

    def _look(self) -> Look:
        return Look(self._clock.now(), self._find_held)

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """See Views."""
        look = self._look()
        return await self._database.read(lambda connection: _story(connection, app, notification_id, look))

    async def history(self, query: HistoryQuery) -> list[NotificationRecord]:
        """See Views."""
        look = self._look()
        return await self._database.read(lambda connection: _history(connection, query, look))

    async def page(self, query: PageQuery) -> Page:
        """See Views."""
        look = self._look()
        return await self._database.read(lambda connection: read_page(connection, query, look))

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
                    counts[status_of(status)] += count
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

    async def addressed(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Addressed]:
        """See Views."""
        return await self._database.read(lambda connection: _addressed(connection, app, ids))


def _addressed(connection: Connection, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Addressed]:
    users = {row[0]: row[2] for row in select_in(connection, _USERS, ids) if row[1] == app}
    numbers: dict[NotificationId, dict[DeviceId, int]] = {one: {} for one in users}
    for notification_id, n, device_id in select_in(connection, _NUMBERS, list(users)):
        numbers[notification_id].setdefault(device_id, n)
    return {one: Addressed(user_id, numbers[one]) for one, user_id in users.items()}


def _story(
    connection: Connection, app: AppId, notification_id: NotificationId, look: Look
) -> NotificationDetail | None:
    record = records(connection, [notification_id], look).get(notification_id)
    if record is None:
        waiting = waiting_recipient(connection, app, notification_id)
        return None if waiting is None else NotificationDetail(waiting)
    if record.notification.app != app:
        return None
    receipts = connection.execute(_RECEIPTS_OF, (notification_id,)).fetchall()
    duplicates = connection.execute(_DUPLICATES_OF, (notification_id, _DUPLICATES_SHOWN)).fetchall()
    marked = marks_on(connection, [notification_id]).get(notification_id, Marked())
    return NotificationDetail(record, tuple(map(receipt_of, receipts)), tuple(row[0] for row in duplicates), marked)


def _history(connection: Connection, query: HistoryQuery, look: Look) -> list[NotificationRecord]:
    wanted = frozenset(query.statuses) or frozenset(NotificationStatus)
    chosen = (
        row[0]
        for page in _newest_first(connection, query)
        for row, status in look.statuses(connection, page)
        if status in wanted
    )
    ids = list(islice(chosen, query.limit))
    found = records(connection, ids, look)
    return [found[notification_id] for notification_id in ids]


def _newest_first(connection: Connection, query: HistoryQuery) -> Iterator[Sequence[Row]]:
    """Yield keys and statuses, a page at a time."""
    before: NotificationId = query.before or _LAST_ID
    while True:
        if query.user_id is None:
            page = connection.execute(_OF_APP, (query.app, before, _PAGE)).fetchall()
        else:
            page = connection.execute(_OF_USER, (query.app, query.user_id, before, _PAGE)).fetchall()
        yield page
        if len(page) < _PAGE:
            return
        before = page[-1][0]


def _dead(connection: Connection, query: DeadQuery, look: Look) -> list[DeadLetter]:
    letters: list[DeadLetter] = []
    before = query.before or (_LAST_ID, 0)
    size = query.limit if (query.code, query.user_id, query.since) == (None, None, None) else _PAGE
    while len(letters) < query.limit:
        page = [receipt_of(row) for row in connection.execute(_DEAD, (query.app, *before, size)).fetchall()]
        chosen = [receipt for receipt in page if _is_asked_for(receipt, query)]
        found = records(connection, list(dict.fromkeys(receipt.notification_id for receipt in chosen)), look)
        for receipt in chosen:
            record = found[receipt.notification_id]
            if query.user_id in (None, record.notification.user_id):
                letters.append(DeadLetter(record, receipt))
        if len(page) < size:
            break
        before = (page[-1].notification_id, page[-1].n)
    return letters[: query.limit]


def _is_asked_for(receipt: Receipt, query: DeadQuery) -> bool:
    young = query.since is None or (receipt.resolved_at or 0) >= query.since
    return young and query.code in (None, receipt.code)


def _balance_page(after: NotificationId) -> Callable[[Connection], tuple[list[Row], NotificationId, bool]]:
    """Build a read of the counts of a page, of where it ends, and of whether it is the last."""

    def read(connection: Connection) -> tuple[list[Row], NotificationId, bool]:
        end = connection.execute(_BALANCE_END, (after, _BALANCE_PAGE - 1)).fetchone()
        until = _LAST_ID if end is None else end[0]
        return connection.execute(_BALANCE, (after, until)).fetchall(), until, end is None

    return read

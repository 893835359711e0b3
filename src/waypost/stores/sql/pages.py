"""Pages of what one user sees as theirs, by number: the keys of all of it are walked, a thousand a statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waypost.domain.delivery import Receipt
from waypost.domain.ids import NotificationId
from waypost.domain.status import NotificationStatus
from waypost.ports.views import Marked, NotificationDetail, Page, PageQuery
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.history import NEWEST_FIRST, SLICES
from waypost.stores.sql.reading import Look, records
from waypost.stores.sql.rows import RECEIPT, receipt_of, select_in

_AT_ONCE = 1_000
_LAST_ID = NotificationId(b"\xff" * 16)

_SEEN = f"""\
SELECT id, notification.app, status, due_at FROM {SLICES}
LEFT JOIN feed_entry ON feed_entry.notification_id = notification.id
WHERE notification.app = ?1 AND notification.user_id = ?2 AND id < ?3 AND kind = 'visible' AND hidden_at IS NULL
{NEWEST_FIRST} LIMIT ?4
"""  # noqa: S608 - how history is read
_WAITING = """\
SELECT notification_id FROM receipt WHERE notification_id IN ({keys})
GROUP BY notification_id HAVING min(CASE WHEN status = 'pending' AND attempt > 0 THEN 1 ELSE 0 END) = 1
"""
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id IN ({{keys}})"  # noqa: S608 - a list of columns
_MARKS = "SELECT notification_id, read_at, hidden_at FROM feed_entry WHERE notification_id IN ({keys})"


def read_page(connection: Connection, query: PageQuery, look: Look) -> Page:
    """See Views.page."""
    ids: list[NotificationId] = []
    total = 0
    for each in _seen(connection, query, look):
        if query.offset <= total < query.offset + query.limit:
            ids.append(each)
        total += 1
    found, marked = records(connection, ids, look), marks_on(connection, ids)
    receipts: dict[NotificationId, list[Receipt]] = {}
    for receipt in sorted(map(receipt_of, select_in(connection, _RECEIPTS, ids)), key=lambda one: one.n):
        receipts.setdefault(receipt.notification_id, []).append(receipt)
    details = [
        NotificationDetail(found[each], tuple(receipts.get(each, ())), marked=marked.get(each, Marked()))
        for each in ids
        if each in found
    ]
    return Page(tuple(details), total)


def marks_on(connection: Connection, ids: Sequence[NotificationId]) -> dict[NotificationId, Marked]:
    """Read the marks on those of *ids* that have any."""
    return {row[0]: Marked(row[1], row[2]) for row in select_in(connection, _MARKS, ids)}


def _seen(connection: Connection, query: PageQuery, look: Look) -> Iterator[NotificationId]:
    """Yield the ids of all that the query asks for, newest first."""
    before = _LAST_ID
    while True:
        rows = connection.execute(_SEEN, (query.app, query.user_id, before, _AT_ONCE)).fetchall()
        read_as = [(row[0], status) for row, status in look.statuses(connection, rows) if status in query.statuses]
        yield from _of_types(connection, query, look, _as_waiting(connection, query, read_as))
        if len(rows) < _AT_ONCE:
            return
        before = rows[-1][0]


def _as_waiting(
    connection: Connection, query: PageQuery, read_as: Sequence[tuple[NotificationId, NotificationStatus]]
) -> list[NotificationId]:
    if query.waiting is None:
        return [each for each, _ in read_as]
    open_ones = [each for each, status in read_as if status is NotificationStatus.PROCESSING]
    waiting = {row[0] for row in select_in(connection, _WAITING, open_ones)}
    left_out = {each for each in open_ones if (each in waiting) is not query.waiting}
    return [each for each, _ in read_as if each not in left_out]


def _of_types(
    connection: Connection, query: PageQuery, look: Look, ids: Sequence[NotificationId]
) -> Sequence[NotificationId]:
    if not query.types:
        return ids
    found = records(connection, ids, look)
    return [each for each in ids if each in found and found[each].notification.content.type in query.types]

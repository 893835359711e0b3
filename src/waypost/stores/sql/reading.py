"""Notifications as they read now.

``scheduled`` and ``processing`` are never stored: pending with a due time ahead, pending without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.views import NotificationRecord
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import (
    NOTIFICATION,
    NOTIFICATION_WIDTH,
    WITH_CONTENT,
    notification_of,
    select_in,
    status_of,
)

_RECORDS = f"""\
SELECT {NOTIFICATION}, status, due_at, finished_at, reason, duplicate_of, round
FROM {WITH_CONTENT} WHERE notification.id IN ({{keys}})
"""  # noqa: S608 - a list of columns
_HELD = (
    "SELECT notification_id FROM claim"
    " WHERE notification_id IN ({keys}) AND n = -1 AND holder IN (SELECT id FROM member)"
)


class Look(Struct, frozen=True):
    """The moment of a read, and the way to find what is leased then."""

    now: Instant
    held: Callable[[Connection, Sequence[NotificationId]], set[NotificationId]] | None

    def statuses(self, connection: Connection, rows: Sequence[Row]) -> Iterator[tuple[Row, NotificationStatus]]:
        """Yield how rows (id, app, status, due_at) read."""
        pending = NotificationStatus.PENDING
        leased: set[NotificationId] = set()
        if self.held is not None:
            leased = self.held(connection, [row[0] for row in rows if row[2] == pending and row[3] is not None])
        for row in rows:
            yield row, NotificationStatus.PROCESSING if row[0] in leased else _status(row[2], row[3], self.now)


def held(connection: Connection, ids: Sequence[NotificationId]) -> set[NotificationId]:
    """Find those of *ids* that a worker has leased, where leases are stored."""
    return {row[0] for row in select_in(connection, _HELD, ids)}


def records(
    connection: Connection, ids: Sequence[NotificationId], look: Look
) -> dict[NotificationId, NotificationRecord]:
    """Read those of *ids* that there are."""
    rows = {row[0]: row for row in select_in(connection, _RECORDS, ids)}
    keys = [(one, row[1], *row[NOTIFICATION_WIDTH : NOTIFICATION_WIDTH + 2]) for one, row in rows.items()]
    statuses = {key[0]: status for key, status in look.statuses(connection, keys)}
    return {
        one: NotificationRecord(notification_of(row), statuses[one], *row[NOTIFICATION_WIDTH + 2 :])
        for one, row in rows.items()
    }


def _status(stored: str, due_at: Instant | None, now: Instant) -> NotificationStatus:
    """Return how a row reads: what is routed and open is being processed."""
    if stored != NotificationStatus.PENDING:
        return status_of(stored)
    if due_at is None:
        return NotificationStatus.PROCESSING
    return NotificationStatus.SCHEDULED if due_at > now else NotificationStatus.PENDING

"""What was read on one device and is still to be told to the user's others, on SQL: a row for each notification.

A row is written with the mark that it tells of (``SqlFeed.mark``), and goes once that was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.status import FINAL
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.reading import Look, records
from waypost.stores.sql.transaction import OperationKind, Transaction

TABLE: Final = AddedTable(
    "notification_reads",
    "CREATE TABLE IF NOT EXISTS notification_reads"
    " (app {text} NOT NULL, user_id {text} NOT NULL, notification_id {blob} NOT NULL, at {number} NOT NULL,"
    " device_id {text}, PRIMARY KEY (app, user_id, notification_id), UNIQUE (notification_id)){layout}",
    of_notification=True,
    is_to_be_told=True,
)
NOTE: Final = """\
INSERT INTO notification_reads (app, user_id, notification_id, at, device_id) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (notification_id) DO UPDATE SET at = excluded.at, device_id = excluded.device_id
"""
RECENT_LIMIT: Final = 50
"""The most notifications that a device is told to take away: with them a payload still fits everywhere."""
_USERS: Final = "SELECT app, user_id FROM notification_reads GROUP BY app, user_id ORDER BY min(at) LIMIT ?"
_OF_USER: Final = """\
SELECT told.notification_id, told.at, told.device_id,
CASE WHEN entry.read_at IS NULL AND entry.hidden_at IS NULL THEN 0 ELSE 1 END
FROM notification_reads AS told LEFT JOIN feed_entry AS entry ON entry.notification_id = told.notification_id
WHERE told.app = ? AND told.user_id = ?
"""
_RECENT: Final = """\
SELECT notification_id FROM feed_entry WHERE app = ? AND user_id = ? AND (read_at IS NOT NULL OR hidden_at IS NOT NULL)
ORDER BY coalesce(hidden_at, archived_at, read_at) DESC, notification_id DESC LIMIT ?
"""
_TOLD: Final = "DELETE FROM notification_reads WHERE notification_id = ? AND at = ?"


class Read(Struct, frozen=True):
    """A notification that was read, archived or deleted."""

    notification_id: NotificationId
    at: Instant
    device_id: DeviceId | None
    """The device where; None where nobody said."""


class UserReads(Struct, frozen=True):
    """All that is still to be told of one user."""

    app: AppId
    user_id: UserId
    reads: tuple[Read, ...]
    unsent: tuple[Notification, ...]
    """Those of them of which something may be unsent, and that were not marked as unread since."""
    recent: tuple[NotificationId, ...]
    """What the user has read last, the newest first: what is told, since a device hears the last message alone."""


class SqlNotificationReads:
    """The reads that are still to be told."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def pending(self, users: int) -> list[UserReads]:
        """Return what is to be told of at most so many users, those who wait longest first."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: _pending(connection, users, look))

    async def told(self, reads: Sequence[Read]) -> None:
        """Delete *reads*, but for those that were marked anew meanwhile."""
        await self._database.commits.submit(_TELLING, reads, rows=len(reads))


def _pending(connection: Connection, users: int, look: Look) -> list[UserReads]:
    found = connection.execute(_USERS, (users,)).fetchall()
    return [_of_user(connection, AppId(app), UserId(user), look) for app, user in found]


def _of_user(connection: Connection, app: AppId, user_id: UserId, look: Look) -> UserReads:
    rows = connection.execute(_OF_USER, (app, user_id)).fetchall()
    found = records(connection, [row[0] for row in rows if row[3]], look)
    unsent = [each.notification for each in found.values() if each.status not in FINAL]
    reads = [_read(*row[:3]) for row in rows]
    recent = connection.execute(_RECENT, (app, user_id, RECENT_LIMIT)).fetchall()
    return UserReads(app, user_id, tuple(reads), tuple(unsent), tuple([NotificationId(one) for (one,) in recent]))


def _read(notification_id: bytes, at: int, device_id: str | None) -> Read:
    return Read(NotificationId(notification_id), Instant(at), None if device_id is None else DeviceId(device_id))


def _tell(transaction: Transaction, batches: Sequence[Sequence[Read]]) -> list[None]:
    for reads in batches:
        transaction.connection.executemany(_TOLD, [(each.notification_id, each.at) for each in reads])
    return [None] * len(batches)


_TELLING: Final = OperationKind("tell_reads", _tell, durable=False)

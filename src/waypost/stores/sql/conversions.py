"""Who of a campaign did what it is for: events of users, beside the notifications that told them.

user_event     by name and day
notification   of the job's recipients, by user
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.bulk import JobId
from waypost.domain.ids import AppId, NotificationId, UserId, created_at, first_id_at
from waypost.domain.status import NotificationStatus
from waypost.domain.time import later
from waypost.domain.tracked import day_of
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import status_of

_CONVERTED: Final = """\
SELECT DISTINCT user_event.user_id, notification.status FROM user_event JOIN notification
ON notification.app = user_event.app AND notification.user_id = user_event.user_id
AND notification.id >= ? AND notification.id < ? AND notification.job = ?
WHERE user_event.app = ? AND user_event.name = ? AND user_event.day >= ?
AND user_event.last_at >= notification.created_at
"""
_NUMBER: Final = "SELECT number FROM bulk_job WHERE id = ? AND app = ?"


class SqlConversions:
    """The reads of what users did after a bulk job told them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, app: AppId, job: JobId, event: str) -> list[tuple[UserId, NotificationStatus]]:
        """List the recipients of a job who had an event since it was made, with their notification's status."""
        return await self._database.read(lambda connection: _of(connection, app, job, event))


def _of(connection: Connection, app: AppId, job: JobId, event: str) -> list[tuple[UserId, NotificationStatus]]:
    number = connection.execute(_NUMBER, (job, app)).fetchone()
    if number is None:
        return []
    at = created_at(NotificationId(job))
    bound: Sequence[object] = (first_id_at(at), first_id_at(later(at, 1)), number[0], app, event, day_of(at))
    return [(UserId(user), status_of(status)) for user, status in connection.execute(_CONVERTED, bound).fetchall()]

"""The marks of readers on their notifications, on SQL: one row each, in a table apart.

So a mark locks and rewrites no row of ``notification``, and in the log stack it may come before that row.
"""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant
from waypost.stores.sql.database import Database
from waypost.stores.sql.transaction import OperationKind, Transaction

_READ = """\
INSERT INTO mark (notification_id, read_at) VALUES (?, ?)
ON CONFLICT (notification_id) DO UPDATE SET read_at = coalesce(mark.read_at, excluded.read_at)
"""
_UNREAD = "UPDATE mark SET read_at = NULL WHERE notification_id = ?"
_HIDE = """\
INSERT INTO mark (notification_id, hidden_at) VALUES (?, ?)
ON CONFLICT (notification_id) DO UPDATE SET hidden_at = coalesce(mark.hidden_at, excluded.hidden_at)
"""


class SqlMarks:
    """See ports.marks.Marks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, notification_id: NotificationId, at: Instant) -> None:
        """See Marks."""
        await self._database.commits.submit(_READING, (notification_id, at))

    async def unread(self, notification_id: NotificationId) -> None:
        """See Marks."""
        await self._database.commits.submit(_UNREADING, (notification_id,))

    async def hide(self, notification_id: NotificationId, at: Instant) -> None:
        """See Marks."""
        await self._database.commits.submit(_HIDING, (notification_id, at))


def _kind(name: str, statement: str) -> OperationKind[tuple[NotificationId] | tuple[NotificationId, Instant], None]:
    def run(
        transaction: Transaction, marks: Sequence[tuple[NotificationId] | tuple[NotificationId, Instant]]
    ) -> list[None]:
        for mark in marks:
            transaction.connection.execute(statement, mark)
        return [None] * len(marks)

    return OperationKind(name, run, durable=True)


_READING = _kind("mark_read", _READ)
_UNREADING = _kind("mark_unread", _UNREAD)
_HIDING = _kind("mark_hidden", _HIDE)

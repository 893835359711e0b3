"""The marks of readers on their notifications, in memory."""

from __future__ import annotations

import msgspec

from tests.memory.store import MemoryStore
from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant
from waypost.ports.views import Marked


class MemoryMarks:
    """See ports.marks.Marks."""

    def __init__(self, store: MemoryStore) -> None:
        self._marks = store.marks

    async def read(self, notification_id: NotificationId, at: Instant) -> None:
        """See Marks."""
        marked = self._marks.get(notification_id, Marked())
        if marked.read_at is None:
            self._marks[notification_id] = msgspec.structs.replace(marked, read_at=at)

    async def unread(self, notification_id: NotificationId) -> None:
        """See Marks."""
        if notification_id in self._marks:
            self._marks[notification_id] = msgspec.structs.replace(self._marks[notification_id], read_at=None)

    async def hide(self, notification_id: NotificationId, at: Instant) -> None:
        """See Marks."""
        marked = self._marks.get(notification_id, Marked())
        if marked.hidden_at is None:
            self._marks[notification_id] = msgspec.structs.replace(marked, hidden_at=at)

"""The marks of readers on their notifications."""

from __future__ import annotations

from typing import Protocol

from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant


class Marks(Protocol):
    """The marks of readers on notifications; the caller checks whose they are. ``Views.detail`` and ``page`` show them.

    They leave with their notification.
    """

    async def read(self, notification_id: NotificationId, at: Instant) -> None:
        """Mark a notification as read at that time, unless it was read before."""
        ...

    async def unread(self, notification_id: NotificationId) -> None:
        """Mark a notification as not read."""
        ...

    async def hide(self, notification_id: NotificationId, at: Instant) -> None:
        """Hide a notification from its reader."""
        ...

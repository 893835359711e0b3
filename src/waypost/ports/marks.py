"""What readers did with their notifications."""

from __future__ import annotations

from typing import Protocol

from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant


class Marks(Protocol):
    """Marks on notifications; whose they are is for the caller to know. ``Views.detail`` and ``page`` show them.

    They leave with their notification.
    """

    async def read(self, notification_id: NotificationId, at: Instant) -> None:
        """It was read at that time, unless it was before."""
        ...

    async def unread(self, notification_id: NotificationId) -> None:
        """It counts as not read."""
        ...

    async def hide(self, notification_id: NotificationId, at: Instant) -> None:
        """Its reader wants to see it no more."""
        ...

"""The events that devices reported, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.device_event import DeviceEvent
from waypost.domain.ids import NotificationId


class MemoryDeviceEvents:
    """See stores.sql.device_events."""

    def __init__(self) -> None:
        self._events: dict[tuple[NotificationId, int, str, str], DeviceEvent] = {}

    async def add(self, events: Sequence[DeviceEvent]) -> None:
        """Record *events*; what is known already stays as it is."""
        for each in events:
            self._events.setdefault((each.notification_id, each.n, each.kind, each.action), each)

    async def of(self, notification_id: NotificationId) -> list[DeviceEvent]:
        """Return what devices reported of a notification, oldest first."""
        found = [each for each in self._events.values() if each.notification_id == notification_id]
        return sorted(found, key=lambda each: (each.at, each.n, each.kind, each.action))

"""Parts with a status that only a newer version knows: found due or waiting, and left to workers of that version."""

from __future__ import annotations

from collections.abc import Iterable

from waypost.domain.ids import NotificationId, format_id
from waypost.stores.sql.database import Database
from waypost.telemetry.events import Event

Part = tuple[NotificationId, int | None]
"""A target by its number, or with None the notification whole."""


class LeftAlone:
    """The parts that one process has met and leaves alone; each is told once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._parts: set[Part] = set()

    def __contains__(self, part: Part) -> bool:
        """Tell whether it is one of them."""
        return part in self._parts

    def add(self, parts: Iterable[Part]) -> None:
        """Add what was met."""
        for notification_id, n in parts:
            if (notification_id, n) not in self._parts:
                self._parts.add((notification_id, n))
                named = format_id(notification_id)
                self._database.telemetry.event(Event.NOTIFICATION_NEWER, notification_id=named, n=n)

    def clear(self) -> None:
        """Look at all of them again: a newer version may have been at work."""
        self._parts.clear()

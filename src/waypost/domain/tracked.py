"""Tracked events: what users did, counted for each user by day; some are of notifications, others the app's own."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.time import DAY_MS, MINUTE_MS, Instant
from waypost.domain.words import Words

SLOT_MS: Final = 15 * MINUTE_MS
"""Milliseconds that are counted together: in every time zone, hours and days begin with a quarter of an hour."""


class NotificationEvent(Words):
    """An event of a notification; each is counted once for a notification, and once for each of its deliveries."""

    SENT = "sent"
    """A provider took it, or it came into the feed."""
    DELIVERED = "delivered"
    """It came to the device."""
    READ = "read"
    """The user opened it, in the feed or by tapping it."""
    OPENED = "opened"
    """The user tapped it."""
    ACTION_TAKEN = "action_taken"
    """The user pressed one of its buttons."""


OWN_NAMES: Final = frozenset(each.value for each in NotificationEvent)
"""The names that the app's own events cannot have."""


class TrackedEvent(Struct, frozen=True):
    """An event of one user."""

    app: AppId
    user_id: UserId
    name: str
    at: Instant
    notification_id: NotificationId | None = None
    """The notification, of an event of one."""
    key: bytes | None = None
    """The hash of the caller's id of the event, under which it counts once; None counts always."""


def day_of(at: Instant) -> int:
    """Return the day of *at*: days since 1970, in UTC."""
    return at // DAY_MS

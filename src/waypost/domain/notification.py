"""A notification: one thing to tell one recipient."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.time import Instant
from waypost.domain.words import Words


class Lane(Words):
    """A class of work; lanes do not wait for each other."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BULK = "bulk"
    SILENT = "silent"


class Guarantee(Words):
    """A delivery guarantee: what a crash between sending and recording may cause, a repeat or an unknown outcome."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class Notification(Struct, frozen=True):
    """One thing to tell one recipient, as accepted."""

    id: NotificationId
    app: AppId
    caller: CallerId
    user_id: UserId
    content: Content
    created_at: Instant
    expires_at: Instant
    """The time of expiry: the later of creation and ``scheduled_at``, plus the TTL."""
    ttl_ms: int
    """Validity at first, milliseconds; 0 is one attempt now, with a provider TTL of 0."""
    lane: Lane
    kind: Kind = Kind.VISIBLE
    urgency: Urgency = Urgency.NORMAL
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    device_ids: tuple[DeviceId, ...] = ()
    """The only devices of the user that get it; empty is all."""
    scheduled_at: Instant | None = None
    retry_policy: str | None = None
    """The retry policy that the caller named; None is the app's for this urgency."""


def lane_of(kind: Kind, urgency: Urgency) -> Lane:
    """Choose the lane of a single notification (bulk jobs choose theirs)."""
    return Lane.SILENT if kind is Kind.SILENT else _LANE_OF[urgency]


_LANE_OF = {urgency: Lane(urgency.value) for urgency in Urgency}

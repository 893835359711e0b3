"""A message: what is said to one target, as a sender turns it into its provider's words."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.domain.time import Instant


class Message(Struct, frozen=True):
    """What is said to one target; targets that are told the same share one message."""

    id: NotificationId
    """The notification's, by which an app recognizes it."""
    content: Content
    kind: Kind
    urgency: Urgency
    created_at: Instant
    expires_at: Instant
    ttl_ms: int
    """0 is one attempt now, with a provider TTL of 0."""

    def remaining_ttl_s(self, now: Instant) -> int:
        """Whole seconds of validity left, what each attempt tells the provider; never negative."""
        return max(0, (self.expires_at - now) // 1000)


def message_of(notification: Notification) -> Message:
    """Say what *notification* says: once for all of its targets, since nothing of it depends on an address yet."""
    return Message(
        notification.id,
        notification.content,
        notification.kind,
        notification.urgency,
        notification.created_at,
        notification.expires_at,
        notification.ttl_ms,
    )

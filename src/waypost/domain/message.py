"""A message: the content for one target, which a sender turns into its provider's words."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.notification import Notification
from waypost.domain.time import Instant


class Message(Struct, frozen=True):
    """The content for one target, without its recipient: targets that are told the same have equal messages."""

    created_at: Instant
    expires_at: Instant
    ttl_ms: int
    """Validity at first, milliseconds; 0 is one attempt now, with a provider TTL of 0."""
    kind: Kind
    urgency: Urgency
    content: Content
    override: dict[str, Any] = {}
    """The fields for this target's channel alone, in the words of its provider."""
    unsubscribe: str | None = None
    """The address at which one click unsubscribes the reader of an e-mail."""

    def remaining_ttl_s(self, now: Instant) -> int:
        """Return the whole seconds of validity left, as each attempt tells the provider; never negative."""
        return max(0, (self.expires_at - now) // 1000)


def message_of(notification: Notification) -> Message:
    """Build the message that *notification* has for all of its targets."""
    return Message(
        notification.created_at,
        notification.expires_at,
        notification.ttl_ms,
        notification.kind,
        notification.urgency,
        notification.content,
    )


def rendered_for(message: Message, channel: Channel) -> Message:
    """Turn the message for all targets into the one for a target that *channel* reaches."""
    override = message.content.overrides.get(channel)
    return message if override is None else replace(message, override=override)

"""The topics that the outbox is published to, for others to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.notification import Lane

DELAYED: Final = "delayed"
"""The topic, beside those of channels, of what waits for its time."""


class Entry(Struct, frozen=True):
    """An entry of a topic."""

    app: AppId
    user_id: UserId
    """The user whose it is: a broker whose order is that of keys keeps theirs."""
    body: bytes


class Publisher(Protocol):
    """A topic with its lanes; the entries of one user are read in their order."""

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """Append *entries*; Unavailable: nobody knows whether that was done. Repeated, they are read twice."""
        ...


class ChannelEntry(Struct, frozen=True):
    """An entry of a channel's topic."""

    notification_id: NotificationId
    """The notification that it is about, which is the key where the broker has keys."""
    body: bytes


def channel_topic(channel: str) -> str:
    """Name the topic of a channel, or of DELAYED."""
    return f"{channel}_notification"


class ChannelPublisher(Protocol):
    """A topic for each channel, and one of DELAYED; the entries of one notification are read in their order."""

    async def publish(self, channel: str, entries: Sequence[ChannelEntry]) -> None:
        """Append *entries*; Unavailable: nobody knows whether that was done. Repeated, they are read twice."""
        ...

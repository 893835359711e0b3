"""The topics that entries of the outbox go to: by lane, or by channel as others name them.

By channel, what waits for its time is told in a topic of its own, and goes to that of its channel when it is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from waypost.domain.channel import PUSH, Channel
from waypost.domain.content import Content
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.time import isoformat
from waypost.ports.broker import DELAYED, ChannelEntry, ChannelPublisher, Entry, Publisher, channel_topic
from waypost.stores.sql.outbox.entries import WHOLE
from waypost.stores.sql.outbox.relay import Claimed

_FORMAT = b"\x01"


class Topics(Protocol):
    """The topics that what was claimed is published to."""

    @property
    def by_channel(self) -> bool:
        """Whether entries must say which channels they are for, and there are some of what waits."""
        ...

    async def publish(self, claimed: Sequence[Claimed]) -> None:
        """Publish once for each topic; Unavailable where a broker did not take it."""
        ...


def said_of(notification_id: NotificationId) -> bytes:
    """Build what is published by lane: a format number, and which notification it is."""
    return _FORMAT + notification_id


class LaneTopics(Struct, frozen=True):
    """The topics by what is published there and its lane; one may be both."""

    notifications: Publisher
    """The publisher of what is to be routed: notifications whole."""
    deliveries: Publisher
    """The publisher of what is to be sent: targets."""
    by_channel: bool = False

    async def publish(self, claimed: Sequence[Claimed]) -> None:
        """See Topics."""
        lanes: dict[tuple[Publisher, Lane], dict[NotificationId, Entry]] = {}
        for each in (each for each in claimed if each.due_at is None):
            entry = Entry(each.app, each.user_id, said_of(each.notification_id))
            topic = self.notifications if each.n == WHOLE else self.deliveries
            lanes.setdefault((topic, each.lane), {})[each.notification_id] = entry
        for (topic, lane), entries in lanes.items():
            await topic.publish(lane, list(entries.values()))


class ChannelTopics(Struct, frozen=True):
    """A topic for each family of channels: one entry for each that a notification is sent by at first, or again by.

    What waits has as many in the one topic DELAYED.
    """

    publisher: ChannelPublisher
    families: Mapping[Channel, str]
    by_channel: bool = True

    async def publish(self, claimed: Sequence[Claimed]) -> None:
        """See Topics."""
        topics: dict[str, list[ChannelEntry]] = {}
        for each in claimed:
            for family in _families_of(each, self.families):
                topic = family if each.due_at is None else DELAYED
                topics.setdefault(topic, []).append(ChannelEntry(each.notification_id, _said(each, family)))
        for topic, entries in topics.items():
            await self.publisher.publish(topic, entries)


def topics_of(claimed: Claimed, families: Mapping[Channel, str]) -> tuple[str, ...]:
    """Name the topics by channel that an entry goes to, or the one of what waits."""
    named = [DELAYED] if claimed.due_at is not None else _families_of(claimed, families)
    return tuple(map(channel_topic, named))


def _families_of(claimed: Claimed, families: Mapping[Channel, str]) -> list[str]:
    """List the families of channels that an entry is for, of *families* by channel."""
    named = (claimed.channel or PUSH,) if claimed.content is None else _first_of(claimed.content)
    return list(dict.fromkeys(families.get(Channel(name), name) for name in named))


class _ChannelSaid(Struct, frozen=True):
    """The entry of a channel's topic, as JSON."""

    notification_id: str
    channel: str
    app: str
    kind: str
    lane: str
    target: int | None
    """The number of the target; None is the whole notification, before its targets are known."""
    retry_count: int
    """How many retries were made of the target; this one is counted."""
    due_at: str | None
    """The time until which it waits; None where it may be sent now."""


def _said(claimed: Claimed, family: str) -> bytes:
    target = None if claimed.n == WHOLE else claimed.n
    named = format_id(claimed.notification_id)
    due_at = None if claimed.due_at is None else isoformat(claimed.due_at)
    return _encode(
        _ChannelSaid(named, family, claimed.app, claimed.kind, claimed.lane, target, claimed.retries, due_at)
    )


def _first_of(content: Content) -> tuple[str, ...]:
    """Return the channels that a notification is sent by at first: up to the step that others wait for."""
    if content.to is not None:
        return (content.to.channel,)
    steps = content.channels
    last = next((n for n, step in enumerate(steps) if step.until is not None), len(steps))
    return tuple(step.to for step in steps[: last + 1]) or (PUSH,)


_encode: Final = msgspec.json.Encoder().encode

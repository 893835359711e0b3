"""A topic on Kafka, for others to read.

<prefix>work.critical … work.silent                     one a lane, keyed by ``app/user``: so a user's entries have
<prefix>delivery.push.critical … delivery.push.silent   one order; for both kinds of work, where they are apart
<prefix>push_notification, email_notification …         one a channel in their place, keyed by the notification's id
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from waypost.domain.errors import Unavailable
from waypost.domain.ids import format_id
from waypost.domain.notification import Lane
from waypost.ports.broker import ChannelEntry, Entry, channel_topic
from waypost.stores.kafka.messages import key_of
from waypost.stores.kafka.producer import Acknowledging, Outgoing
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import cluster, names_of, provide
from waypost.telemetry import Event, Telemetry

KINDS: Final = tuple(f"{topic}.{lane}" for topic in ("work", "delivery.push") for lane in Lane)
_TRY_AGAIN_S = 1.0


def carrying(settings: KafkaSettings, topic: str) -> dict[str, Lane]:
    """Return the lanes of *topic* by name; ConfigurationError where others are named."""
    names = names_of(settings, KINDS)
    return {names[f"{topic}.{lane}"]: lane for lane in Lane}


def describe(settings: KafkaSettings, names: Sequence[str]) -> str:
    """Make the topics that are missing, and describe the cluster, and how safe they are; Unavailable."""
    copies = provide(settings, names)
    said = "1 copy: what was published is lost with its broker" if copies == 1 else f"{copies} copies"
    return f"{cluster(settings)}, {len(names)} topics, {said}"


class _Topics:
    """Topics that are made where they are missing, and appended to. Everything runs on the event loop."""

    def __init__(self, settings: KafkaSettings, telemetry: Telemetry, names: Sequence[str]) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._names = names
        self._producer = Acknowledging(settings)
        self._preparing: asyncio.Task[None] | None = None
        self._is_prepared = False

    def start(self) -> None:
        """See that there are topics, now or when the cluster is there."""
        self._preparing = asyncio.create_task(self._prepare())

    async def stop(self) -> None:
        """Stop preparing and publishing."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)
        await self._producer.stop()

    async def append(self, messages: Sequence[Outgoing]) -> None:
        """Append to topics; Unavailable."""
        if not self._is_prepared:
            raise Unavailable("there are no topics yet")
        await self._producer.produce(messages)

    async def _prepare(self) -> None:
        """Prepare the topics; tell of an outage once when it begins and once when it ends."""
        was_away = False
        while not self._is_prepared:
            try:
                await asyncio.to_thread(provide, self._settings, self._names)
                self._is_prepared = True
            except Unavailable as away:
                if not was_away:
                    self._telemetry.event(Event.KAFKA_AWAY, why=str(away))
                was_away = True
                await asyncio.sleep(_TRY_AGAIN_S)
        if was_away:
            self._telemetry.event(Event.KAFKA_BACK)


P = TypeVar("P", bound=_Topics)


class KafkaPublisher(_Topics):
    """The publisher on Kafka: see Publisher."""

    def __init__(self, settings: KafkaSettings, telemetry: Telemetry, topic: str) -> None:
        lanes = carrying(settings, topic)
        super().__init__(settings, telemetry, list(lanes))
        self._by_lane = {lane: name for name, lane in lanes.items()}

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """See Publisher."""
        topic = self._by_lane[lane]
        await self.append([Outgoing(topic, key_of(each.app, each.user_id), each.body) for each in entries])


class KafkaChannelPublisher(_Topics):
    """The publisher of channels on Kafka: see ChannelPublisher."""

    def __init__(self, settings: KafkaSettings, telemetry: Telemetry, channels: Sequence[str]) -> None:
        super().__init__(settings, telemetry, channel_topics(settings, channels))

    async def publish(self, channel: str, entries: Sequence[ChannelEntry]) -> None:
        """See ChannelPublisher."""
        (topic,) = channel_topics(self._settings, [channel])
        await self.append([Outgoing(topic, format_id(each.notification_id).encode(), each.body) for each in entries])


def channel_topics(settings: KafkaSettings, channels: Sequence[str]) -> list[str]:
    """Name the topics of *channels*."""
    return [f"{settings.prefix}{channel_topic(channel)}" for channel in channels]


@asynccontextmanager
async def opened(publisher: P) -> AsyncIterator[P]:
    """Let *publisher* publish; a cluster that is away is looked for in the background."""
    publisher.start()
    try:
        yield publisher
    finally:
        await publisher.stop()

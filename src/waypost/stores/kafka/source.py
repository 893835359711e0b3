"""A topic that other programs write, read by a consumer group.

What is acknowledged is committed up to the lowest offset that is not, about once a second, when a partition goes to
another member, and before the group is left. A dead letter has the key, value and headers of its message, and besides
the headers

    waypost-code  waypost-why  waypost-message (topic/partition/offset)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException

from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.ports.source import OWN_KEY, PAYLOAD, TRACE, Foreign, ReadingLag, RefusedMessage
from waypost.stores.kafka.consumer import GroupConsumer
from waypost.stores.kafka.partitions import Committed, IncomingMessage, PartitionRef
from waypost.stores.kafka.producer import Acknowledging, Outgoing
from waypost.stores.kafka.progress import PartitionProgress
from waypost.stores.kafka.settings import KafkaSourceSettings
from waypost.stores.kafka.topics import describe_topic, provide_one

READ_AHEAD: Final = 5_000
"""The messages received and not asked for from which no more are received, until half are gone."""
WAIT_S: Final = 0.5
_BESIDE: Final = {name.decode(): name for name in (OWN_KEY, TRACE)}
"""Headers that are fields of what is handed out."""


class KafkaSource:
    """A source on Kafka: see Source; everything runs on the event loop."""

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self.stream = settings.topic
        self._settings = settings
        self._consumer: GroupConsumer | None = None
        self._producer: Acknowledging | None = None
        self._parts: dict[int, PartitionProgress] = {}
        self._shelf: deque[IncomingMessage] = deque()
        self._in_hand: dict[str, IncomingMessage] = {}
        self._came = asyncio.Event()
        self._why = "no broker answers"

    async def look(self) -> str:
        """See Source."""
        return await asyncio.to_thread(describe_topic, self._settings, self.stream)

    async def start(self) -> None:
        """See Source."""
        try:
            self._consumer = GroupConsumer(self._settings, [self.stream], self, lambda: False, commits=True, heads=True)
        except KafkaException as refused:
            why = f"librdkafka refuses what is set for the topic {self.stream}: {refused.args[0].name()}"
            raise ConfigurationError("sources", why) from None
        self._consumer.start()

    async def stop(self) -> None:
        """See Source."""
        if self._consumer is not None:
            await self._consumer.stop()
        if self._producer is not None:
            await self._producer.stop()

    async def read(self, n: int) -> list[Foreign]:
        """See Source: of what was received meanwhile."""
        if self._consumer is None:
            await self.start()
        if not self._shelf:
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    await self._came.wait()
        taken = [self._shelf.popleft() for _ in range(min(n, len(self._shelf)))]
        self._regulate()
        if not taken and (self._consumer is None or not self._consumer.is_connected):
            raise Unavailable(f"Kafka is away: {self._why}")
        return [self._hand_out(each) for each in taken]

    async def ack(self, messages: Sequence[Foreign]) -> None:
        """See Source: partitions that have moved on are their new owners' to commit."""
        done: dict[int, PartitionProgress] = {}
        for each in messages:
            incoming = self._in_hand.pop(each.place, None)
            if incoming is not None:
                part = done[incoming.place.partition] = self._parts[incoming.place.partition]
                part.settle(incoming.offset)
        if self._consumer is not None and done:
            self._consumer.done({PartitionRef(self.stream, number): part.watermark for number, part in done.items()})

    async def bury(self, refused: Sequence[RefusedMessage]) -> None:
        """See Source: what dies in between is buried twice."""
        letters = [
            self._letter(incoming, each) for each in refused if (incoming := self._in_hand.get(each.message.place))
        ]
        if letters:
            if self._producer is None:
                await asyncio.to_thread(provide_one, self._settings, self._settings.dead_letters_topic)
                self._producer = Acknowledging(self._settings)
            await self._producer.produce(letters)
        await self.ack([each.message for each in refused])

    async def behind(self) -> ReadingLag:
        """See Source: of the partitions that are ours."""
        lags = self._consumer.lags if self._consumer is not None else {}
        waiting = sum(lag for place, lag in lags.items() if place.partition in self._parts)
        return ReadingLag(waiting, len(self._shelf) + len(self._in_hand))

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """See Owner."""
        for each in partitions:
            self._parts[each.place.partition] = PartitionProgress(each.offset, None)

    async def revoked(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""
        self.lost(places)

    def lost(self, places: Sequence[PartitionRef]) -> None:
        """See Owner: what of them is not acknowledged is read by their next owner."""
        gone = {each.partition for each in places}
        for number in gone:
            self._parts.pop(number, None)
        self._shelf = deque(each for each in self._shelf if each.place.partition not in gone)
        self._in_hand = {place: each for place, each in self._in_hand.items() if each.place.partition not in gone}

    def received(self, batch: Sequence[IncomingMessage]) -> None:
        """See Owner."""
        for incoming in batch:
            part = self._parts.get(incoming.place.partition)
            if part is None:
                continue
            if incoming.value is None:
                part.reach(incoming.offset)
            elif part.receive(incoming.offset):
                self._shelf.append(incoming)
        if self._shelf:
            self._came.set()
        self._regulate()

    def failed(self, error: Exception) -> None:
        """See Owner: whoever reads next joins again."""
        self._consumer = None
        self._why = str(error)
        self.lost([PartitionRef(self.stream, number) for number in self._parts])

    def _hand_out(self, incoming: IncomingMessage) -> Foreign:
        """Hand out a message; its time is part of its place, since a topic made anew counts offsets from 0 again."""
        place = f"{incoming.place.partition}:{incoming.offset}:{incoming.at_ms}"
        self._in_hand[place] = incoming
        fields = {PAYLOAD: incoming.value or b""}
        for name, text in incoming.headers:
            if name in _BESIDE:
                fields[_BESIDE[name]] = text
        return Foreign(place, fields)

    def _letter(self, incoming: IncomingMessage, refused: RefusedMessage) -> Outgoing:
        message = f"{self.stream}/{incoming.place.partition}/{incoming.offset}"
        why = (("waypost-code", refused.code), ("waypost-why", refused.why), ("waypost-message", message))
        headers = (*incoming.headers, *((name, text.encode()) for name, text in why))
        return Outgoing(self._settings.dead_letters_topic, incoming.key, incoming.value or b"", headers=headers)

    def _regulate(self) -> None:
        """Receive nothing more while there is enough."""
        if self._consumer is None:
            return
        if len(self._shelf) >= READ_AHEAD:
            self._consumer.hold()
        elif len(self._shelf) < READ_AHEAD // 2:
            self._consumer.go_on()

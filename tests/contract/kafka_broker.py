"""The broker on Kafka under test: what was published is received a moment later, by whom the group chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.contract.log import PARTITIONS, ends_of, settings_of
from waypost.adapters.kafka.broker import KafkaBroker, carrying
from waypost.adapters.kafka.consumer import Place
from waypost.domain.notification import Lane
from waypost.ports.broker import Broker
from waypost.telemetry import Silent

_LOOK_S = 0.01
_ANSWER_S = 60.0


class KafkaBrokerUnderTest:
    """Topics and a group of their own on a server."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.settings = settings_of(bootstrap, prefix, f"{prefix}group")
        self._admin = AdminClient(self.settings.client())
        self._readers: list[KafkaBroker] = []
        self._places = [Place(name, number) for name in carrying(self.settings, "work") for number in range(PARTITIONS)]

    async def reader(self) -> KafkaBroker:
        """See BrokerUnderTest: a member of the group, when it has settled."""
        broker = KafkaBroker(self.settings, Silent(), "work")
        broker.start()
        assert broker._preparing is not None
        await broker._preparing
        self._readers.append(broker)
        await broker.read(Lane.HIGH, 0)
        await self.arrived()
        return broker

    async def arrived(self) -> None:
        """Wait until each partition has one reader, and that has received all of it."""
        ends = await ends_of(self._admin, self._places)
        async with asyncio.timeout(_ANSWER_S):
            while not all(self._has_received(place, end) for place, end in ends.items()):  # noqa: ASYNC110 - no hook in the product
                await asyncio.sleep(_LOOK_S)

    async def give_up(self, reader: Broker) -> None:
        """It leaves the group; that spares the session time-out."""
        assert isinstance(reader, KafkaBroker)
        self._readers.remove(reader)
        await reader.stop()
        await self.arrived() if self._readers else None

    async def stored(self) -> int:
        """What is not committed when everybody has left."""
        while self._readers:
            await self._readers.pop().stop()
        at = [TopicPartition(place.topic, place.partition) for place in self._places]
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.settings.group, at)])
        found = await asyncio.wrap_future(asked[self.settings.group])
        committed = {Place(each.topic, each.partition): max(0, each.offset) for each in found.topic_partitions or ()}
        return sum(end - committed[place] for place, end in (await ends_of(self._admin, self._places)).items())

    def _has_received(self, place: Place, end: int) -> bool:
        parts = [part for reader in self._readers if (part := reader._parts.get(place)) is not None]
        return len(parts) == 1 and parts[0].position >= end


@asynccontextmanager
async def kafka_broker_under_test(bootstrap: str, prefix: str) -> AsyncIterator[KafkaBrokerUnderTest]:
    """With nothing in it."""
    under_test = KafkaBrokerUnderTest(bootstrap, prefix)
    yield under_test
    await under_test.stored()

"""A member that stops leaves its group at once, whatever is just on its way to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.contract.log import settings_of
from tests.journeys.harness import until
from waypost.stores.kafka.consumer import GroupConsumer
from waypost.stores.kafka.partitions import Committed, IncomingMessage, PartitionRef
from waypost.stores.kafka.topics import TopicNames, prepare


class Nobody:
    """An owner that does nothing with what is its own."""

    def __init__(self) -> None:
        self.had: list[Committed] = []

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """See Owner."""
        self.had += partitions

    async def revoked(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""

    def lost(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""

    def received(self, batch: Sequence[IncomingMessage]) -> None:
        """See Owner."""

    def failed(self, error: Exception) -> None:
        """See Owner."""
        raise AssertionError(error)


@pytest.mark.asyncio
async def test_a_member_that_stops_while_its_partitions_come_asks_for_nothing(
    kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """Who asks for offsets while it leaves may not be answered for 30 s, after which its thread fails."""
    settings = settings_of(kafka_bootstrap, kafka_prefix, kafka_prefix)
    topics, owner = TopicNames(settings), Nobody()
    await asyncio.to_thread(prepare, settings, topics)
    consumer = GroupConsumer(settings, topics.work, owner, lambda: False)
    receive = consumer._receive

    def slow() -> None:
        """Take nothing of what comes until the member is told to stop."""
        if consumer._stopping:
            receive()

    setattr(consumer, receive.__name__, slow)
    consumer.start()

    async def is_member() -> bool:
        return bool(consumer._consumer.memberid())

    await until(is_member, "the membership")
    async with asyncio.timeout(20):
        await consumer.stop()
    assert owner.had == []

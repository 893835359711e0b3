"""Who commits for a partition: nobody but the member that has it, whatever its transaction began with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from confluent_kafka import TopicPartition

from tests.journeys.harness import until
from waypost.stores.kafka.consumer import GroupConsumer
from waypost.stores.kafka.partitions import Committed, IncomingMessage, PartitionRef
from waypost.stores.kafka.producer import Outgoing
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, prepare
from waypost.stores.kafka.transactions import Offsets, TransactionRefused, Transactions

pytestmark = pytest.mark.asyncio


class Member:
    """One of the group, and what it has."""

    def __init__(self, settings: KafkaSettings, topics: TopicNames) -> None:
        self.turns: dict[PartitionRef, int] = {}
        self.is_stalled = False
        self.consumer = GroupConsumer(settings, topics.work, self, lambda: self.is_stalled)
        self.transactions = Transactions(settings, self.consumer.group)
        self._records = topics.records

    async def begin(self) -> None:
        """Join."""
        await self.transactions.start()
        self.consumer.start()

    async def end(self) -> None:
        """Leave."""
        await self.consumer.stop()
        await self.transactions.stop()

    async def commit(self, place: PartitionRef, turn: int) -> None:
        """Settle the first message of a partition that came by that assignment."""
        offsets = Offsets([TopicPartition(place.topic, place.partition, 1)], {place: turn})
        await self.transactions.commit([Outgoing(self._records, b"key", b"value")], offsets, lambda placed: None)

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """See Owner."""
        self.turns |= {each.place: each.turn for each in partitions}

    async def revoked(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""
        self.lost(places)

    def lost(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""
        for place in places:
            self.turns.pop(place, None)

    def received(self, batch: Sequence[IncomingMessage]) -> None:
        """See Owner."""

    def failed(self, error: Exception) -> None:
        """See Owner."""
        raise error


def holds(member: Member, count: int) -> Callable[[], Awaitable[bool]]:
    """Whether it has so many partitions."""

    async def has() -> bool:
        return len(member.turns) == count

    return has


async def test_what_moved_on_is_committed_by_its_new_owner_alone(kafka_bootstrap: str, kafka_prefix: str) -> None:
    """The former one is still a member, of the newest generation: the cluster alone would take its offsets."""
    settings = KafkaSettings(
        bootstrap=kafka_bootstrap, prefix=kafka_prefix, group=kafka_prefix, partitions=2, replication=1, trial=True
    )
    topics = TopicNames(settings)
    await asyncio.to_thread(prepare, settings, topics)
    every = 2 * len(topics.work)
    one, other = Member(settings, topics), Member(settings, topics)
    await one.begin()
    await until(holds(one, every), "all partitions")
    before = dict(one.turns)
    await other.begin()
    await until(holds(other, every // 2), "half of the partitions")
    moved, kept = next(iter(other.turns)), next(iter(one.turns))
    with pytest.raises(TransactionRefused):
        await one.commit(moved, before[moved])
    await one.commit(kept, before[kept])
    await other.commit(moved, other.turns[moved])
    await other.end()
    await until(holds(one, every), "all partitions again")
    with pytest.raises(TransactionRefused):
        await one.commit(moved, before[moved])
    await one.commit(moved, one.turns[moved])
    one.is_stalled = True
    await until(holds(one, 0), "none")
    with pytest.raises(TransactionRefused):
        await one.commit(kept, before[kept])
    await one.end()

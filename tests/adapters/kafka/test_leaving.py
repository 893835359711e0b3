"""A member that stops leaves its group at once, whatever is just on its way to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from confluent_kafka import ConsumerGroupState

from tests.contract.log import settings_of
from tests.contract.sources import PARTITIONS, KafkaSourceUnderTest, kafka_source_under_test
from tests.journeys.harness import until
from waypost.stores.kafka.consumer import GroupConsumer
from waypost.stores.kafka.partitions import Committed, IncomingMessage, PartitionRef
from waypost.stores.kafka.topics import TopicNames, prepare


class Nobody:
    """An owner that does nothing with what is its own."""

    def __init__(self) -> None:
        self.had: list[Committed] = []
        self.gone: list[PartitionRef] = []

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """See Owner."""
        self.had += partitions

    async def revoked(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""
        self.gone += places

    def lost(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""

    def received(self, batch: Sequence[IncomingMessage]) -> None:
        """See Owner."""

    def failed(self, error: Exception) -> None:
        """See Owner."""
        raise AssertionError(error)


@pytest_asyncio.fixture
async def on_kafka(kafka_bootstrap: str, kafka_prefix: str) -> AsyncIterator[KafkaSourceUnderTest]:
    """A topic."""
    async with kafka_source_under_test(kafka_bootstrap, kafka_prefix) as under_test:
        yield under_test


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

    await until(having(lambda: bool(consumer._consumer.memberid())), "the membership")
    async with asyncio.timeout(20):
        await consumer.stop()
    assert owner.had == []


@pytest.mark.asyncio
async def test_what_is_done_is_committed_though_its_member_stops_in_a_rebalance(on_kafka: KafkaSourceUnderTest) -> None:
    """As in a rolling restart: one member comes, and another stops while it waits for all to have joined again."""
    owner, topics = Nobody(), [on_kafka.stream]
    stopping = GroupConsumer(on_kafka.settings, topics, owner, lambda: False, commits=True)
    coming = GroupConsumer(on_kafka.settings, topics, Nobody(), lambda: False, commits=True)

    async def is_waiting() -> bool:
        return await on_kafka.group_state() is ConsumerGroupState.PREPARING_REBALANCING

    async with joined(stopping):
        await until(having(lambda: len(owner.had) == PARTITIONS), "all partitions")
        release = hold(coming)
        async with joined(coming):
            await until(having(lambda: owner.gone != []), "some to be given to who comes")
            kept = [each.place for each in owner.had if each.place not in owner.gone]
            await until(is_waiting, "the member that stops to have joined again")
            stopping.done(dict.fromkeys(kept, 7))
            stopped = asyncio.create_task(stopping.stop())
            release()
            await stopped
            assert await on_kafka.committed() == {each.place: 7 * (each.place in kept) for each in owner.had}


@asynccontextmanager
async def joined(consumer: GroupConsumer) -> AsyncIterator[None]:
    """Let it be a member, if it is not told to stop before."""
    consumer.start()
    try:
        yield
    finally:
        await consumer.stop()


def hold(consumer: GroupConsumer) -> Callable[[], None]:
    """Let *consumer* join, and no rebalance go on without it, until what is given back is called."""
    receive, is_released = consumer._receive, threading.Event()

    def held() -> None:
        if is_released.wait(0.05):
            receive()

    setattr(consumer, receive.__name__, held)
    return is_released.set


def having(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    """Make *condition* what can be waited for."""

    async def asked() -> bool:
        return condition()

    return asked

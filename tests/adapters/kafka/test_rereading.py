"""What waits in the log is read again, each partition for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from waypost.domain.errors import Unavailable
from waypost.stores.kafka import rereading
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.rereading import Rereading
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, prepare

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

NOBODY = 99
"""A partition that has no leader, since there is none of that number."""


class Again:
    """A topic of two partitions, and who reads in it again."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix, partitions=2, replication=1, trial=True)
        self.topic = TopicNames(self.settings).retries[0]
        self.rereading = Rereading(self.settings)
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def place(self, partition: int) -> PartitionRef:
        """A partition of the topic."""
        return PartitionRef(self.topic, partition)

    async def put(self, partition: int, *values: bytes) -> None:
        """Write these."""
        for each in values:
            self._producer.produce(self.topic, each, partition=partition)
        assert await asyncio.to_thread(self._producer.flush, 60) == 0


@pytest_asyncio.fixture
async def again(kafka_bootstrap: str, kafka_prefix: str) -> AsyncIterator[Again]:
    """Empty partitions."""
    made = Again(kafka_bootstrap, kafka_prefix)
    await asyncio.to_thread(prepare, made.settings, TopicNames(made.settings))
    yield made
    await made.rereading.stop()


async def test_a_partition_without_a_leader_holds_up_no_other(again: Again, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "PATIENCE_S", 3.0)
    await again.put(0, b"a", b"b", b"c")
    await again.put(1, b"d")
    silent = asyncio.create_task(again.rereading.read(again.place(NOBODY), {0}))
    one, other = await asyncio.gather(
        again.rereading.read(again.place(0), {0, 2}), again.rereading.read(again.place(1), {0})
    )
    assert (one, other) == ({0: b"a", 2: b"c"}, {0: b"d"})
    assert not silent.done()
    assert await again.rereading.read(again.place(0), {1}) == {1: b"b"}
    with pytest.raises(Unavailable):
        await silent


async def test_the_end_of_a_partition_before_what_is_wanted_is_not_the_answer(again: Again) -> None:
    """A leader that was just elected may not have all yet."""
    await again.put(0, b"a")
    wanted = asyncio.create_task(again.rereading.read(again.place(0), {0, 1}))
    await again.put(1, b"x")
    assert await again.rereading.read(again.place(1), {0}) == {0: b"x"}
    await again.put(0, b"b")
    assert await wanted == {0: b"a", 1: b"b"}


async def test_what_is_no_message_any_more_is_missing(again: Again) -> None:
    """What the topic has dropped, or the mark of a transaction: whatever comes behind it says so."""
    transactional = Producer({"bootstrap.servers": again.settings.bootstrap, "transactional.id": again.topic})
    await asyncio.to_thread(transactional.init_transactions, 60)
    transactional.begin_transaction()
    transactional.produce(again.topic, b"a", partition=0)
    await asyncio.to_thread(transactional.commit_transaction, 60)
    assert await again.rereading.read(again.place(0), {0, 1}) == {0: b"a"}

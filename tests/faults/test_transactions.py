"""Transactions of the log whose broker does not answer: at the start, and in the middle of one."""

from __future__ import annotations

import asyncio
import threading

import pytest
from confluent_kafka import Consumer

from scripts.services.kafka import Kafka
from waypost.domain.errors import Unavailable
from waypost.stores.kafka import transactions as module
from waypost.stores.kafka.producer import Outgoing
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, prepare
from waypost.stores.kafka.transactions import TRANSACTION_S, Offsets, Transactions

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]


async def test_an_id_is_introduced_once_the_broker_is_there(kafka_alone: Kafka) -> None:
    """The first question times out; a coordinator that is still loading is asked again, too."""
    transactions = Transactions(KafkaSettings(bootstrap=kafka_alone.url), lambda turns: None)
    await asyncio.to_thread(kafka_alone.kill)
    starting = asyncio.create_task(transactions.start())
    await asyncio.sleep(TRANSACTION_S)  # what is tried is that time passes
    await asyncio.to_thread(kafka_alone.start)
    await starting
    await transactions.stop()


async def test_a_transaction_that_never_ends_is_given_up_with_its_thread(
    kafka_alone: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client does not come back from a call; the next transaction does not wait for it."""
    settings = KafkaSettings(bootstrap=kafka_alone.url, prefix="given-up", partitions=1, replication=1, trial=True)
    topics = TopicNames(settings)
    await asyncio.to_thread(prepare, settings, topics)
    consumer = Consumer({"bootstrap.servers": kafka_alone.url, "group.id": "given-up"})
    transactions = Transactions(settings, lambda turns: consumer.consumer_group_metadata())

    async def commit() -> None:
        await transactions.commit([Outgoing(topics.records, b"key", b"value")], Offsets([], {}), lambda placed: None)

    await transactions.start()
    await commit()
    answered = threading.Event()
    with monkeypatch.context() as hanging:
        hanging.setattr(module, "GIVE_UP_S", 1.0)
        hanging.setattr(module._Identity, "_send", lambda *_: answered.wait())
        with pytest.raises(Unavailable):
            await commit()
    await commit()
    await transactions.stop()
    answered.set()
    await asyncio.to_thread(consumer.close)

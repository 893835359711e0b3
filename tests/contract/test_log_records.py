"""What the recorder reads of the log."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer

from tests.contract.bench import notification
from tests.contract.clock import START
from tests.contract.log import settings_of
from waypost.adapters.kafka.messages import Task, encode
from waypost.adapters.kafka.recording import KafkaRecords
from waypost.adapters.kafka.topics import Topics, prepare
from waypost.domain.delivery import OpenTarget
from waypost.domain.ids import DeviceId
from waypost.domain.notification import Channel, Lane
from waypost.ports.ledger import Arrived, LogEntry
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]


async def test_what_replaces_a_task_holds_up_nothing_that_comes_after_it(
    kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """A batch of such messages alone has nothing for the ledger, and is passed over."""
    settings = settings_of(kafka_bootstrap, kafka_prefix, kafka_prefix)
    topics = Topics(settings)
    await asyncio.to_thread(prepare, settings, topics)
    lane = next(topic for topic, which in topics.lanes.items() if which is Lane.NORMAL)
    replaced, arrived = notification(START), notification(START)
    records = KafkaRecords(settings, topics, Silent())
    try:
        rest = (OpenTarget(0, DeviceId("phone"), Channel("apns"), 0),)
        await asyncio.to_thread(_put, kafka_bootstrap, lane, Task(replaced, rest))
        for _ in range(8):
            assert await records.read() == []
        await asyncio.to_thread(_put, kafka_bootstrap, lane, Task(arrived))
        async with asyncio.timeout(60):
            assert await _something(records) == [Arrived(arrived)]
    finally:
        await records.stop()


async def _something(records: KafkaRecords) -> list[LogEntry]:
    while True:
        if found := list(await records.read()):
            return found


def _put(bootstrap: str, topic: str, task: Task) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, encode(task), b"key", 0)
    assert producer.flush(60) == 0

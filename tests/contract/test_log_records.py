"""What the recorder reads of the log."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from tests.contract.bench import notification
from tests.contract.clock import START, StoppedClock
from tests.contract.log import settings_of
from tests.contract.sql import SqlUnderTest
from waypost.domain.channel import Channel
from waypost.domain.delivery import OpenTarget
from waypost.domain.errors import Unavailable
from waypost.domain.ids import DeviceId
from waypost.domain.notification import Lane
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.ledger import Arrived, Batch, Ledger, LogEntry
from waypost.runtime.clock import SystemClock
from waypost.stores.kafka.messages import Task, encode
from waypost.stores.kafka.recording import KafkaRecords
from waypost.stores.kafka.topics import TopicNames, prepare
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]


@pytest_asyncio.fixture
async def ledger(tmp_path: Path, empty_database: Path) -> AsyncIterator[Ledger]:
    """An empty ledger, which has room for one recorder."""
    store = SqlUnderTest(f"sqlite:///{shutil.copy(empty_database, tmp_path / 'waypost.db')}")
    await store.open()
    yield store._opened.ledger
    await store.close()


async def test_what_replaces_a_task_holds_up_nothing_that_comes_after_it(
    kafka_bootstrap: str, kafka_prefix: str, ledger: Ledger
) -> None:
    """A batch of such messages alone has nothing for the ledger, and is passed over."""
    settings = settings_of(kafka_bootstrap, kafka_prefix, kafka_prefix)
    topics = TopicNames(settings)
    await asyncio.to_thread(prepare, settings, topics)
    lane = next(topic for topic, which in topics.lanes.items() if which is Lane.NORMAL)
    replaced, arrived = notification(START), notification(START)
    records = KafkaRecords(settings, topics, ledger, Silent(), SystemClock(), is_shared=False)
    try:
        rest = (OpenTarget(0, DeviceId("phone"), Channel("apns"), 0),)
        await asyncio.to_thread(_put, kafka_bootstrap, lane, Task(replaced, rest))
        async with asyncio.timeout(60):
            while not (batch := await records.read()).marks:
                assert batch == Batch()
        assert not batch.entries
        await records.advance()
        await asyncio.to_thread(_put, kafka_bootstrap, lane, Task(arrived))
        async with asyncio.timeout(60):
            assert await _something(records) == [Arrived(arrived)]
    finally:
        await records.stop()


async def test_what_was_accepted_before_the_recorder_looked_is_behind_it_once_all_that_is_read(
    kafka_bootstrap: str, kafka_prefix: str, ledger: Ledger
) -> None:
    """Then an id of before, which the ledger does not know, was never accepted."""
    settings = settings_of(kafka_bootstrap, kafka_prefix, kafka_prefix)
    topics, clock = TopicNames(settings), StoppedClock()
    await asyncio.to_thread(prepare, settings, topics)
    lane = next(topic for topic, which in topics.lanes.items() if which is Lane.NORMAL)
    await asyncio.to_thread(_put, kafka_bootstrap, lane, Task(notification(START)))
    records = KafkaRecords(settings, topics, ledger, Silent(), clock, is_shared=False)
    try:
        async with asyncio.timeout(60):
            assert await _something(records)
            assert await _passed(records, clock) is None, "what was read is not behind it yet"
            await records.advance()
            while (until := await _passed(records, clock)) is None:
                assert await records.read() == Batch()
        assert START - 60_000 < until < START
        assert await _passed(records, clock) is None, "nothing is new"
        await asyncio.to_thread(_put, kafka_bootstrap, lane, Task(notification(START)))
        now = clock.advance(10_000)
        async with asyncio.timeout(60):
            while not (await records.read()).entries:
                assert await _passed(records, clock) is None, "what is in the log is not read"
            await records.advance()
            while (until := await _passed(records, clock)) is None:
                await records.read()
        assert now - 60_000 < until < now
    finally:
        await records.stop()


async def _something(records: KafkaRecords) -> list[LogEntry]:
    while True:
        if found := (await records.read()).entries:
            return list(found)


def _put(bootstrap: str, topic: str, task: Task) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, encode(task), b"key", 0)
    assert producer.flush(60) == 0


async def _passed(records: KafkaRecords, clock: StoppedClock) -> Instant | None:
    """Ask again where leaders are just being elected, as the recorder does with its next turn."""
    while True:
        try:
            passed = await records.passed()
            return None if passed is None else passed.until
        except Unavailable:
            clock.advance(SECOND_MS)

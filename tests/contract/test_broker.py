"""Schedules: in two phases, never early; and what is published to a Kafka that others read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from confluent_kafka import Consumer

from tests.contract.brokers import CLAIM_MS, MemoryScheduleUnderTest, SchedulerUnderTest, redis_schedule_under_test
from tests.contract.log import settings_of
from waypost.domain.ids import AppId, UserId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant, later
from waypost.ports.broker import Claimed, Due, Entry
from waypost.stores.kafka.broker import opened_publisher
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

NOW = Instant(1_800_000_000_000)


@pytest_asyncio.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.engines)])
async def scheduler(request: pytest.FixtureRequest) -> AsyncIterator[SchedulerUnderTest]:
    """With nothing in it."""
    if request.param == "memory":
        yield MemoryScheduleUnderTest()
        return
    async with redis_schedule_under_test(request.getfixturevalue("redis_url")) as opened:
        yield opened


@pytest.mark.engines
async def test_others_read_of_kafka_what_was_published_of_a_user_in_its_order(
    kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """A topic for each lane, keyed by app and user."""
    users = [UserId("ann"), UserId("bob")]
    entries = [Entry(AppId("demo"), user, b"%d" % n) for n in range(20) for user in users]
    async with opened_publisher(settings_of(kafka_bootstrap, kafka_prefix, "x"), Silent(), "work") as topic:
        assert topic._preparing is not None
        await topic._preparing
        await topic.publish(Lane.HIGH, entries)
        await topic.publish(Lane.LOW, entries[:1])
    found = await asyncio.to_thread(_read, kafka_bootstrap, kafka_prefix, len(entries))
    for user in users:
        key = f"demo/{user}".encode()
        assert [value for one, value in found if one == key] == [b"%d" % n for n in range(20)]


def _read(bootstrap: str, prefix: str, count: int) -> list[tuple[bytes, bytes]]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{prefix}others", "auto.offset.reset": "earliest"})
    try:
        reader.subscribe([f"{prefix}work.high"])
        found: list[tuple[bytes, bytes]] = []
        while len(found) < count:
            if (message := reader.poll(1)) is not None and message.error() is None:
                found.append((message.key() or b"", message.value() or b""))
        return found
    finally:
        reader.close()


def due(id_: str, at_ms: int = 0, body: bytes = b"body") -> Due:
    """An entry that is due so long after now."""
    return Due(id_.encode(), body, later(NOW, at_ms))


def ids(claimed: list[Claimed]) -> list[str]:
    """Of the entries."""
    return [each.due.id.decode() for each in claimed]


async def test_nothing_is_claimed_early_and_the_longest_due_first(scheduler: SchedulerUnderTest) -> None:
    await scheduler.schedule.put([due("c", 2), due("a", 0, b"\0"), due("b", 1), due("d", 3)])
    assert await scheduler.schedule.claim(later(NOW, -1), 10) == []
    first = await scheduler.schedule.claim(later(NOW, 2), 2)
    assert [each.due for each in first] == [due("a", 0, b"\0"), due("b", 1)]
    assert ids(await scheduler.schedule.claim(later(NOW, 2), 10)) == ["c"]
    assert ids(await scheduler.schedule.claim(later(NOW, 3), 10)) == ["d"]


async def test_what_is_confirmed_is_gone_and_what_is_not_is_due_again(scheduler: SchedulerUnderTest) -> None:
    await scheduler.schedule.put([due("a"), due("b")])
    claimed = await scheduler.schedule.claim(NOW, 10)
    assert await scheduler.schedule.confirm(claimed[:1]) == []
    assert await scheduler.schedule.claim(later(NOW, CLAIM_MS - 1), 10) == []
    again = await scheduler.schedule.claim(later(NOW, CLAIM_MS), 10)
    assert ids(again) == ["b"]
    assert await scheduler.schedule.confirm(claimed) == claimed, "the one is gone, the other claimed by somebody else"
    assert await scheduler.schedule.put_back(claimed, NOW) == claimed
    assert await scheduler.schedule.confirm(again) == []


async def test_what_could_not_be_done_comes_back_when_it_is_told_to_and_is_counted(
    scheduler: SchedulerUnderTest,
) -> None:
    await scheduler.schedule.put([due("a")])
    at = NOW
    for failures in range(4):
        (claimed,) = await scheduler.schedule.claim(at, 10)
        assert (claimed.failures, claimed.due.body) == (failures, b"body")
        at = later(at, 5_000)
        assert await scheduler.schedule.put_back([claimed], at) == []
        assert await scheduler.schedule.claim(later(at, -1), 10) == []


async def test_a_new_time_ends_a_claim_and_so_does_the_end_of_the_entry(scheduler: SchedulerUnderTest) -> None:
    await scheduler.schedule.put([due("a"), due("b")])
    claimed = await scheduler.schedule.claim(NOW, 10)
    await scheduler.schedule.put([due("a", 7, b"new")])
    assert await scheduler.schedule.drop([b"b", b"none"]) == 1
    assert await scheduler.schedule.confirm(claimed) == claimed
    assert [each.due for each in await scheduler.schedule.claim(later(NOW, 7), 10)] == [due("a", 7, b"new")]
    assert await scheduler.schedule.drop([]) == 0


async def test_of_many_who_claim_each_gets_something_else(scheduler: SchedulerUnderTest) -> None:
    await scheduler.schedule.put([due(f"e{n}") for n in range(200)])
    found = await asyncio.gather(*(scheduler.schedule.claim(NOW, 20) for _ in range(20)))
    assert len({each.due.id for claimed in found for each in claimed}) == sum(map(len, found)) == 200

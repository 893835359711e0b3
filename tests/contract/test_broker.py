"""Brokers: each entry with one reader at a time, at least once; schedules: in two phases, never early."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.brokers import (
    APPS,
    CLAIM_MS,
    BrokerUnderTest,
    MemoryBrokerUnderTest,
    SchedulerUnderTest,
    redis_broker_under_test,
)
from tests.contract.kafka_broker import kafka_broker_under_test
from waypost.adapters.kafka.broker import READ_AHEAD
from waypost.domain.ids import AppId, UserId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant, later
from waypost.ports.broker import Broker, Claimed, Due, Entry, Held

pytestmark = pytest.mark.asyncio

DEMO, SHOP = APPS
HIGH = Lane.HIGH
NOW = Instant(1_800_000_000_000)


@pytest_asyncio.fixture(
    params=[
        "memory",
        pytest.param("redis", marks=pytest.mark.engines),
        pytest.param("kafka", marks=pytest.mark.engines),
    ]
)
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[BrokerUnderTest]:
    """With nothing in it."""
    given = request.getfixturevalue
    if request.param == "memory":
        yield MemoryBrokerUnderTest()
    elif request.param == "redis":
        async with redis_broker_under_test(given("redis_url")) as on_redis:
            yield on_redis
    else:
        async with kafka_broker_under_test(given("kafka_bootstrap"), given("kafka_prefix")) as on_kafka:
            yield on_kafka


@pytest_asyncio.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.engines)])
async def scheduler(request: pytest.FixtureRequest) -> AsyncIterator[SchedulerUnderTest]:
    """With nothing in it."""
    if request.param == "memory":
        yield MemoryBrokerUnderTest()
        return
    async with redis_broker_under_test(request.getfixturevalue("redis_url")) as opened:
        yield opened


async def publish(
    broker: BrokerUnderTest, reader: Broker, *bodies: str, app: AppId = DEMO, user: str = "user", lane: Lane = HIGH
) -> None:
    """Append entries that are only names."""
    await reader.publish(lane, [Entry(app, UserId(user), body.encode()) for body in bodies])
    await broker.arrived()


async def read_by(*readers: Broker, lane: Lane = HIGH, n: int = 7) -> list[Held]:
    """All that there is, a few at a time."""
    found: list[Held] = []
    while some := [held for reader in readers for held in await reader.read(lane, n)]:
        found += some
    return found


def bodies(held: list[Held]) -> list[str]:
    """Their names."""
    return [each.body.decode() for each in held]


async def test_entries_of_a_user_are_read_once_in_their_order(broker: BrokerUnderTest) -> None:
    one, two = await broker.reader(), await broker.reader()
    assert await read_by(one, two) == []
    await publish(broker, one, "a", "b", "c")
    await publish(broker, two, "d", "\0\xff")
    found = await read_by(one, two, n=2)
    assert bodies(found) == ["a", "b", "c", "d", "\0\xff"]
    assert {each.app for each in found} == {DEMO}
    assert await read_by(one, two) == []


async def test_lanes_do_not_meet(broker: BrokerUnderTest) -> None:
    reader = await broker.reader()
    await publish(broker, reader, "low", lane=Lane.LOW)
    assert await reader.read(HIGH, 10) == []
    assert bodies(await reader.read(Lane.LOW, 10)) == ["low"]


async def test_apps_take_turns_and_leave_no_room_unused(broker: BrokerUnderTest) -> None:
    reader = await broker.reader()
    await publish(broker, reader, *(f"d{n}" for n in range(20)))
    await publish(broker, reader, "s0", "s1", app=SHOP)
    taken = await reader.read(HIGH, 8)
    assert Counter(each.app for each in taken) == {DEMO: 6, SHOP: 2}
    await publish(broker, reader, *(f"s{n}" for n in range(2, 20)), app=SHOP)
    taken = await reader.read(HIGH, 8)
    assert Counter(each.app for each in taken) == {DEMO: 4, SHOP: 4}


async def test_what_is_acknowledged_is_gone_and_nothing_else(broker: BrokerUnderTest) -> None:
    reader = await broker.reader()
    await publish(broker, reader, "a", "b", "c")
    held = await reader.read(HIGH, 10)
    for _ in range(2):
        await reader.ack(HIGH, held[:1])
    await broker.give_up(reader)
    assert bodies(await read_by(await broker.reader())) == ["b", "c"]
    assert await broker.stored() == 2


async def test_what_a_reader_had_is_read_again_once_and_is_its_own_no_more(broker: BrokerUnderTest) -> None:
    frozen = await broker.reader()
    for user in range(3):
        await publish(broker, frozen, *(f"{user}.{n}" for n in range(10)), user=str(user))
    held = await read_by(frozen)
    await broker.give_up(frozen)
    others = [await broker.reader() for _ in range(2)]
    found = [await read_by(other) for other in others]
    assert sorted(body for each in found for body in bodies(each)) == sorted(bodies(held))
    await frozen.ack(HIGH, held)
    for other, taken in zip(others[:1], found, strict=False):
        await other.ack(HIGH, taken)
    assert await broker.stored() == len(found[1])


async def test_all_that_is_acknowledged_in_whatever_order_is_gone(broker: BrokerUnderTest) -> None:
    reader = await broker.reader()
    await publish(broker, reader, *(f"e{n}" for n in range(9)))
    for held in reversed(await reader.read(HIGH, 9)):
        await reader.ack(HIGH, [held])
    assert await broker.stored() == 0


async def test_readers_together_get_each_entry_once(broker: BrokerUnderTest) -> None:
    readers = [await broker.reader() for _ in range(3)]
    entries = [Entry(DEMO, UserId(f"user-{n % 40}"), b"%d" % n) for n in range(500)]
    await readers[0].publish(HIGH, entries)
    await broker.arrived()
    seen: Counter[str] = Counter()

    async def work(reader: Broker) -> None:
        while held := await reader.read(HIGH, 7):
            seen.update(bodies(held))
            await reader.ack(HIGH, held)

    await asyncio.gather(*map(work, readers))
    assert len(seen) == seen.total() == 500
    assert await broker.stored() == 0


async def test_more_than_a_reader_receives_ahead_is_read_all_the_same(broker: BrokerUnderTest) -> None:
    reader = await broker.reader()
    entries = [Entry(DEMO, UserId(f"user-{n}"), b"%d" % n) for n in range(3 * READ_AHEAD)]
    await reader.publish(HIGH, entries)
    seen: Counter[str] = Counter()
    async with asyncio.timeout(60):
        while seen.total() < len(entries):
            held = await reader.read(HIGH, 100)
            seen.update(bodies(held))
            await reader.ack(HIGH, held)
            await asyncio.sleep(0 if held else 0.01)  # a broker says nothing of what is still on its way
    assert set(seen.values()) == {1}
    assert await broker.stored() == 0


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

"""Brokers: each entry with one reader at a time, at least once; schedules: in two phases, never early."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.brokers import APPS, CLAIM_MS, BrokerUnderTest, MemoryBrokerUnderTest, redis_broker_under_test
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant, later
from waypost.ports.broker import Broker, Claimed, Due, Held

pytestmark = pytest.mark.asyncio

DEMO, SHOP = APPS
HIGH = Lane.HIGH
NOW = Instant(1_800_000_000_000)


@pytest_asyncio.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.engines)])
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[BrokerUnderTest]:
    """With nothing in it."""
    if request.param == "memory":
        yield MemoryBrokerUnderTest()
        return
    async with redis_broker_under_test(request.getfixturevalue("redis_url")) as opened:
        yield opened


async def publish(broker: Broker, *bodies: str, app: AppId = DEMO, lane: Lane = HIGH) -> None:
    """Append entries that are only names."""
    await broker.publish(lane, [(app, body.encode()) for body in bodies])


def bodies(held: list[Held]) -> list[str]:
    """Their names."""
    return [each.body.decode() for each in held]


async def test_entries_of_an_app_are_read_once_in_their_order(broker: BrokerUnderTest) -> None:
    one, two = broker.reader(), broker.reader()
    assert await one.read(HIGH, 10) == []
    await publish(one, "a", "b", "c")
    await publish(two, "d", "\0\xff")
    first = await one.read(HIGH, 2)
    assert bodies(first) == ["a", "b"]
    assert [(each.app, each.delivery) for each in first] == [(DEMO, 1), (DEMO, 1)]
    assert bodies(await two.read(HIGH, 10)) == ["c", "d", "\0\xff"]
    assert await one.read(HIGH, 10) == []


async def test_lanes_do_not_meet(broker: BrokerUnderTest) -> None:
    reader = broker.reader()
    await publish(reader, "low", lane=Lane.LOW)
    assert await reader.read(HIGH, 10) == []
    assert bodies(await reader.read(Lane.LOW, 10)) == ["low"]


async def test_apps_take_turns_and_leave_no_room_unused(broker: BrokerUnderTest) -> None:
    reader = broker.reader()
    await publish(reader, *(f"d{n}" for n in range(20)))
    await publish(reader, "s0", "s1", app=SHOP)
    taken = await reader.read(HIGH, 8)
    assert len(taken) == 8
    assert Counter(each.app for each in taken) == {DEMO: 6, SHOP: 2}
    await publish(reader, *(f"s{n}" for n in range(2, 20)), app=SHOP)
    taken = await reader.read(HIGH, 8)
    assert Counter(each.app for each in taken) == {DEMO: 4, SHOP: 4}


async def test_what_is_acknowledged_is_gone_and_nothing_else(broker: BrokerUnderTest) -> None:
    reader = broker.reader()
    await publish(reader, "a", "b", "c")
    held = await reader.read(HIGH, 10)
    assert await reader.ack(HIGH, [held[1]]) == []
    assert await reader.ack(HIGH, [held[1]]) == [held[1]], "a second time there is nothing to acknowledge"
    assert await broker.stored() == 2
    await broker.leases_end()
    assert bodies(await broker.reader().read(HIGH, 10)) == ["a", "c"]
    assert await reader.ack(HIGH, []) == []


async def test_a_lease_that_ended_is_taken_over_once_and_its_holder_may_do_nothing_more(
    broker: BrokerUnderTest,
) -> None:
    frozen, others = broker.reader(), [broker.reader() for _ in range(3)]
    await publish(frozen, *(f"e{n}" for n in range(30)))
    held = await frozen.read(HIGH, 30)
    assert await others[0].read(HIGH, 10) == []
    await broker.leases_end()
    taken = await asyncio.gather(*(other.read(HIGH, 10) for other in others))
    assert sorted(body for each in taken for body in bodies(each)) == sorted(bodies(held))
    assert {each.delivery for found in taken for each in found} == {2}
    for refused in (frozen.ack, frozen.extend, frozen.give_back):
        assert await refused(HIGH, held) == held
    assert await broker.stored() == 30
    for other, found in zip(others, taken, strict=True):
        assert await other.ack(HIGH, found) == []
    assert await broker.stored() == 0


async def test_a_reader_that_gets_an_entry_again_does_not_act_on_its_first_lease(broker: BrokerUnderTest) -> None:
    reader = broker.reader()
    await publish(reader, "a")
    first = await reader.read(HIGH, 1)
    await broker.leases_end()
    again = await reader.read(HIGH, 1)
    assert again[0].delivery == 2
    assert await reader.ack(HIGH, first) == first
    assert await reader.ack(HIGH, again) == []


async def test_a_lease_can_be_kept(broker: BrokerUnderTest) -> None:
    reader, other = broker.reader(), broker.reader()
    await publish(reader, "a", "b")
    held = await reader.read(HIGH, 2)
    await broker.leases_end()
    assert await reader.extend(HIGH, held[:1]) == []
    assert bodies(await other.read(HIGH, 10)) == ["b"]
    assert await reader.ack(HIGH, held) == held[1:]


async def test_what_is_given_back_is_read_at_once_before_what_came_later(broker: BrokerUnderTest) -> None:
    reader, other = broker.reader(), broker.reader()
    await publish(reader, "a", "b", "c", "d")
    held = await reader.read(HIGH, 2)
    assert await reader.give_back(HIGH, held) == []
    assert await reader.ack(HIGH, held) == held
    assert bodies(await other.read(HIGH, 3)) == ["a", "b", "c"]


async def test_readers_together_get_each_entry_once(broker: BrokerUnderTest) -> None:
    readers = [broker.reader() for _ in range(5)]
    await publish(readers[0], *(f"e{n}" for n in range(500)))
    seen: list[str] = []

    async def work(reader: Broker) -> None:
        while held := await reader.read(HIGH, 7):
            seen.extend(bodies(held))
            assert await reader.ack(HIGH, held) == []

    await asyncio.gather(*map(work, readers))
    assert len(seen) == len(set(seen)) == 500
    assert await broker.stored() == 0


def due(id_: str, at_ms: int = 0, body: bytes = b"body") -> Due:
    """An entry that is due so long after now."""
    return Due(id_.encode(), body, later(NOW, at_ms))


def ids(claimed: list[Claimed]) -> list[str]:
    """Of the entries."""
    return [each.due.id.decode() for each in claimed]


async def test_nothing_is_claimed_early_and_the_longest_due_first(broker: BrokerUnderTest) -> None:
    await broker.schedule.put([due("c", 2), due("a", 0, b"\0"), due("b", 1), due("d", 3)])
    assert await broker.schedule.claim(later(NOW, -1), 10) == []
    first = await broker.schedule.claim(later(NOW, 2), 2)
    assert [each.due for each in first] == [due("a", 0, b"\0"), due("b", 1)]
    assert ids(await broker.schedule.claim(later(NOW, 2), 10)) == ["c"]
    assert ids(await broker.schedule.claim(later(NOW, 3), 10)) == ["d"]


async def test_what_is_confirmed_is_gone_and_what_is_not_is_due_again(broker: BrokerUnderTest) -> None:
    await broker.schedule.put([due("a"), due("b")])
    claimed = await broker.schedule.claim(NOW, 10)
    assert await broker.schedule.confirm(claimed[:1]) == []
    assert await broker.schedule.claim(later(NOW, CLAIM_MS - 1), 10) == []
    again = await broker.schedule.claim(later(NOW, CLAIM_MS), 10)
    assert ids(again) == ["b"]
    assert await broker.schedule.confirm(claimed) == claimed, "the one is gone, the other claimed by somebody else"
    assert await broker.schedule.put_back(claimed, NOW) == claimed
    assert await broker.schedule.confirm(again) == []


async def test_what_could_not_be_done_comes_back_when_it_is_told_to_and_is_counted(broker: BrokerUnderTest) -> None:
    await broker.schedule.put([due("a")])
    at = NOW
    for failures in range(4):
        (claimed,) = await broker.schedule.claim(at, 10)
        assert (claimed.failures, claimed.due.body) == (failures, b"body")
        at = later(at, 5_000)
        assert await broker.schedule.put_back([claimed], at) == []
        assert await broker.schedule.claim(later(at, -1), 10) == []


async def test_a_new_time_ends_a_claim_and_so_does_the_end_of_the_entry(broker: BrokerUnderTest) -> None:
    await broker.schedule.put([due("a"), due("b")])
    claimed = await broker.schedule.claim(NOW, 10)
    await broker.schedule.put([due("a", 7, b"new")])
    assert await broker.schedule.drop([b"b", b"none"]) == 1
    assert await broker.schedule.confirm(claimed) == claimed
    assert [each.due for each in await broker.schedule.claim(later(NOW, 7), 10)] == [due("a", 7, b"new")]
    assert await broker.schedule.drop([]) == 0


async def test_of_many_who_claim_each_gets_something_else(broker: BrokerUnderTest) -> None:
    await broker.schedule.put([due(f"e{n}") for n in range(200)])
    found = await asyncio.gather(*(broker.schedule.claim(NOW, 20) for _ in range(20)))
    assert len({each.due.id for claimed in found for each in claimed}) == sum(map(len, found)) == 200

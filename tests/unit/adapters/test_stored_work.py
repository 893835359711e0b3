"""The store's own work beside the log's: handed out once it is there, as far as there is room and it is still ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.bench import Bench
from tests.contract.stores import LEASE_MS, MemoryUnderTest
from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane
from waypost.domain.time import Instant, later
from waypost.ports.work import Lease
from waypost.stores.kafka.stored_work import StoredWork

pytestmark = pytest.mark.asyncio
LANE = Lane.NORMAL
PARKED_UNDER = "breaker:demo/apns"


class Late:
    """The work of a store that has done what it was asked, and says so once it may."""

    def __init__(self, work: Any) -> None:
        self.may_answer = asyncio.Event()
        self.asked = 0
        self._work = work

    def __getattr__(self, name: str) -> Any:
        async def answer(*arguments: Any) -> Any:
            self.asked += 1
            done = await getattr(self._work, name)(*arguments)
            await self.may_answer.wait()
            return done

        return answer


async def asked(count: int) -> tuple[Bench, StoredWork]:
    """A worker with so much to lease, and its work beside the log; all of it was asked for, and is not taken."""
    store = MemoryUnderTest()
    bench = Bench(store, (await store.open_workers(1))[0])
    for _ in range(count):
        await bench.accepted()
    beside = StoredWork(bench.worker)
    await beside.ask(LANE, count, later(bench.now, LEASE_MS))
    return bench, beside


async def take(bench: Bench, beside: StoredWork, n: int) -> Lease:
    """At most *n* of what was answered."""
    return await beside.take(LANE, n, later(bench.now, LEASE_MS)) or Lease(0, LANE, ())


async def test_what_there_is_no_room_for_is_taken_later() -> None:
    bench, beside = await asked(5)
    leases = [await take(bench, beside, 3) for _ in range(3)]
    assert [len(lease.items) for lease in leases] == [3, 2, 0]
    assert len({lease.token for lease in leases[:2]}) == 1
    assert len({item.notification.id for lease in leases for item in lease.items}) == 5


async def test_what_others_have_by_now_is_not_handed_out() -> None:
    """The worker stood still, and its lease is over."""
    bench, beside = await asked(2)
    bench.clock.advance(LEASE_MS)
    assert len((await bench.lease()).items) == 2
    assert (await take(bench, beside, 2)).items == ()


async def test_a_late_answer_counts_at_the_next_look_that_asks_the_same() -> None:
    """What is due is released by a store that answers after our patience; meanwhile nothing is asked again."""
    bench, _ = await asked(0)
    await bench.accepted(scheduled_at=later(bench.now, 1))
    bench.clock.advance(1)
    late: Any = Late(bench.worker)
    beside = StoredWork(late)
    assert [await beside.promote_due(bench.now, 10, {}) for _ in range(2)] == [None, None]
    late.may_answer.set()
    await asyncio.sleep(0)  # the turn in which it answers
    assert await beside.promote_due(bench.now, 1, {PARKED_UNDER: 1}) == 0, "another question"
    assert await beside.promote_due(bench.now, 10, {}) == 1
    assert late.asked == 2
    await beside.stop()


async def test_that_nothing_is_parked_is_said_by_an_answer_in_time_alone() -> None:
    """Something may have been parked since a late one was asked for."""
    bench, _ = await asked(0)
    late: Any = Late(bench.worker)
    beside = StoredWork(late)
    assert await beside.promote_due(bench.now, 10, {PARKED_UNDER: 1}) is None
    assert await beside.promote_due(bench.now, 10, {}) is None, "a second look while the first one is late"
    late.may_answer.set()
    await asyncio.sleep(0)
    assert [await beside.promote_due(bench.now, 10, {PARKED_UNDER: 1}) for _ in range(2)] == [None, 0]
    assert late.asked == 3
    await beside.stop()


async def test_no_more_looks_are_asked_than_the_store_may_owe() -> None:
    bench, _ = await asked(0)
    late: Any = Late(bench.worker)
    beside = StoredWork(late)
    looks = [{f"breaker:demo/{n}": 1} for n in range(beside.at_once + 5)]
    assert {await beside.promote_due(bench.now, 10, each) for each in looks} == {None}
    assert late.asked == beside.at_once
    late.may_answer.set()
    await asyncio.sleep(0)
    assert await beside.promote_due(bench.now, 10, looks[-1]) == 0, "what nobody asks for any more makes room"
    await beside.stop()


async def test_a_store_that_is_away_does_not_say_that_nothing_is_parked() -> None:
    class Away:
        """A store that is away."""

        async def promote_due(self, *arguments: Any) -> int:
            raise Unavailable("the store is away")

    away: Any = Away()
    beside = StoredWork(away)
    assert await beside.promote_due(Instant(0), 10, {PARKED_UNDER: 1}) is None

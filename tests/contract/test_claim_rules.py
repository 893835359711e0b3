"""Who may lease, settle and take back what on PostgreSQL: each rule with the moment in which it counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from tests.contract.bench import Bench, again, intent, notification, sent
from tests.contract.claims import ClaimsUnderTest
from tests.contract.gate import Gate
from tests.contract.sql import WAITING
from tests.journeys.harness import until
from waypost.domain.amendment import TooLate, Withdrawn
from waypost.domain.notification import Guarantee
from waypost.domain.progress import Stale
from waypost.domain.settlement import Change, Unstarted
from waypost.domain.status import NotificationStatus
from waypost.domain.time import MINUTE_MS, SECOND_MS
from waypost.ports.work import Lease, Settled, WorkItem
from waypost.stores.sql.claims.waiting_from import WHOLE_EVERY_MS

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

_MEMBER = 1 << 40
"""A token's remainder by it is the number of the member."""


@pytest_asyncio.fixture
async def benches(emptied_postgres: str) -> AsyncIterator[list[Bench]]:
    """Two workers of an empty store."""
    stack = ClaimsUnderTest(emptied_postgres)
    await stack.open()
    yield [Bench(stack, worker) for worker in await stack.open_workers(2)]
    await stack.close()


@pytest.fixture
def asking(emptied_postgres: str) -> Iterator[psycopg.Connection[tuple[int, ...]]]:
    """A connection of somebody who looks at the store."""
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        yield connection


def held_at_commit(bench: Bench) -> Gate:
    """Hold the worker's next transaction where everything is written, and nothing committed."""
    gate = Gate()
    assert isinstance(bench.store, ClaimsUnderTest)
    bench.store.watch_writer(bench.worker, lambda sql: gate.wait() if sql == "COMMIT" else None, lambda: None)
    return gate


async def ended_or_waits(task: asyncio.Task[Any], asking: psycopg.Connection[tuple[int, ...]]) -> None:
    """Return once *task* is done, or waits for a row that somebody else has locked."""

    async def is_so() -> bool:
        row = asking.execute(WAITING).fetchone()
        assert row is not None
        return task.done() or row[0] > 0

    await until(is_so, "an end, or a lock that is waited for")


async def _fresh(bench: Bench, count: int) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(count)))


async def _given_back(bench: Bench, count: int) -> None:
    await _fresh(bench, count)
    lease = await bench.lease(count)
    await bench.settle(lease, *(Settled(item.notification, given_back=True) for item in lease.items))


@pytest.mark.parametrize("prepare", [_fresh, _given_back])
async def test_nobody_waits_for_what_another_leases(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]], prepare: Callable[[Bench, int], Awaitable[None]]
) -> None:
    """Where one stands in the middle of a lease, another leases what is left."""
    one, other = benches
    await prepare(one, 4)
    gate = held_at_commit(one)
    slow = asyncio.create_task(one.lease(2))
    await gate.reached()
    quick = asyncio.create_task(other.lease(2))
    await ended_or_waits(quick, asking)
    is_done = quick.done()
    gate.open()
    leased = [item.notification.id for task in (slow, quick) for item in (await task).items]
    assert is_done
    assert len(leased) == len(set(leased)) == 4


async def test_nobody_is_declared_gone_in_the_middle_of_a_settle(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """What it settles could be leased by another before that is committed."""
    bench, _ = benches
    made = await bench.accepted()
    lease, item = await bench.take_one()
    gate = held_at_commit(bench)
    settling = asyncio.create_task(bench.settle_first(lease, item, 1, sent(0, bench.now)))
    await gate.reached()
    try:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            asking.execute("SELECT 1 FROM member WHERE id = %s FOR UPDATE NOWAIT", (lease.token % _MEMBER,))
    finally:
        gate.open()
    assert await settling == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_who_was_declared_gone_neither_leases_nor_settles(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """Also before anybody has freed what it had."""
    frozen, bench = benches
    made = await frozen.accepted()
    lease, item = await frozen.take_one()
    fresh = await bench.accepted(user="bob")
    asking.execute("DELETE FROM member WHERE id = %s", (lease.token % _MEMBER,))
    assert await frozen.settle_first(lease, item, 1, sent(0, frozen.now)) == [Stale(made.id, 0, 1)]
    assert (await frozen.lease()).items == ()
    assert set(await bench.leasable()) == {made.id, fresh.id}


async def test_what_was_let_go_of_is_settled_by_who_has_it_now(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """Both are alive: only the claim says whose it is."""
    bench, other = benches
    made = await bench.accepted()
    lease, item = await bench.take_one()
    asking.execute("UPDATE claim SET holder = NULL, free_at = %s", (bench.now,))
    theirs, same = await other.take_one()
    assert await bench.settle_first(lease, item, 1, sent(0, bench.now)) == [Stale(made.id, 0, 1)]
    assert await other.settle_first(theirs, same, 1, sent(0, other.now)) == []


async def _under_way(bench: Bench) -> tuple[Lease, WorkItem]:
    """One target of two is sent, the other one still leased."""
    await bench.accepted()
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 2, sent(0, bench.now)) == []
    return lease, item


async def test_a_target_that_comes_back_later_is_anybodys(benches: list[Bench]) -> None:
    bench, other = benches
    lease, item = await _under_way(bench)
    assert await bench.settle_rest(lease, item, Change(1, 1, Unstarted(), bench.now)) == []
    assert await other.leasable() == [item.notification.id]


async def test_what_is_let_go_of_in_a_long_commit_is_found(benches: list[Bench]) -> None:
    """Others have looked by then for what waits since later."""
    bench, other = benches
    lease, item = await _under_way(bench)
    gate = held_at_commit(bench)
    settling = asyncio.create_task(bench.settle_rest(lease, item, Change(1, 1, Unstarted(), bench.now)))
    await gate.reached()
    bench.clock.advance(10 * SECOND_MS)
    assert (await other.lease()).items == ()
    gate.open()
    await settling
    assert [each.notification.id for each in (await other.lease()).items] == [item.notification.id]


async def test_an_intent_is_its_workers_for_as_long_as_that_lives(benches: list[Bench]) -> None:
    """Its deadline is for those that died: this one still hears the answer."""
    bench, other = benches
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 1, intent(0, bench.now)) == []
    bench.clock.advance(MINUTE_MS)
    for each in (bench, other):
        await each.worker.promote_due(each.now, 10)
    assert await bench.settle_rest(lease, item, sent(0, bench.now)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_an_intent_that_is_given_back_is_not_to_be_had(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    bench, _ = benches
    await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 1, intent(0, bench.now)) == []
    await bench.settle(lease, Settled(item.notification, given_back=True))
    assert asking.execute("SELECT * FROM claim").fetchall() == []


async def test_what_was_withdrawn_and_given_back_is_over_at_once(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """Nobody need lease it once more to find that out."""
    bench, _ = benches
    made = await bench.accepted()
    lease, item = await bench.take_one()
    assert isinstance(await bench.withdraw(made), TooLate)
    await bench.settle(lease, Settled(item.notification, given_back=True))
    assert await bench.status(made) is NotificationStatus.CANCELLED
    assert asking.execute("SELECT * FROM claim").fetchall() == []


async def test_nothing_is_left_of_what_was_withdrawn_as_its_worker_died(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """Who finds it ends its claim: it would have it for ever."""
    bench, other = benches
    _, item = await _under_way(bench)
    assert isinstance(await other.withdraw(item.notification), TooLate)
    await bench.store.crash(bench.worker)
    assert await other.leasable() == []
    assert asking.execute("SELECT * FROM claim").fetchall() == []


async def test_what_a_dead_worker_had_can_be_withdrawn_before_it_is_freed(benches: list[Bench]) -> None:
    bench, other = benches
    made = await bench.accepted()
    await bench.take_one()
    await bench.store.crash(bench.worker)
    assert await other.withdraw(made) == Withdrawn(0)
    assert await other.leasable() == []


async def test_what_waits_is_not_in_the_way_of_what_comes_due_behind_it(benches: list[Bench]) -> None:
    """A release of so many at most counts what it releases, not what was released before."""
    bench, _ = benches
    await _fresh(bench, 8)
    for item in (lease := await bench.take(8)).items:
        await bench.settle_first(lease, item, 1, again(0, bench.now, wait_ms=SECOND_MS))
    bench.clock.advance(SECOND_MS)
    released = 0
    for _ in range(8):
        for each in benches:
            released += await each.worker.promote_due(each.now, 1) or 0
    assert released == 8


async def test_a_withdrawal_waits_for_who_leases_what_waits(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """What is about to be leased is leased as it is decided about."""
    bench, other = benches
    made = await bench.accepted()
    await bench.settle(lease := await bench.take(), Settled(lease.items[0].notification, given_back=True))
    gate = held_at_commit(bench)
    leasing = asyncio.create_task(bench.lease())
    await gate.reached()
    withdrawing = asyncio.create_task(other.withdraw(made))
    await ended_or_waits(withdrawing, asking)
    gate.open()
    assert [item.notification.id for item in (await leasing).items] == [made.id]
    assert isinstance(await withdrawing, TooLate)


async def test_what_was_let_go_by_a_clock_far_behind_is_found(
    benches: list[Bench], asking: psycopg.Connection[tuple[int, ...]]
) -> None:
    """Leases begin where something waits; what lies before is looked through every ten minutes."""
    bench, _ = benches
    made = await bench.accepted()
    await bench.take()
    bench.clock.advance(MINUTE_MS)
    assert (await bench.lease()).items == ()
    asking.execute("UPDATE claim SET holder = NULL, free_at = 5")
    bench.clock.advance(WHOLE_EVERY_MS)
    assert [item.notification.id for item in (await bench.lease()).items] == [made.id]

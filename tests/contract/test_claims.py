"""What PostgreSQL alone must be asked: who has what when processes die, freeze, forget, or lease at the same moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

from tests.amending import withdraw as withdraw_all
from tests.contract.bench import Bench, again, intent, notification, sent, targets
from tests.contract.claims import ClaimsUnderTest
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.amendment import TooLate, Withdrawn
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.progress import Stale
from waypost.domain.status import NotificationStatus
from waypost.domain.time import MINUTE_MS
from waypost.ports.work import Lease, Settled
from waypost.stores.sql.claims.lease import LEASE, LeaseRequest

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]


@pytest_asyncio.fixture
async def stack(emptied_postgres: str) -> AsyncIterator[ClaimsUnderTest]:
    """An empty store."""
    opened = ClaimsUnderTest(emptied_postgres)
    await opened.open()
    yield opened
    await opened.close()


async def benches(stack: ClaimsUnderTest, count: int) -> list[Bench]:
    """Workers of it."""
    return [Bench(stack, worker) for worker in await stack.open_workers(count)]


async def test_a_lease_that_its_worker_knows_nothing_of_is_let_go_of(stack: ClaimsUnderTest) -> None:
    """As a crash or a failover brings it back that lost the settle; what is under way stays its worker's."""
    bench, other = await benches(stack, 2)
    lost = await bench.accepted()
    wanted = LeaseRequest(stack.member_of(bench.worker), Lane.NORMAL, 1, None, fresh=((lost.app, 0),))
    await stack.database_of(bench.worker).commits.submit(LEASE, wanted)
    whole, routed = await bench.accepted(user="bob"), await bench.accepted(user="eve")
    lease = await bench.take()
    items = {item.notification.id: item for item in lease.items}
    assert set(items) == {whole.id, routed.id}
    await bench.settle_first(lease, items[routed.id], 2, sent(0, bench.now))
    assert await stack.compare(bench.worker) == 1
    assert await stack.compare(bench.worker) == 0
    assert await other.leasable() == [lost.id]
    assert await bench.settle_rest(lease, items[routed.id], sent(1, bench.now)) == []
    assert await bench.settle_first(lease, items[whole.id], 1, sent(0, bench.now)) == []
    assert await bench.status(routed) is await bench.status(whole) is NotificationStatus.SENT


async def test_what_is_done_with_is_not_remembered(stack: ClaimsUnderTest, emptied_postgres: str) -> None:
    """However it ends: sent, to be tried again, given back, over before any target, settled by somebody else."""
    (bench,) = await benches(stack, 1)
    for n in range(5):
        await bench.accepted(user=f"user-{n}", guarantee=Guarantee.AT_MOST_ONCE if n == 4 else Guarantee.AT_LEAST_ONCE)
    lease = await bench.take()
    one, two, three, four, five = lease.items
    await bench.settle_first(lease, one, 1, sent(0, bench.now))
    await bench.settle_first(lease, two, 2, again(0, bench.now), sent(1, bench.now))
    await bench.settle(lease, Settled(three.notification, given_back=True))
    await bench.settle(lease, Settled(four.notification, verdict=NotificationStatus.EXPIRED))
    await bench.settle_first(lease, five, 1, intent(0, bench.now))
    assert stack.held_by(bench.worker) == {(five.notification.id, 0)}
    await bench.settle_rest(lease, five, sent(0, bench.now))
    assert stack.held_by(bench.worker) == set()
    with psycopg.connect(emptied_postgres) as connection:
        claimed = connection.execute("SELECT notification_id, n, holder FROM claim").fetchall()
    assert claimed == [(three.notification.id, -1, None)]


@shows("S2-20", "S3-75")
@pytest.mark.parametrize("count", [2, 4, 8])
async def test_workers_that_lease_at_the_same_moment_get_each_item_once(count: int, stack: ClaimsUnderTest) -> None:
    """While more is accepted, and some of it is given back: nothing is passed over, and nothing leased twice."""
    workers = await benches(stack, count)
    seen: Counter[bytes] = Counter()

    async def accept(bench: Bench) -> None:
        for _ in range(4):
            await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(25)))

    async def deliver(bench: Bench) -> None:
        back = True
        while seen.total() < 100 * count:
            lease = await bench.lease(17)
            if back and lease.items:
                back = False
                await bench.settle(lease, *(Settled(item.notification, given_back=True) for item in lease.items))
                continue
            seen.update(item.notification.id for item in lease.items)
            over = [Settled(item.notification, verdict=NotificationStatus.NO_TARGETS) for item in lease.items]
            assert not over or await bench.settle(lease, *over) == []

    await asyncio.gather(*(work(bench) for bench in workers for work in (accept, deliver)))
    assert len(seen) == seen.total() == 100 * count
    assert [await bench.worker.depth(Lane.NORMAL) for bench in workers] == [0] * count


async def test_a_withdrawal_and_a_lease_at_the_same_moment_agree(stack: ClaimsUnderTest) -> None:
    """Each notification is either leased, and too late, or withdrawn, and in nobody's lease."""
    bench, other = await benches(stack, 2)
    made = [await bench.accepted(user=f"u{n}") for n in range(40)]
    ids = [one.id for one in made]

    async def withdraw() -> set[bytes]:
        answers = await withdraw_all(other.worker, made[0].app, ids, "why", other.now)
        assert all(isinstance(answer, Withdrawn | TooLate) for answer in answers)
        return {one for one, answer in zip(ids, answers, strict=True) if isinstance(answer, Withdrawn)}

    async def lease() -> set[bytes]:
        leases = [await bench.lease(10) for _ in range(4)]
        return {item.notification.id for each in leases for item in each.items}

    withdrawn, leased = await asyncio.gather(withdraw(), lease())
    leased |= {item.notification.id for item in (await bench.lease(100)).items}
    assert withdrawn & leased == set()
    assert withdrawn | leased == set(ids)


async def test_no_plan_leases_more_than_was_asked_for(stack: ClaimsUnderTest, emptied_postgres: str) -> None:
    """Where PostgreSQL believes that there is one row, it may pick anew for each row that it finds instead."""
    (bench,) = await benches(stack, 1)
    made = [await bench.accepted(user="u0")]
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        connection.execute("ANALYZE claim")
    made += [await bench.accepted(user=f"u{n}") for n in range(1, 6)]
    fresh = [await bench.lease(1) for _ in made]
    assert [lease.items[0].notification.id for lease in fresh] == [one.id for one in made]
    for lease in fresh:
        await bench.settle(lease, Settled(lease.items[0].notification, given_back=True))
    waiting = [await bench.lease(1) for _ in made]
    assert sorted(lease.items[0].notification.id for lease in waiting) == [one.id for one in made]


async def test_whoever_is_no_member_any_more_settles_and_extends_nothing(
    stack: ClaimsUnderTest, emptied_postgres: str
) -> None:
    """A worker that was frozen for longer than its lease finds that all it had is another's."""
    frozen, bench = await benches(stack, 2)
    made = await frozen.accepted()
    lease, item = await frozen.take_one()
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        connection.execute("DELETE FROM member WHERE id = %s", (lease.token % (1 << 40),))
    taken_over, same = await bench.take_one()
    assert same.notification.id == item.notification.id
    late = Settled(item.notification, (sent(0, frozen.now),), targets(1))
    assert await frozen.settle(lease, late) == [Stale(made.id, 0, 1)]
    assert await bench.receipts(made) == ()
    assert await bench.settle_first(taken_over, same, 1, sent(0, bench.now)) == []


async def test_any_worker_leases_what_any_other_accepted(stack: ClaimsUnderTest) -> None:
    """In accept order, whoever owns the user's shard; and whoever is asked decides a withdrawal."""
    one, other = await benches(stack, 2)
    made = [await one.accepted(user=f"u{n}") for n in range(6)]
    leases: list[Lease] = [await each.lease(3) for each in (one, other)]
    assert [item.notification.id for lease in leases for item in lease.items] == [each.id for each in made]
    assert isinstance(await other.withdraw(made[0]), TooLate)


async def test_work_of_a_store_that_knew_no_claims_is_taken_over(stack: ClaimsUnderTest, emptied_postgres: str) -> None:
    """What is fresh, and what is due, needs no row to be found."""
    without = SqlUnderTest(emptied_postgres)
    await without.open()
    stored = Bench(without, (await without.open_workers(1))[0])
    tried, fresh = await stored.accepted(user="a"), await stored.accepted(user="b")
    lease = await stored.lease(1)
    await stored.settle_first(lease, lease.items[0], 1, again(0, stored.now))
    await without.close()
    (bench,) = await benches(stack, 1)
    bench.clock.advance(MINUTE_MS)
    assert set(await bench.leasable()) == {tried.id, fresh.id}

"""Work.lease, extend and depth: an item is in at most one valid lease."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.contract.bench import APP, OTHER_APP, RETRY_MS, Bench, again, intent, notification, sent
from tests.contract.promised import promise
from tests.contract.stores import LEASE_MS, StoreUnderTest
from tests.shows import shows
from waypost.domain.amendment import Withdraw, Withdrawn
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.progress import Stale
from waypost.domain.status import NotificationStatus
from waypost.domain.time import later
from waypost.ports.promises import Promise
from waypost.ports.work import Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.LEASES_ONCE)]


async def test_an_empty_queue_leases_nothing_and_does_not_wait(bench: Bench) -> None:
    lease = await bench.lease()
    assert (lease.items, lease.lane) == ((), Lane.NORMAL)


async def test_at_most_the_number_asked_for(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(10)))
    assert len((await bench.lease(3)).items) == 3
    assert len((await bench.lease(100)).items) == 7


async def test_what_is_leased_is_not_leased_again(bench: Bench) -> None:
    await bench.accepted()
    await bench.lease()
    assert await bench.leasable() == []


async def test_leases_have_tokens_of_their_own(bench: Bench) -> None:
    assert (await bench.lease()).token != (await bench.lease()).token


@promise(Promise.KEEPS_ORDER)
async def test_fresh_items_of_a_user_come_in_accept_order(bench: Bench) -> None:
    made = [await bench.accepted(user="ann") for _ in range(5)]
    found = [item.notification.id for n in (2, 3) for item in (await bench.lease(n)).items]
    assert found == [one.id for one in made]


@promise(Promise.KEEPS_ORDER)
async def test_a_waiting_retry_does_not_hold_later_messages(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    second = await bench.accepted()
    assert await bench.leasable() == [second.id]


@promise(Promise.TAKES_TURNS)
async def test_apps_take_turns_within_a_lease(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(40)))
    await bench.accept(*(notification(bench.now, user=f"u{n}", app=OTHER_APP) for n in range(5)))
    lease = await bench.lease(10)
    assert Counter(item.notification.app for item in lease.items) == {APP: 5, OTHER_APP: 5}


@promise(Promise.TAKES_TURNS)
async def test_apps_take_turns_between_leases(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(40)))
    await bench.accept(*(notification(bench.now, user=f"u{n}", app=OTHER_APP) for n in range(5)))
    leases = [await bench.lease(1) for _ in range(10)]
    assert Counter(lease.items[0].notification.app for lease in leases) == {APP: 5, OTHER_APP: 5}


@promise(Promise.TAKES_TURNS)
async def test_an_app_alone_gets_all_there_is(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}", app=OTHER_APP) for n in range(7)))
    assert len((await bench.lease(7)).items) == 7


async def test_a_lease_can_be_extended(bench: Bench) -> None:
    await bench.accepted()
    lease = await bench.lease()
    assert await bench.worker.extend(lease, later(bench.now, 2 * LEASE_MS))
    bench.clock.advance(LEASE_MS)
    assert await bench.leasable() == []


@shows("S2-21")
async def test_what_a_dead_worker_held_is_leased_again(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.lease()
    assert await (await bench.crash()).leasable() == [made.id]


@promise(Promise.KEEPS_ORDER)
async def test_a_dead_workers_items_come_back_in_accept_order(bench: Bench) -> None:
    made = [await bench.accepted() for _ in range(4)]
    await bench.lease(3)
    assert await (await bench.crash()).leasable() == [one.id for one in made]


async def test_an_overtaken_lease_cannot_be_extended(timed_store: StoreUnderTest) -> None:
    frozen, other = await _two(timed_store)
    await frozen.accepted()
    lease = await frozen.lease()
    timed_store.clock.advance(LEASE_MS)
    assert len((await other.lease()).items) == 1
    assert not await frozen.worker.extend(lease, later(timed_store.clock.now(), LEASE_MS))


async def test_an_ended_lease_that_nobody_took_over_can_be_extended(timed_store: StoreUnderTest) -> None:
    slow, other = await _two(timed_store)
    await slow.accepted()
    lease = await slow.lease()
    timed_store.clock.advance(LEASE_MS)
    assert await slow.worker.extend(lease, later(timed_store.clock.now(), LEASE_MS))
    assert (await other.lease()).items == ()


async def test_an_ended_lease_of_what_was_withdrawn_since_cannot_be_extended(timed_store: StoreUnderTest) -> None:
    frozen, other = await _two(timed_store)
    made = await frozen.accepted()
    lease = await frozen.lease()
    timed_store.clock.advance(LEASE_MS)
    assert await other.worker.amend([Withdraw(made.app, made.id, "cancelled")], other.now) == [Withdrawn(0)]
    assert not await frozen.worker.extend(lease, later(timed_store.clock.now(), LEASE_MS))


async def test_a_frozen_workers_late_answer_loses_to_the_first(timed_store: StoreUnderTest) -> None:
    frozen, other = await _two(timed_store)
    made = await frozen.accepted()
    late_lease, late_item = await frozen.take_one()
    timed_store.clock.advance(LEASE_MS)
    lease, item = await other.take_one()
    assert await other.settle_first(lease, item, 1, sent(0, timed_store.clock.now(), provider_id="first")) == []
    late = sent(0, timed_store.clock.now(), provider_id="late")
    assert [one.n for one in await frozen.settle_first(late_lease, late_item, 1, late)] == [0]
    assert (await frozen.receipts(made))[0].provider_id == "first"


async def test_a_frozen_workers_answer_counts_when_it_is_the_first(timed_store: StoreUnderTest) -> None:
    frozen, other = await _two(timed_store)
    made = await frozen.accepted()
    late_lease, late_item = await frozen.take_one()
    timed_store.clock.advance(LEASE_MS)
    lease, item = await other.take_one()
    assert (
        await frozen.settle_first(late_lease, late_item, 1, sent(0, timed_store.clock.now(), provider_id="first")) == []
    )
    assert len(await other.settle_first(lease, item, 1, sent(0, timed_store.clock.now(), provider_id="second"))) == 1
    assert (await frozen.receipts(made))[0].provider_id == "first"
    assert await frozen.status(made) is NotificationStatus.SENT


async def test_an_overtaken_worker_may_not_send_what_the_other_intends(timed_store: StoreUnderTest) -> None:
    frozen, other = await _two(timed_store)
    made = await frozen.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    late_lease, late_item = await frozen.take_one()
    timed_store.clock.advance(LEASE_MS)
    lease, item = await other.take_one()
    assert await other.settle_first(lease, item, 1, intent(0, timed_store.clock.now())) == []
    refused = await frozen.settle_first(late_lease, late_item, 1, intent(0, timed_store.clock.now()))
    assert refused == [Stale(made.id, 0, 1)]


async def test_an_overtaken_worker_gives_back_nothing(timed_store: StoreUnderTest) -> None:
    frozen, other = await _two(timed_store)
    await frozen.accepted()
    late_lease, late_item = await frozen.take_one()
    timed_store.clock.advance(LEASE_MS)
    await other.take_one()
    await frozen.settle(late_lease, Settled(late_item.notification, given_back=True))
    assert await frozen.leasable() == []


async def test_two_workers_share_the_work_without_overlap(store: StoreUnderTest) -> None:
    one, other = [Bench(store, worker) for worker in await store.open_workers(2)]
    made = [notification(one.now, user=f"u{n}") for n in range(60)]
    await one.accept(*made[:30])
    await other.accept(*made[30:])
    leases = [await bench.lease(7) for _ in range(10) for bench in (one, other)]
    found = [item.notification.id for lease in leases for item in lease.items]
    assert sorted(found) == [each.id for each in made]


async def test_concurrent_accepts_and_leases_of_two_workers_lose_and_repeat_nothing(store: StoreUnderTest) -> None:
    benches = [Bench(store, worker) for worker in await store.open_workers(2)]
    made = [notification(benches[0].now, user=f"u{n}") for n in range(200)]
    found: list[bytes] = []

    async def accept_all(bench: Bench, share: int) -> None:
        for n in range(share, len(made), 20):
            await bench.accept(*made[n : n + 10])

    async def deliver(bench: Bench) -> None:
        while len(found) < len(made):
            lease = await bench.take(8)
            found.extend(item.notification.id for item in lease.items)
            parts = (Settled(item.notification, verdict=NotificationStatus.NO_TARGETS) for item in lease.items)
            assert await bench.settle(lease, *parts) == []
            await asyncio.sleep(0)

    await asyncio.gather(
        *(accept_all(bench, share) for bench, share in zip(benches, (0, 10), strict=True)), *map(deliver, benches)
    )
    assert sorted(found) == [each.id for each in made]
    assert dict(await store.views.balance()) == {NotificationStatus.NO_TARGETS: 200}


@shows("S3-91")
@promise(Promise.COUNTS)
async def test_depth_is_what_could_be_leased_now(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(3)))
    await bench.accepted(scheduled_at=later(bench.now, RETRY_MS))
    await bench.accepted(lane=Lane.HIGH)
    assert await bench.worker.depth(Lane.NORMAL) == 3
    lease = await bench.lease(2)
    assert await bench.worker.depth(Lane.NORMAL) == 1
    await bench.settle(lease, *(Settled(item.notification, given_back=True) for item in lease.items))
    assert await bench.worker.depth(Lane.NORMAL) == 3


@promise(Promise.COUNTS)
async def test_depth_counts_released_retries(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    assert await bench.worker.depth(Lane.NORMAL) == 0
    bench.clock.advance(RETRY_MS)
    await bench.worker.promote_due(bench.now, 10)
    assert await bench.worker.depth(Lane.NORMAL) == 1


async def _two(store: StoreUnderTest) -> tuple[Bench, Bench]:
    one, other = await store.open_workers(2)
    return Bench(store, one), Bench(store, other)

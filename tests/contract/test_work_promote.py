"""Work.release: due entries become leasable, never early; a crash repeats, never loses."""

from __future__ import annotations

import pytest

from tests.contract.bench import APP, OTHER_APP, RETRY_MS, Bench, again, parked, sent
from tests.contract.promised import promise
from tests.shows import shows
from waypost.domain.ids import AppId
from waypost.domain.notification import Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, MINUTE_MS, SECOND_MS, later
from waypost.ports.promises import Promise
from waypost.ports.work import Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.KEEPS_TIME)]

APNS = "breaker:demo/apns"
FCM = "breaker:demo/fcm"
TICK_MS = 50
"""As often a worker releases."""


async def _waiting(bench: Bench, wait_ms: int = RETRY_MS) -> Notification:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now, wait_ms=wait_ms))
    return made


async def _parked(bench: Bench, ttl_ms: int = HOUR_MS, condition: str = APNS) -> Notification:
    made = await bench.accepted(ttl_ms=ttl_ms)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, parked(0, bench.now, made.expires_at, condition))
    return made


async def _leased(bench: Bench) -> list[bytes]:
    return [item.notification.id for item in (await bench.lease()).items]


async def test_nothing_due_releases_nothing(bench: Bench) -> None:
    assert await bench.worker.promote_due(bench.now, 100) == 0


@shows("S3-108", "S4-67", "S4-68", "S4-75")
async def test_a_schedule_is_released_at_its_time_and_not_before(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    bench.clock.advance(HOUR_MS - 1)
    assert await bench.worker.promote_due(bench.now, 100) == 0
    assert await _leased(bench) == []
    bench.clock.advance(1)
    assert await bench.worker.promote_due(bench.now, 100) == 1
    lease = await bench.lease()
    assert [(item.notification.id, item.open_targets) for item in lease.items] == [(made.id, None)]


@shows("S4-03")
async def test_a_released_schedule_reads_pending(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    bench.clock.advance(HOUR_MS)
    await bench.worker.promote_due(bench.now, 100)
    assert await bench.status(made) is NotificationStatus.PENDING


async def test_a_schedule_in_the_past_is_due_at_once(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, -HOUR_MS))
    assert await bench.leasable() == [made.id]


@shows("S1-72", "S1-73", "S1-74", "S3-61", "S4-24")
async def test_a_retry_is_released_at_its_time_and_not_before(bench: Bench) -> None:
    made = await _waiting(bench)
    bench.clock.advance(RETRY_MS - 1)
    assert await bench.worker.promote_due(bench.now, 100) == 0
    bench.clock.advance(1)
    assert await bench.worker.promote_due(bench.now, 100) == 1
    assert await _leased(bench) == [made.id]


@shows("S4-70")
async def test_what_is_released_is_not_released_again(bench: Bench) -> None:
    await _waiting(bench)
    await bench.accepted(scheduled_at=later(bench.now, RETRY_MS))
    bench.clock.advance(RETRY_MS)
    assert await bench.worker.promote_due(bench.now, 100) == 2
    assert await bench.worker.promote_due(bench.now, 100) == 0
    await bench.lease()
    assert await bench.worker.promote_due(bench.now, 100) == 0


async def test_a_crash_after_a_release_loses_nothing(bench: Bench) -> None:
    retry = await _waiting(bench)
    scheduled = await bench.accepted(scheduled_at=later(bench.now, RETRY_MS))
    bench.clock.advance(RETRY_MS)
    await bench.worker.promote_due(bench.now, 100)
    assert sorted(await (await bench.crash()).leasable()) == [retry.id, scheduled.id]


@shows("S4-70")
async def test_a_crash_after_a_lease_of_released_work_loses_nothing(bench: Bench) -> None:
    retry = await _waiting(bench)
    scheduled = await bench.accepted(scheduled_at=later(bench.now, RETRY_MS))
    bench.clock.advance(RETRY_MS)
    await bench.take()
    assert sorted(await (await bench.crash()).leasable()) == [retry.id, scheduled.id]


@shows("S3-62", "S3-108", "S4-69")
async def test_at_most_the_number_asked_for_becomes_leasable(bench: Bench) -> None:
    for _ in range(5):
        await bench.accepted(scheduled_at=later(bench.now, RETRY_MS))
    bench.clock.advance(RETRY_MS)
    assert await bench.worker.promote_due(bench.now, 3) == 3
    assert len(await _leased(bench)) == 3
    assert await bench.worker.promote_due(bench.now, 3) == 2


@shows("S1-105", "S3-62", "S4-69")
async def test_earlier_retries_are_released_first(bench: Bench) -> None:
    late = await _waiting(bench, wait_ms=2 * RETRY_MS)
    early = await _waiting(bench, wait_ms=RETRY_MS)
    bench.clock.advance(HOUR_MS)
    assert await bench.worker.promote_due(bench.now, 1) == 1
    assert await _leased(bench) == [early.id]
    assert await bench.worker.promote_due(bench.now, 1) == 1
    assert await _leased(bench) == [late.id]


@shows("S1-105")
async def test_retries_of_one_user_that_are_due_together_keep_the_order_of_their_acceptance(bench: Bench) -> None:
    """One waits since its second attempt, the other since its first (requirement S1-105)."""
    first, second = await bench.accepted(), await bench.accepted()
    lease = await bench.take()
    items = {item.notification.id: item for item in lease.items}
    assert await bench.settle_first(lease, items[first.id], 1, again(0, bench.now, wait_ms=SECOND_MS)) == []
    bench.clock.advance(SECOND_MS)
    retried, item = await bench.take_one()
    assert await bench.settle_rest(retried, item, again(0, bench.now, attempt=2, wait_ms=8 * SECOND_MS)) == []
    bench.clock.advance(6 * SECOND_MS)
    assert await bench.settle_first(lease, items[second.id], 1, again(0, bench.now, wait_ms=2 * SECOND_MS)) == []
    bench.clock.advance(2 * SECOND_MS)
    due = await bench.take()
    assert [each.notification.id for each in due.items] == [first.id, second.id]


@shows("S1-73", "S4-68")
async def test_the_clock_stepping_back_releases_nothing_early(bench: Bench) -> None:
    await _waiting(bench)
    bench.clock.advance(-HOUR_MS)
    assert await bench.leasable() == []
    bench.clock.advance(HOUR_MS + RETRY_MS)
    assert len(await bench.leasable()) == 1


async def test_a_parked_delivery_waits_for_its_condition(bench: Bench) -> None:
    await _parked(bench)
    bench.clock.advance(MINUTE_MS)
    assert await bench.worker.promote_due(bench.now, 100) == 0
    assert await bench.worker.promote_due(bench.now, 100, {FCM: 100}) == 0
    assert await _leased(bench) == []


async def test_a_lifted_condition_lets_as_many_through_as_it_says(bench: Bench) -> None:
    for _ in range(5):
        await _parked(bench)
    assert await bench.worker.promote_due(bench.now, 100, {APNS: 2}) == 2
    assert len(await _leased(bench)) == 2
    assert await bench.worker.promote_due(bench.now, 100, {APNS: 100}) == 3


async def test_those_that_expire_first_come_back_first(bench: Bench) -> None:
    last = await _parked(bench, ttl_ms=3 * HOUR_MS)
    first = await _parked(bench, ttl_ms=HOUR_MS)
    second = await _parked(bench, ttl_ms=2 * HOUR_MS)
    found = []
    for _ in range(3):
        assert await bench.worker.promote_due(bench.now, 100, {APNS: 1}) == 1
        found += await _leased(bench)
    assert found == [first.id, second.id, last.id]


async def test_each_condition_is_lifted_by_itself(bench: Bench) -> None:
    apns = await _parked(bench, condition=APNS)
    fcm = await _parked(bench, condition=FCM)
    assert await bench.worker.promote_due(bench.now, 100, {FCM: 10}) == 1
    assert await _leased(bench) == [fcm.id]
    assert await bench.worker.promote_due(bench.now, 100, {APNS: 10}) == 1
    assert await _leased(bench) == [apns.id]


async def test_each_condition_that_something_waits_for_is_named_while_it_does(bench: Bench) -> None:
    assert await bench.worker.conditions() == frozenset()
    for condition in (APNS, FCM, FCM):
        await _parked(bench, condition=condition)
    assert await bench.worker.conditions() == {APNS, FCM}
    assert await bench.worker.promote_due(bench.now, 100, {APNS: 10}) == 1
    lease = await bench.lease()
    await bench.settle(lease, Settled(lease.items[0].notification, (sent(0, bench.now),)))
    assert await bench.worker.conditions() == {FCM}


async def test_the_number_asked_for_bounds_what_is_lifted_too(bench: Bench) -> None:
    for _ in range(4):
        await _parked(bench)
    assert await bench.worker.promote_due(bench.now, 3, {APNS: 100}) == 3


async def test_a_condition_lifted_by_nothing_lifts_nothing(bench: Bench) -> None:
    await _parked(bench)
    assert await bench.worker.promote_due(bench.now, 100, {APNS: 0}) == 0


async def test_a_parked_delivery_comes_back_to_expire(bench: Bench) -> None:
    made = await _parked(bench, ttl_ms=MINUTE_MS)
    bench.clock.advance(MINUTE_MS - 1)
    assert await bench.worker.promote_due(bench.now, 100) == 0
    bench.clock.advance(1)
    assert await bench.worker.promote_due(bench.now, 100) == 1
    assert await _leased(bench) == [made.id]


async def test_parking_spends_no_attempt_however_often(bench: Bench) -> None:
    made = await _parked(bench)
    for _ in range(3):
        await bench.worker.promote_due(bench.now, 100, {APNS: 1})
        lease, item = await bench.take_one()
        target = (item.open_targets or ())[0]
        assert (target.attempt, target.retries, target.throttles) == (0, 0, 0)
        assert await bench.settle_rest(lease, item, parked(0, bench.now, made.expires_at)) == []
    assert await bench.worker.promote_due(bench.now, 100) == 0


async def test_a_lifted_delivery_whose_worker_dies_is_not_lost(bench: Bench) -> None:
    made = await _parked(bench)
    await bench.worker.promote_due(bench.now, 100, {APNS: 1})
    await bench.lease()
    second = await bench.crash()
    await second.worker.promote_due(second.now, 100, {APNS: 1})
    assert await _leased(second) == [made.id]


async def test_what_is_leased_is_not_released(bench: Bench) -> None:
    await _waiting(bench, wait_ms=SECOND_MS)
    bench.clock.advance(SECOND_MS)
    await bench.take_one()
    bench.clock.advance(SECOND_MS)
    assert await bench.worker.promote_due(bench.now, 100) == 0
    assert await _leased(bench) == []


@promise(Promise.TAKES_TURNS)
@pytest.mark.parametrize("kind", ["scheduled", "a retry", "parked"])
async def test_apps_take_turns_in_what_is_due(bench: Bench, kind: str) -> None:
    """Six of one app come before one of another: with room for three, the other is among them."""
    lifted: dict[str, int] = {}
    for app, n in ((APP, 6), (OTHER_APP, 1)):
        for _ in range(n):
            if kind == "scheduled":
                await bench.accepted(app=app, scheduled_at=later(bench.now, RETRY_MS))
                continue
            made = await bench.accepted(app=app)
            lease, item = await bench.take_one()
            waits = parked(0, bench.now, made.expires_at, f"breaker:{app}/apns")
            change = waits if kind == "parked" else again(0, bench.now)
            await bench.settle_first(lease, item, 1, change)
            if kind == "parked":
                lifted[f"breaker:{app}/apns"] = 10
        bench.clock.advance(1)
    bench.clock.advance(RETRY_MS)
    assert await bench.worker.promote_due(bench.now, 3, lifted) == 3
    apps = [item.notification.app for item in (await bench.lease()).items]
    assert sorted(apps) == [APP, APP, OTHER_APP]
    assert await bench.worker.promote_due(bench.now, 100, lifted) == 4


@promise(Promise.TAKES_TURNS)
async def test_more_apps_than_there_is_room_for_have_their_turn_one_after_the_other(bench: Bench) -> None:
    for app in (APP, OTHER_APP):
        for _ in range(3):
            await bench.accepted(app=app, scheduled_at=later(bench.now, RETRY_MS))
    bench.clock.advance(RETRY_MS)
    served: list[AppId] = []
    for _ in range(2):
        bench.clock.advance(TICK_MS)
        assert await bench.worker.promote_due(bench.now, 1) == 1
        served += [item.notification.app for item in (await bench.lease()).items]
    assert sorted(served) == [APP, OTHER_APP]

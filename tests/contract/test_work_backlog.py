"""What counts as backlog: all that is accepted and not final, by lane and app, but for what is scheduled."""

from __future__ import annotations

import pytest

from tests.contract.bench import APP as DEMO
from tests.contract.bench import OTHER_APP, RETRY_MS, Bench, again, notification, parked, sent
from tests.contract.promised import promise
from waypost.domain.backlog import AppLag
from waypost.domain.notification import Lane
from waypost.domain.time import later
from waypost.ports.promises import Promise

pytestmark = [pytest.mark.asyncio, promise(Promise.COUNTS)]


async def test_each_app_and_lane_is_counted_for_itself(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(3)))
    await bench.accept(notification(bench.now, app=OTHER_APP), notification(bench.now, lane=Lane.HIGH))
    assert await bench.worker.backlog(bench.now, 1) == {
        (Lane.NORMAL, DEMO): 3,
        (Lane.NORMAL, OTHER_APP): 1,
        (Lane.HIGH, DEMO): 1,
    }


async def test_what_is_leased_parked_or_waits_for_its_retry_counts_until_it_is_over(bench: Bench) -> None:
    waiting = [await bench.accepted() for _ in range(3)]
    lease = await bench.lease()
    await bench.settle_first(lease, lease.items[0], 1, parked(0, bench.now, waiting[0].expires_at, "room:normal/apns"))
    await bench.settle_first(lease, lease.items[1], 1, again(0, bench.now))
    assert await bench.worker.backlog(bench.now, 1) == {(Lane.NORMAL, DEMO): 3}
    await bench.settle_first(lease, lease.items[2], 1, sent(0, bench.now))
    assert await bench.worker.backlog(bench.now, 1) == {(Lane.NORMAL, DEMO): 2}


async def test_what_is_scheduled_counts_from_its_time_on(bench: Bench) -> None:
    await bench.accepted()
    await bench.accepted(scheduled_at=later(bench.now, RETRY_MS))
    await bench.accepted(lane=Lane.HIGH, scheduled_at=later(bench.now, RETRY_MS))
    assert await bench.worker.backlog(bench.now, 1) == {(Lane.NORMAL, DEMO): 1}
    bench.clock.advance(RETRY_MS)
    assert await bench.worker.backlog(bench.now, 1) == {(Lane.NORMAL, DEMO): 2, (Lane.HIGH, DEMO): 1}


async def test_the_oldest_of_each_lane_and_app_is_known_until_its_first_attempt_is_over(bench: Bench) -> None:
    first = bench.now
    await bench.accepted()
    await bench.accepted(app=OTHER_APP)
    second = bench.clock.advance(RETRY_MS)
    await bench.accepted()
    await bench.accepted(lane=Lane.HIGH, scheduled_at=later(bench.now, RETRY_MS))
    await bench.worker.depth(Lane.NORMAL)
    assert await bench.worker.lag() == {
        (Lane.NORMAL, DEMO): AppLag(2, first),
        (Lane.NORMAL, OTHER_APP): AppLag(1, first),
        (Lane.HIGH, DEMO): AppLag(1),
    }
    lease = await bench.lease(3)
    for item in (each for each in lease.items if each.notification.created_at == first):
        await bench.settle_first(lease, item, 1, again(0, bench.now))
    assert await bench.worker.lag() == {
        (Lane.NORMAL, DEMO): AppLag(2, second),
        (Lane.NORMAL, OTHER_APP): AppLag(1),
        (Lane.HIGH, DEMO): AppLag(1),
    }

"""Released work waits in memory: a bounded number of each lane, no lane behind another, and all of it is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import OTHER_APP, again, notification, sent, targets
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql import due_pages, promote, work

pytestmark = pytest.mark.asyncio


async def test_a_lane_that_is_not_leased_from_fills_no_memory_and_holds_up_no_other(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign of eight is due before one critical retry, and a lane may hold five in memory."""
    monkeypatch.setattr(work, "_READY_LIMIT", 5)
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    campaign = [notification(now, lane=Lane.LOW, scheduled_at=later(now, n)) for n in range(1, 9)]
    urgent = notification(now, lane=Lane.CRITICAL)
    await store.work.accept([NewNotification(each) for each in (*campaign, urgent)])
    lease = await store.work.lease(Lane.CRITICAL, 1, later(now, MINUTE_MS))
    await store.work.settle(lease, [Settled(urgent, (again(0, now),), targets(1))])

    released = [await store.work.promote_due(later(now, HOUR_MS), 6) for _ in range(3)]
    assert sum(released) == 6
    critical = await store.work.lease(Lane.CRITICAL, 10, later(now, MINUTE_MS))
    assert [item.notification.id for item in critical.items] == [urgent.id]

    low = []
    while items := (await store.work.lease(Lane.LOW, 10, later(now, MINUTE_MS))).items:
        low += [item.notification.id for item in items]
        await store.work.promote_due(later(now, HOUR_MS), 6)
    assert low == [each.id for each in campaign]


async def test_an_app_that_fills_the_memory_of_a_lane_holds_up_no_other(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is leased meanwhile: what is due later of another app is in memory all the same."""
    monkeypatch.setattr(work, "_READY_LIMIT", 5)
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    flood = [notification(now, scheduled_at=later(now, n)) for n in range(1, 21)]
    await store.work.accept([NewNotification(each) for each in flood])
    assert await store.work.promote_due(later(now, HOUR_MS), 100) == 5
    assert await store.work.promote_due(later(now, HOUR_MS), 100) == 0
    other = notification(now, app=OTHER_APP, scheduled_at=later(now, MINUTE_MS))
    await store.work.accept([NewNotification(other)])
    assert await store.work.promote_due(later(now, HOUR_MS), 100) == 1
    lease = await store.work.lease(Lane.NORMAL, 3, later(now, MINUTE_MS))
    assert other.id in [item.notification.id for item in lease.items]


@pytest.mark.parametrize("lane", [Lane.NORMAL, Lane.CRITICAL])
async def test_what_is_due_behind_pages_of_what_is_in_hand_is_found_in_its_order(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch, lane: Lane
) -> None:
    """Eleven notifications and as many retries are more than a first page and two further ones, with some in hand."""
    for module in (due_pages, promote):
        monkeypatch.setattr(module, "FIRST", 3)
    monkeypatch.setattr(promote, "_PAGE", 2)
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    retried = [notification(now, lane=lane) for _ in range(11)]
    await store.work.accept([NewNotification(each) for each in retried])
    lease = await store.work.lease(lane, 11, later(now, MINUTE_MS))
    await store.work.settle(
        lease, [Settled(each, (again(0, now, wait_ms=n),), targets(1)) for n, each in enumerate(retried)]
    )
    whole = [notification(now, lane=lane, scheduled_at=later(now, n)) for n in range(1, 12)]
    await store.work.accept([NewNotification(each) for each in whole])

    leased: list[bytes] = []
    for most in (4, 7, 11, 11):
        released = await store.work.promote_due(later(now, HOUR_MS), most)
        items = (await store.work.lease(lane, 100, later(now, MINUTE_MS))).items
        assert len(items) == released
        leased += [item.notification.id for item in items]
    assert leased == [each.id for each in (*whole, *retried)]


async def test_a_timer_that_met_something_rests_again_once_that_is_over(tmp_path: Path, open_at: OpenStore) -> None:
    """While it is in hand it looks at once; afterwards until what is due next."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    first, second = (notification(now, scheduled_at=later(now, after)) for after in (1, HOUR_MS))
    await store.work.accept([NewNotification(first)])
    assert [await store.work.promote_due(later(now, MINUTE_MS), 9) for _ in range(2)] == [1, 0]
    lease = await store.work.lease(Lane.NORMAL, 9, later(now, MINUTE_MS))
    await store.work.settle(lease, [Settled(first, (sent(0, now),), targets(1))])
    await store.work.accept([NewNotification(second)])
    assert [await store.work.promote_due(later(now, MINUTE_MS), 9) for _ in range(2)] == [0, 0]
    assert store.work.quiet_until() == second.scheduled_at
    assert await store.work.promote_due(later(now, HOUR_MS), 9) == 1

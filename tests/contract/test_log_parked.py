"""What waits is not held in memory past a limit, and stands in nobody's way."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection

import pytest

from tests.amending import withdraw
from tests.contract.bench import APP, RETRY_MS, Bench, notification
from tests.contract.log import LogUnderTest
from tests.journeys.harness import until
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.domain.settlement import Again, Parked
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, later
from waypost.stores.kafka import assignment
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.rereading import Found
from waypost.stores.kafka.task_queue import Shelved, Waiting

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

AWAY = "breaker:demo/apns"


@pytest.fixture(autouse=True)
def few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One, so that the next is on the shelf."""
    monkeypatch.setattr(assignment, "WHOLE_LIMIT", 1)


async def bench_of(store: LogUnderTest, count: int) -> tuple[Bench, list[Notification]]:
    """A worker with so many parked notifications of one user each."""
    bench = Bench(store, (await store.open_workers(1))[0])
    made = [notification(bench.now, user=f"user-{n}") for n in range(count)]
    for each in made:
        await bench.routed(each, Parked(AWAY, later(bench.now, DAY_MS)))
    assert await bench.worker.conditions() == {AWAY}
    return bench, made


def whole(store: LogUnderTest) -> int:
    """How many waiting tasks the worker holds in memory."""
    (log,) = store._logs.values()
    return log._assignment.task_queue.whole


async def test_what_is_parked_past_the_limit_comes_back_from_the_log(log_store: LogUnderTest) -> None:
    bench, made = await bench_of(log_store, 4)
    assert whole(log_store) == 1
    assert await bench.worker.promote_due(bench.now, 100, {AWAY: 3}) == 3
    first = await bench.lease(100)
    assert await bench.worker.promote_due(bench.now, 100, {AWAY: 3}) == 1
    second = await bench.lease(100)
    found = {item.notification.id: item for lease in (first, second) for item in lease.items}
    assert {each.id: each for each in made} == {each: item.notification for each, item in found.items()}
    assert await bench.worker.conditions() == frozenset()


async def test_the_retry_of_another_is_not_held_up_by_what_is_parked(log_store: LogUnderTest) -> None:
    bench, _ = await bench_of(log_store, 3)
    retried = notification(bench.now, user="another")
    await bench.routed(retried, Again(later(bench.now, RETRY_MS), spends_attempt=True, code="503", why="away"))
    log_store.clock.advance(RETRY_MS)
    assert await bench.leasable() == [retried.id]


async def test_a_partition_that_gives_nothing_again_holds_up_no_other(
    log_store: LogUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no leader: what waits in the others comes back meanwhile, and what waits in it once there is one."""
    bench, made = await bench_of(log_store, 8)
    (log,) = log_store._logs.values()
    by_partition = defaultdict(set)
    for each in log._assignment.task_queue.each():
        by_partition[each.part.place].add(_id_of(each))
    mute, other = sorted(by_partition, key=lambda place: len(by_partition[place]))
    elected, read = asyncio.Event(), log._rereading.read

    async def leaderless(place: PartitionRef, offsets: Collection[int]) -> Found:
        if place == mute:
            await elected.wait()
        return await read(place, offsets)

    monkeypatch.setattr(log._rereading, "read", leaderless)
    released = await bench.worker.promote_due(bench.now, 100, {AWAY: 100})
    ids = set(await bench.leasable())
    assert len(ids) == released
    assert by_partition[other] <= ids
    assert ids - by_partition[other] <= by_partition[mute]
    elected.set()

    async def all_back() -> bool:
        await bench.worker.promote_due(bench.now, 100, {AWAY: 100})
        ids.update(await bench.leasable())
        return ids == {each.id for each in made}

    await until(all_back, "what waits in the partition that has a leader again")


async def test_what_is_parked_on_the_shelf_can_be_cancelled(log_store: LogUnderTest) -> None:
    bench, made = await bench_of(log_store, 3)
    ids = [each.id for each in made]
    await withdraw(bench.worker, APP, ids, "changed my mind", bench.now)

    async def all_cancelled() -> bool:
        assert await bench.leasable() == []
        return set((await _statuses(log_store, ids)).values()) == {NotificationStatus.CANCELLED}

    await until(all_cancelled, "their end")


def _id_of(waiting: Waiting) -> NotificationId:
    return waiting.id if isinstance(waiting, Shelved) else waiting.task.notification.id


async def _statuses(store: LogUnderTest, ids: list[NotificationId]) -> dict[NotificationId, NotificationStatus]:
    return await store.views.statuses(APP, ids)

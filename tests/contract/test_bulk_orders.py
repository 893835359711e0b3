"""Orders to a bulk job: paused, failed, resumed and cancelled, in every state."""

from __future__ import annotations

import pytest

from tests.amending import withdraw
from tests.contract.bench import APP, OTHER_APP, Bench, again
from tests.contract.bulk_bench import (
    created,
    ids_of,
    job,
    leased,
    record,
    registered,
    taken,
    users_of,
    walked,
)
from waypost.domain.bulk import JOB_TRANSITIONS, JobOrder, JobState
from waypost.domain.channel import APNS
from waypost.domain.delivery import Target
from waypost.domain.ids import DeviceId
from waypost.domain.status import NotificationStatus
from waypost.ports.work import Settled

pytestmark = pytest.mark.asyncio

SENT = NotificationStatus.SENT
USERS = [f"u{n:02}" for n in range(12)]


@pytest.mark.parametrize(("order", "state"), [(JobOrder.PAUSE, JobState.PAUSED), (JobOrder.FAIL, JobState.FAILED)])
async def test_a_paused_or_failed_job_is_neither_walked_nor_leased(
    order: JobOrder, state: JobState, bench: Bench
) -> None:
    await registered(bench, *USERS)
    made = await created(bench, job())
    await bench.bulk.enqueue(APP, made.id, 6, 3)
    lease = await leased(bench, 2)
    assert await bench.bulk.order(APP, made.id, order, bench.now) is state
    assert (await leased(bench)).items == ()
    assert (await bench.bulk.enqueue(APP, made.id, 6, 3)).recipients == 0
    assert await bench.bulk.running() == []
    await bench.settle(lease, *(taken(item, bench.now) for item in lease.items))
    assert await bench.bulk.order(APP, made.id, JobOrder.RESUME, bench.now) is JobState.RUNNING
    assert users_of(await leased(bench)) == USERS[2:6], "who is on the way is not sent to twice"


async def test_a_failed_job_says_what_kind_of_error_it_was_until_it_goes_on(bench: Bench) -> None:
    made = await created(bench, job())
    assert (await record(bench, made)).failure is None
    await bench.bulk.order(APP, made.id, JobOrder.FAIL, bench.now, "DataError")
    assert (await record(bench, made)).failure == "DataError"
    await bench.bulk.order(APP, made.id, JobOrder.RESUME, bench.now)
    assert (await record(bench, made)).failure is None


async def test_a_cancelled_job_sends_nothing_more_and_takes_back_its_retries(bench: Bench) -> None:
    await registered(bench, *USERS)
    made = await created(bench, job())
    await walked(bench, made, piece=4)
    lease = await leased(bench, 2)
    first, second = lease.items
    target = (Target(0, DeviceId("d"), APNS),)
    await bench.settle(lease, Settled(first.notification, (again(0, bench.now),), target))
    assert await bench.bulk.order(APP, made.id, JobOrder.CANCEL, bench.now) is JobState.CANCELLED
    assert (await leased(bench)).items == ()
    await bench.settle(lease, taken(second, bench.now))
    orders = await bench.bulk.tidy(bench.now, 100)
    assert orders == [(APP, first.notification.id)]
    await withdraw(bench.worker, APP, [first.notification.id], "cancelled", bench.now)
    ended = await record(bench, made)
    assert ended.counts == {SENT: 1, NotificationStatus.CANCELLED: 11}
    assert await bench.bulk.tidy(bench.now, 100) == []
    waiting = await ids_of(bench, made, USERS[5:6])
    assert waiting["u05"] is not None
    detail = await bench.store.views.detail(APP, waiting["u05"])
    assert detail is not None and detail.record.status is NotificationStatus.CANCELLED


@pytest.mark.parametrize("order", JobOrder)
@pytest.mark.parametrize("state", JobState)
async def test_every_order_in_every_state(state: JobState, order: JobOrder, bench: Bench) -> None:
    way = {
        JobState.UPLOADING: (),
        JobState.RUNNING: (JobOrder.START,),
        JobState.PAUSED: (JobOrder.START, JobOrder.PAUSE),
        JobState.FAILED: (JobOrder.START, JobOrder.FAIL),
        JobState.CANCELLED: (JobOrder.CANCEL,),
        JobState.FINISHED: (JobOrder.START,),
    }
    made = await created(bench, job(registry=None))
    for each in way[state]:
        await bench.bulk.order(APP, made.id, each, bench.now)
    if state is JobState.FINISHED:
        await walked(bench, made)
        await bench.bulk.tidy(bench.now, 100)
    assert (await record(bench, made)).state is state
    assert await bench.bulk.order(APP, made.id, order, bench.now) is JOB_TRANSITIONS[state].get(order, state)
    assert await bench.bulk.order(OTHER_APP, made.id, order, bench.now) is None

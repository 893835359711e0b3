"""Work.amend by Reschedule: what waits for its time gets another one; from that time on it is too late."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.bench import OTHER_APP, Bench, new_id, sent
from tests.contract.promised import promise
from waypost.domain.amendment import Amended, NotOpen, Reschedule, Rescheduled, TooLate
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, MINUTE_MS, Instant, later
from waypost.ports.promises import Promise

pytestmark = [pytest.mark.asyncio, promise(Promise.KEEPS_TIME)]


async def moved(
    bench: Bench, made: Notification, at: Instant, app: AppId | None = None, of: NotificationId | None = None
) -> Amended:
    """The answer to an order to send *made* at another time."""
    (answer,) = await bench.worker.amend([Reschedule(app or made.app, of or made.id, at)], bench.now)
    return answer


async def due(bench: Bench) -> list[NotificationId]:
    """What is leased once what is due is released."""
    await bench.worker.promote_due(bench.now, 10)
    return list(await bench.leasable())


@pytest.mark.parametrize("hours", [1, 3])
async def test_what_waits_is_sent_at_its_new_time_and_not_before(bench: Bench, hours: int) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, 2 * HOUR_MS), ttl_ms=MINUTE_MS)
    at = later(bench.now, hours * HOUR_MS)
    assert await moved(bench, made, at) == Rescheduled(at)
    found = (await bench.detail(made)).record
    assert (found.status, found.notification.scheduled_at) == (NotificationStatus.SCHEDULED, at)
    assert found.notification.expires_at == later(at, MINUTE_MS), "its whole TTL, from then on"
    bench.clock.advance(hours * HOUR_MS - 1)
    assert await due(bench) == []
    bench.clock.advance(1)
    assert await due(bench) == [made.id]


async def test_a_time_that_is_over_is_now(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    assert await moved(bench, made, Instant(0)) == Rescheduled(bench.now)
    assert await due(bench) == [made.id]


async def test_it_is_moved_as_often_as_is_wanted(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    last = later(bench.now, 2 * HOUR_MS)
    orders = [Reschedule(made.app, made.id, at) for at in (later(bench.now, 5 * HOUR_MS), last)]
    assert (await bench.worker.amend(orders, bench.now))[-1] == Rescheduled(last)
    bench.clock.advance(2 * HOUR_MS)
    assert await due(bench) == [made.id]


async def test_from_its_time_on_it_is_too_late(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    bench.clock.advance(HOUR_MS)
    assert await moved(bench, made, later(bench.now, HOUR_MS)) == TooLate(0), "due"
    await bench.worker.promote_due(bench.now, 10)
    assert await moved(bench, made, later(bench.now, HOUR_MS)) == TooLate(0), "released"
    lease, item = await bench.take_one()
    assert isinstance(await moved(bench, made, later(bench.now, HOUR_MS)), TooLate), "leased"
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await moved(bench, made, later(bench.now, HOUR_MS)) == NotOpen(NotificationStatus.SENT)


async def test_what_never_waited_or_is_anothers_is_not_moved(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    at = later(bench.now, 2 * HOUR_MS)
    assert await moved(bench, made, at, app=OTHER_APP) == NotOpen(None)
    assert await moved(bench, made, at, of=new_id(bench.now)) == NotOpen(None)
    await bench.withdraw(made)
    assert await moved(bench, made, at) == NotOpen(NotificationStatus.CANCELLED)
    fresh = await bench.accepted()
    assert isinstance(await moved(bench, fresh, at), TooLate | NotOpen)
    assert await bench.leasable() == [fresh.id]


async def test_of_an_order_and_the_timer_the_first_counts(bench: Bench) -> None:
    """Either it is moved and not leased before, or it is released and the order comes too late."""
    made = [await bench.accepted(scheduled_at=later(bench.now, MINUTE_MS)) for _ in range(10)]
    bench.clock.advance(MINUTE_MS - 1)  # to whoever is ordered it is not due yet, to the timer it is
    at = later(bench.now, HOUR_MS)
    orders = [Reschedule(one.app, one.id, at) for one in made]
    answers, _ = await asyncio.gather(
        bench.worker.amend(orders, bench.now), bench.worker.promote_due(later(bench.now, 1), 5)
    )
    late = {one.id for one, answer in zip(made, answers, strict=True) if isinstance(answer, TooLate)}
    assert set(await bench.leasable()) == late
    bench.clock.advance(HOUR_MS)
    assert set(await due(bench)) == {one.id for one in made} - late

"""Work.withdraw: atomic against lease; what waits is cancelled, what is leased ends with its present attempt."""

from __future__ import annotations

import asyncio

import pytest

from tests.amending import withdraw
from tests.contract.bench import (
    OTHER_APP,
    RETRY_MS,
    Bench,
    again,
    by_content,
    intent,
    new_id,
    notification,
    parked,
    sent,
    targets,
)
from tests.contract.promised import promise
from tests.contract.stores import LEASE_MS, StoreUnderTest
from tests.shows import shows
from waypost.domain.amendment import NotOpen, TooLate, Withdrawn
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.notification import Guarantee
from waypost.domain.settlement import Change, Unstarted
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import HOUR_MS, later
from waypost.ports.promises import Promise
from waypost.ports.work import NewNotification, Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.CANCELS)]

WHY = "cancelled by the caller"


@shows("S3-47")
@promise(Promise.ANSWERS_CANCELS)
async def test_what_is_not_leased_is_never_sent(bench: Bench) -> None:
    made = await bench.accepted()
    assert isinstance(await bench.withdraw(made), Withdrawn)
    assert await bench.leasable() == []
    record = (await bench.detail(made)).record
    assert (record.status, record.reason, record.finished_at) == (NotificationStatus.CANCELLED, WHY, bench.now)


@shows("S3-47")
async def test_a_schedule_is_taken_back(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    assert isinstance(await bench.withdraw(made), Withdrawn)
    bench.clock.advance(HOUR_MS)
    assert await bench.leasable() == []
    assert await bench.status(made) is NotificationStatus.CANCELLED


@promise(Promise.ANSWERS_CANCELS)
async def test_an_unknown_id_was_never_open(bench: Bench) -> None:
    answers = await withdraw(bench.worker, OTHER_APP, [new_id(bench.now)], WHY, bench.now)
    assert answers == [NotOpen(None)]


@promise(Promise.ANSWERS_CANCELS)
async def test_another_apps_notification_is_unknown(bench: Bench) -> None:
    made = await bench.accepted()
    assert await withdraw(bench.worker, OTHER_APP, [made.id], WHY, bench.now) == [NotOpen(None)]


async def test_another_app_cancels_nothing(bench: Bench) -> None:
    made = await bench.accepted()
    await withdraw(bench.worker, OTHER_APP, [made.id], WHY, bench.now)
    assert await bench.leasable() == [made.id]


async def test_what_is_final_stays_as_it_is(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await bench.withdraw(made) == NotOpen(NotificationStatus.SENT)
    assert await bench.status(made) is NotificationStatus.SENT


async def test_a_second_withdrawal_finds_nothing_open(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.withdraw(made)
    assert await bench.withdraw(made) == NotOpen(NotificationStatus.CANCELLED)


@promise(Promise.RECORDS_DUPLICATES)
async def test_a_duplicates_record_is_not_open(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)), NewNotification(second, (by_content(second),)))
    assert await bench.withdraw(second) == NotOpen(NotificationStatus.DEDUPLICATED)


@promise(Promise.ANSWERS_CANCELS)
async def test_one_answer_per_id_in_order(bench: Bench) -> None:
    waiting, leased = await bench.accepted(user="a"), await bench.accepted(user="b")
    lease = await bench.lease()
    back = [item for item in lease.items if item.notification.id == waiting.id]
    await bench.settle(lease, Settled(back[0].notification, given_back=True))
    unknown = new_id(bench.now)
    answers = await withdraw(bench.worker, waiting.app, [leased.id, unknown, waiting.id], WHY, bench.now)
    assert [type(answer) for answer in answers] == [TooLate, NotOpen, Withdrawn]


async def test_what_is_leased_is_too_late_and_its_outcome_counts(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    assert isinstance(await bench.withdraw(made), TooLate)
    assert await bench.settle_first(lease, item, 1, sent(0, bench.now)) == []
    assert await bench.status(made) is NotificationStatus.SENT


@promise(Promise.ANSWERS_CANCELS)
async def test_a_leased_target_counts_as_handed_over(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 3, sent(0, bench.now))
    assert await bench.withdraw(made) == TooLate(handed_over=3)


@promise(Promise.ANSWERS_CANCELS)
async def test_waiting_retries_are_cancelled(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now), again(1, bench.now))
    assert await bench.withdraw(made) == Withdrawn(cancelled=1, handed_over=1)
    bench.clock.advance(RETRY_MS)
    assert await bench.leasable() == []
    receipt = (await bench.receipts(made))[1]
    assert (receipt.status, receipt.reason, receipt.due_at) == (DeliveryStatus.CANCELLED, WHY, None)
    assert await bench.status(made) is NotificationStatus.SENT, "what is cancelled is left out"


@promise(Promise.ANSWERS_CANCELS)
async def test_a_released_retry_that_nobody_leased_is_cancelled(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    bench.clock.advance(RETRY_MS)
    await bench.worker.promote_due(bench.now, 100)
    assert isinstance(await bench.withdraw(made), Withdrawn)
    assert (await bench.lease()).items == ()
    assert await bench.worker.depth(made.lane) == 0
    assert await bench.status(made) is NotificationStatus.CANCELLED


@promise(Promise.ANSWERS_CANCELS)
async def test_parked_deliveries_are_cancelled(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, parked(0, bench.now, made.expires_at))
    assert await bench.withdraw(made) == Withdrawn(cancelled=1)
    assert await bench.worker.promote_due(bench.now, 100, {"breaker:demo/apns": 10}) == 0
    assert await bench.status(made) is NotificationStatus.CANCELLED


async def test_no_attempt_after_the_present_one(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.withdraw(made)
    await bench.settle_first(lease, item, 2, again(0, bench.now), parked(1, bench.now, made.expires_at))
    assert [receipt.status for receipt in await bench.receipts(made)] == [DeliveryStatus.CANCELLED] * 2
    assert (await bench.receipts(made))[0].attempt == 1, "the attempt made is recorded"
    record = (await bench.detail(made)).record
    assert (record.status, record.reason) == (NotificationStatus.CANCELLED, WHY)
    bench.clock.advance(HOUR_MS)
    assert await bench.leasable() == []


@promise(Promise.ANSWERS_CANCELS)
async def test_a_withdrawn_items_waiting_targets_end_though_another_is_leased(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, again(1, bench.now))
    assert await bench.withdraw(made) == TooLate(handed_over=1)
    assert (await bench.receipts(made))[1].status is DeliveryStatus.CANCELLED
    await bench.settle_rest(lease, item, again(0, bench.now))
    assert await bench.status(made) is NotificationStatus.CANCELLED


async def test_a_withdrawn_item_that_is_given_back_is_cancelled(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.withdraw(made)
    await bench.settle(lease, Settled(item.notification, given_back=True))
    assert await bench.leasable() == []
    assert await bench.status(made) is NotificationStatus.CANCELLED


async def test_a_withdrawn_target_that_is_given_back_is_cancelled(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.withdraw(made)
    unstarted = Change(1, 1, Unstarted(), bench.now)
    await bench.settle(lease, Settled(item.notification, (sent(0, bench.now), unstarted), targets(2)))
    assert [receipt.status for receipt in await bench.receipts(made)] == [DeliveryStatus.SENT, DeliveryStatus.CANCELLED]
    assert await bench.leasable() == []


async def test_a_withdrawn_item_whose_worker_dies_is_not_leased_again(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.take_one()
    await bench.withdraw(made)
    second = await bench.crash()
    assert await second.leasable() == []
    assert await second.leasable() == []
    assert await second.status(made) is NotificationStatus.CANCELLED


async def test_withdrawn_targets_whose_worker_dies_are_cancelled(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now))
    assert isinstance(await bench.withdraw(made), TooLate)
    second = await bench.crash()
    assert await second.leasable() == []
    assert await second.leasable() == []
    assert [receipt.status for receipt in await second.receipts(made)] == [
        DeliveryStatus.SENT,
        DeliveryStatus.CANCELLED,
    ]
    assert await second.status(made) is NotificationStatus.SENT


@promise(Promise.ANSWERS_CANCELS)
async def test_an_intent_of_a_dead_worker_outlives_the_withdrawal(bench: Bench) -> None:
    """It may be at the provider already: only its deadline ends it."""
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, intent(0, bench.now, within_ms=2 * LEASE_MS))
    second = await bench.crash()
    assert await second.withdraw(made) == Withdrawn(cancelled=0, handed_over=1)
    assert await second.status(made) is NotificationStatus.PROCESSING
    second.clock.advance(2 * LEASE_MS)
    assert await second.leasable() == []
    assert await second.status(made) is NotificationStatus.UNKNOWN


@promise(Promise.JOURNALS)
async def test_the_journal_tells_of_cancelled_targets_and_of_the_end(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    await bench.withdraw(made)
    delivery, finished = (await bench.moves())[-2:]
    assert isinstance(delivery, DeliveryMoved)
    assert (delivery.n, delivery.before, delivery.after) == (0, DeliveryStatus.PENDING, DeliveryStatus.CANCELLED)
    assert isinstance(finished, NotificationMoved)
    assert (finished.before, finished.after, finished.reason) == (
        NotificationStatus.PENDING,
        NotificationStatus.CANCELLED,
        WHY,
    )


@promise(Promise.ANSWERS_CANCELS)
async def test_a_withdrawal_at_the_same_moment_as_a_lease_has_one_winner(store: StoreUnderTest) -> None:
    one, other = [Bench(store, worker) for worker in await store.open_workers(2)]
    made = [await one.accepted(user=f"u{n}") for n in range(40)]

    async def lease_all(bench: Bench) -> list[bytes]:
        leases = [await bench.lease(1) for _ in range(40)]
        return [item.notification.id for lease in leases for item in lease.items]

    async def withdraw_all() -> list[bytes]:
        answers = {each.id: await one.withdraw(each) for each in reversed(made)}
        return [each for each, answer in answers.items() if isinstance(answer, Withdrawn)]

    first, second, withdrawn = await asyncio.gather(lease_all(one), lease_all(other), withdraw_all())
    assert sorted([*first, *second, *withdrawn]) == [each.id for each in made]


async def test_either_worker_can_withdraw_what_the_other_leased(store: StoreUnderTest) -> None:
    one, other = [Bench(store, worker) for worker in await store.open_workers(2)]
    made = [await one.accepted(user=f"u{n}") for n in range(10)]
    leases = [await bench.lease() for bench in (one, other)]
    assert sum(len(lease.items) for lease in leases) == 10
    for bench in (one, other):
        answers = await withdraw(bench.worker, made[0].app, [each.id for each in made], WHY, bench.now)
        assert {type(answer) for answer in answers} == {TooLate}


async def test_a_thousand_at_once_are_withdrawn_whichever_workers_own_them(store: StoreUnderTest) -> None:
    """What the owners are asked, and answer, is longer than a message between them may be (PostgreSQL: 8,000 bytes)."""
    (asked, _) = await store.open_workers(2)
    bench = Bench(store, asked)
    made = [notification(bench.now, user=f"u{n}", scheduled_at=later(bench.now, HOUR_MS)) for n in range(1_000)]
    await bench.accept(*made)
    answers = await withdraw(asked, made[0].app, [each.id for each in made], "erased", bench.now)
    assert answers == [Withdrawn(0)] * len(made)

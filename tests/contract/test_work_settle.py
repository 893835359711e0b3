"""Work.settle: receipts, due times, acknowledgement, counters and the journal row, all of it or nothing."""

from __future__ import annotations

import pytest

from tests.contract.bench import APP, RETRY_MS, TOKEN_HASH, Bench, again, notification, parked, sent, targets, tried
from tests.contract.promised import promise
from tests.shows import shows
from waypost.domain.channel import Channel
from waypost.domain.delivery import FailureClass, OpenTarget, Target
from waypost.domain.ids import DeviceId
from waypost.domain.settlement import (
    Again,
    Cancelled,
    Change,
    Dead,
    Expired,
    Sent,
    Settlement,
    Suppressed,
    Unstarted,
    Unsure,
)
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import HOUR_MS, later
from waypost.ports.promises import Promise
from waypost.ports.work import Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.SETTLES_WHOLE)]

DEAD = Dead("BadTopic", "bad topic", FailureClass.TERMINAL, letter=True)


async def test_the_settle_that_closes_the_last_target_ends_the_notification(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 1, sent(0, bench.now)) == []
    record = (await bench.detail(made)).record
    assert (record.status, record.finished_at) == (NotificationStatus.SENT, bench.now)
    receipt = (await bench.receipts(made))[0]
    assert (receipt.status, receipt.attempt, receipt.provider_id) == (DeliveryStatus.SENT, 1, "p")
    assert receipt.sent_at == receipt.resolved_at == receipt.first_attempt_at == receipt.last_attempt_at == bench.now
    assert receipt.attempts == (tried(bench.now, "taken"),)
    assert await bench.leasable() == []


async def test_the_first_settle_stores_the_whole_target_list(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 3, sent(1, bench.now))
    receipts = await bench.receipts(made)
    assert [(receipt.n, receipt.device_id, receipt.status) for receipt in receipts] == [
        (0, "d0", DeliveryStatus.PENDING),
        (1, "d1", DeliveryStatus.SENT),
        (2, "d2", DeliveryStatus.PENDING),
    ]
    assert await bench.status(made) is NotificationStatus.PROCESSING


async def test_settling_part_keeps_the_rest_under_the_lease(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now))
    assert await bench.leasable() == []
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_after_a_crash_only_the_unsettled_targets_come_back(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 3, sent(1, bench.now))
    second = await bench.crash()
    lease, item = await second.take_one()
    assert item.open_targets == (
        OpenTarget(0, DeviceId("d0"), Channel("apns"), attempt=0),
        OpenTarget(2, DeviceId("d2"), Channel("apns"), attempt=0),
    )
    assert await second.settle_rest(lease, item, sent(0, second.now), sent(2, second.now)) == []
    assert await second.status(made) is NotificationStatus.SENT


async def test_before_the_first_write_a_new_lease_resolves_again(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.take_one()
    second = await bench.crash()
    lease, item = await second.take_one()
    assert item.open_targets is None
    await second.settle_first(lease, item, 2, sent(0, second.now), sent(1, second.now))
    assert len(await second.receipts(made)) == 2


async def test_suppressed_targets_are_stored_with_their_reason(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    listed = (*targets(1), Target(1, DeviceId("d1"), None, "unknown_platform"))
    await bench.settle(lease, Settled(item.notification, (sent(0, bench.now),), listed))
    receipt = (await bench.receipts(made))[1]
    assert (receipt.status, receipt.channel, receipt.reason) == (DeliveryStatus.SUPPRESSED, None, "unknown_platform")
    assert await bench.status(made) is NotificationStatus.SENT


async def test_a_list_of_suppressed_targets_ends_the_notification(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    listed = (Target(0, DeviceId("d0"), None, "unknown_platform"),)
    await bench.settle(lease, Settled(item.notification, targets=listed))
    assert await bench.status(made) is NotificationStatus.SUPPRESSED


@pytest.mark.parametrize(
    "verdict", [NotificationStatus.EXPIRED, NotificationStatus.NO_TARGETS, NotificationStatus.SUPPRESSED]
)
async def test_a_verdict_ends_a_notification_without_targets(bench: Bench, verdict: NotificationStatus) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    assert await bench.settle(lease, Settled(item.notification, verdict=verdict)) == []
    detail = await bench.detail(made)
    assert (detail.record.status, detail.record.finished_at, detail.receipts) == (verdict, bench.now, ())
    assert await bench.leasable() == []


@shows("S1-92", "S3-59")
@pytest.mark.parametrize(
    ("settlements", "status"),
    [
        ([Sent("p"), Sent("p")], NotificationStatus.SENT),
        ([Sent("p"), DEAD], NotificationStatus.PARTIAL),
        ([DEAD, DEAD], NotificationStatus.FAILED),
        ([Expired(), Expired()], NotificationStatus.EXPIRED),
        ([Expired(), DEAD], NotificationStatus.FAILED),
        ([Suppressed("x"), Suppressed("x")], NotificationStatus.SUPPRESSED),
        ([Suppressed("x"), Sent("p")], NotificationStatus.SENT),
        ([Suppressed("x"), Cancelled("y")], NotificationStatus.CANCELLED),
        ([Unsure("timeout"), DEAD], NotificationStatus.UNKNOWN),
        ([Unsure("timeout"), Sent("p")], NotificationStatus.PARTIAL),
    ],
)
async def test_the_final_status_comes_from_all_targets(
    bench: Bench, settlements: list[Settlement], status: NotificationStatus
) -> None:
    made = notification(bench.now)
    await bench.routed(made, *settlements)
    assert await bench.status(made) is status


async def test_the_final_status_of_targets_settled_one_by_one(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 3, sent(0, bench.now))
    await bench.settle_rest(lease, item, Change(1, 1, DEAD, bench.now, tried(bench.now, "refused")))
    assert await bench.status(made) is NotificationStatus.PROCESSING
    await bench.settle_rest(lease, item, Change(2, 1, Expired(), bench.now))
    assert await bench.status(made) is NotificationStatus.PARTIAL


@shows("S4-23")
async def test_a_retry_names_its_target_and_its_attempts(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now), again(1, bench.now))
    bench.clock.advance(RETRY_MS)
    lease, item = await bench.take_one()
    assert item.open_targets == (OpenTarget(1, DeviceId("d1"), Channel("apns"), attempt=1, retries=1),)


async def test_a_throttled_round_spends_no_retry(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    put_off = Again(later(bench.now, RETRY_MS), spends_attempt=False, code="429", why="throttled")
    await bench.settle_first(lease, item, 1, Change(0, 1, put_off, bench.now, tried(bench.now, "throttled")))
    bench.clock.advance(RETRY_MS)
    _, item = await bench.take_one()
    assert item.open_targets == (OpenTarget(0, DeviceId("d0"), Channel("apns"), attempt=1, retries=0, throttles=1),)


async def test_the_targets_of_a_notification_that_are_due_together_come_as_one_item(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(
        lease, item, 3, again(0, bench.now), again(1, bench.now, wait_ms=HOUR_MS), again(2, bench.now)
    )
    bench.clock.advance(RETRY_MS)
    _, item = await bench.take_one()
    assert [target.n for target in item.open_targets or ()] == [0, 2]


async def test_a_retry_may_be_leased_while_its_neighbour_is_still_under_way(bench: Bench) -> None:
    made = await bench.accepted()
    slow_lease, slow_item = await bench.take_one()
    await bench.settle_first(slow_lease, slow_item, 2, again(1, bench.now))
    bench.clock.advance(RETRY_MS)
    lease, item = await bench.take_one()
    assert [target.n for target in item.open_targets or ()] == [1]
    await bench.settle_rest(lease, item, sent(1, bench.now, attempt=2))
    await bench.settle_rest(slow_lease, slow_item, sent(0, bench.now))
    assert await bench.status(made) is NotificationStatus.SENT


@shows("S3-48")
async def test_attempts_only_grow_and_each_stays_readable(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    for attempt in (2, 3):
        bench.clock.advance(RETRY_MS)
        lease, item = await bench.take_one()
        assert await bench.settle_rest(lease, item, again(0, bench.now, attempt)) == []
    receipt = (await bench.receipts(made))[0]
    assert (receipt.attempt, receipt.retries, len(receipt.attempts)) == (3, 3, 3)
    assert receipt.last_attempt_at == bench.now
    assert receipt.due_at == later(bench.now, RETRY_MS)
    assert all(attempt.token_hash == TOKEN_HASH for attempt in receipt.attempts)


@shows("S1-17", "S2-36")
async def test_a_dead_delivery_leaves_its_letter(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    receipt = (await bench.receipts(made))[0]
    assert (receipt.status, receipt.dead, receipt.code) == (DeliveryStatus.FAILED, True, "BadTopic")
    assert receipt.failure_class is FailureClass.TERMINAL


async def test_a_given_back_fresh_item_is_leasable_at_once_and_fresh(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.accepted()
    lease = await bench.lease(1)
    await bench.settle(lease, Settled(lease.items[0].notification, given_back=True))
    again_leased = await bench.lease()
    assert again_leased.items[0].notification.id == made.id, "accept order holds"
    assert again_leased.items[0].open_targets is None


async def test_giving_back_the_rest_of_an_item_frees_only_what_is_open(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle(lease, Settled(item.notification, (sent(0, bench.now),), targets(2), given_back=True))
    lease, item = await bench.take_one()
    assert item.open_targets == (OpenTarget(1, DeviceId("d1"), Channel("apns"), attempt=0),)


async def test_an_unstarted_target_is_leasable_at_once_and_spends_no_attempt(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    unstarted = Change(1, 1, Unstarted(), bench.now)
    assert await bench.settle_first(lease, item, 2, sent(0, bench.now), unstarted) == []
    lease, item = await bench.take_one()
    assert item.open_targets == (OpenTarget(1, DeviceId("d1"), Channel("apns"), attempt=0),)


async def test_a_parked_target_reads_what_it_waits_for(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, parked(0, bench.now, made.expires_at))
    receipt = (await bench.receipts(made))[0]
    assert (receipt.parked, receipt.due_at, receipt.attempt) == ("breaker:demo/apns", made.expires_at, 0)
    assert await bench.status(made) is NotificationStatus.PROCESSING


async def test_one_settle_may_speak_of_many_items(bench: Bench) -> None:
    made = [await bench.accepted(user=f"u{n}") for n in range(20)]
    lease = await bench.take()
    parts = [Settled(item.notification, (sent(0, bench.now),), targets(1)) for item in lease.items]
    assert await bench.settle(lease, *parts) == []
    known = await bench.store.views.statuses(APP, [one.id for one in made])
    assert set(known.values()) == {NotificationStatus.SENT}
    assert len(known) == 20


async def test_a_settle_of_nothing_writes_nothing(bench: Bench) -> None:
    lease = await bench.lease()
    assert await bench.settle(lease) == []
    assert await bench.moves() == []

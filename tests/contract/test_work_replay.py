"""Replays: the only way out of a final state, a new round for what failed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.contract.bench import OTHER_APP, Bench, by_content, new_id, notification, sent
from tests.contract.promised import promise
from waypost.domain.delivery import FailureClass
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.notification import Notification
from waypost.domain.settlement import Again, Dead, Expired, Forget, Sent, Settlement, Suppressed, Unsure
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, MINUTE_MS, Instant, later
from waypost.pipeline.route import poisoned
from waypost.ports.promises import Promise
from waypost.ports.work import Accepted, NewNotification, NotReplayable, Replay, Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.REPLAYS)]

DEAD = Dead("500", "away", FailureClass.RETRYABLE, letter=True)


def _replay(made: Notification, now: Instant) -> Replay:
    return Replay(made.app, made.id, now, later(now, DAY_MS))


async def test_a_failed_notification_is_sent_again(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    bench.clock.advance(MINUTE_MS)
    assert await bench.accept(_replay(made, bench.now)) == [Accepted(made.id)]
    record = (await bench.detail(made)).record
    assert (record.status, record.round, record.finished_at) == (NotificationStatus.PROCESSING, 2, None)
    lease, item = await bench.take_one()
    assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_what_was_taken_starts_again_where_it_is_asked_for(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, Sent("p"))
    assert await bench.accept(_replay(made, bench.now)) == [NotReplayable(known=True)]
    assert await bench.accept(replace(_replay(made, bench.now), taken=True)) == [Accepted(made.id)]
    lease, item = await bench.take_one()
    assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == []
    assert await bench.status(made) is NotificationStatus.SENT


@pytest.mark.parametrize(
    ("settlement", "status"),
    [
        (DEAD, DeliveryStatus.FAILED),
        (Forget("Unregistered", Instant(1), letter=True), DeliveryStatus.FAILED),
        (Expired(), DeliveryStatus.EXPIRED),
        (Unsure("timeout"), DeliveryStatus.UNKNOWN),
    ],
)
async def test_failed_expired_and_unknown_targets_start_again(
    bench: Bench, settlement: Settlement, status: DeliveryStatus
) -> None:
    made = notification(bench.now)
    await bench.routed(made, settlement, Sent("p"))
    assert (await bench.receipts(made))[0].status is status
    await bench.accept(_replay(made, bench.now))
    receipt = (await bench.receipts(made))[0]
    assert (receipt.status, receipt.due_at, receipt.dead) == (DeliveryStatus.PENDING, bench.now, False)
    assert (receipt.retries, receipt.throttles, receipt.resolved_at) == (0, 0, None)


async def test_what_was_sent_or_suppressed_is_left_alone(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, Sent("p"), Suppressed("x"), DEAD)
    await bench.accept(_replay(made, bench.now))
    _, item = await bench.take_one()
    assert [target.n for target in item.open_targets or ()] == [2]


async def test_attempts_go_on_from_where_they_were(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    await bench.accept(_replay(made, bench.now))
    _, item = await bench.take_one()
    target = (item.open_targets or ())[0]
    assert (target.attempt, target.retries) == (1, 0)
    assert len((await bench.receipts(made))[0].attempts) == 1


async def test_the_round_has_an_end_of_its_own(bench: Bench) -> None:
    made = notification(bench.now, ttl_ms=MINUTE_MS)
    await bench.routed(made, Expired())
    bench.clock.advance(DAY_MS)
    replay = _replay(made, bench.now)
    await bench.accept(replay)
    _, item = await bench.take_one()
    assert item.notification.expires_at == replay.expires_at
    assert (await bench.detail(made)).record.notification.expires_at == replay.expires_at


@pytest.mark.parametrize("verdict", [NotificationStatus.NO_TARGETS, NotificationStatus.EXPIRED])
async def test_what_never_had_targets_is_routed_again(bench: Bench, verdict: NotificationStatus) -> None:
    made = await bench.accepted()
    later_one = await bench.accepted()
    lease = await bench.take()
    await bench.settle(lease, *(Settled(item.notification, verdict=verdict) for item in lease.items))
    assert await bench.accept(_replay(made, bench.now)) == [Accepted(made.id)]
    lease, item = await bench.take_one()
    assert (item.notification.id, item.open_targets) == (made.id, None)
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await bench.status(made) is NotificationStatus.SENT
    assert await bench.status(later_one) is verdict


async def test_what_was_poison_before_it_was_routed_is_routed_again(bench: Bench) -> None:
    """The receipt that stood for all of it goes; other due work is not held up by it."""
    made = notification(bench.now)
    await bench.accept(made)
    lease, item = await bench.take_one()
    over = poisoned(item, bench.now)
    await bench.settle(lease, Settled(made, over.changes, over.targets))
    assert await bench.status(made) is NotificationStatus.FAILED
    assert await bench.accept(_replay(made, bench.now)) == [Accepted(made.id)]
    assert await bench.receipts(made) == ()
    lease, item = await bench.take_one()
    assert item.open_targets is None
    await bench.settle_first(lease, item, 2, sent(0, bench.now), sent(1, bench.now))
    assert await bench.status(made) is NotificationStatus.SENT


async def test_an_unknown_id_is_not_replayable(bench: Bench) -> None:
    replay = Replay(OTHER_APP, new_id(bench.now), bench.now, later(bench.now, DAY_MS))
    assert await bench.accept(replay) == [NotReplayable(known=False)]


async def test_another_apps_notification_is_unknown(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    replay = Replay(OTHER_APP, made.id, bench.now, later(bench.now, DAY_MS))
    assert await bench.accept(replay) == [NotReplayable(known=False)]
    assert await bench.status(made) is NotificationStatus.FAILED


async def test_what_is_open_is_not_replayable(bench: Bench) -> None:
    made = await bench.accepted()
    assert await bench.accept(_replay(made, bench.now)) == [NotReplayable(known=True)]


async def test_what_failed_is_not_replayable_while_its_neighbour_waits(bench: Bench) -> None:
    """One device failed for good, the other is tried again: the notification is not over."""
    made = notification(bench.now)
    await bench.routed(made, DEAD, Again(later(bench.now, MINUTE_MS), spends_attempt=True, code="503", why="away"))
    assert await bench.accept(_replay(made, bench.now)) == [NotReplayable(known=True)]
    assert [receipt.status for receipt in await bench.receipts(made)] == [DeliveryStatus.FAILED, DeliveryStatus.PENDING]


async def test_a_second_replay_of_the_same_round_is_refused(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    replay = _replay(made, bench.now)
    assert await bench.accept(replay, replay) == [Accepted(made.id), NotReplayable(known=True)]
    assert await bench.accept(replay) == [NotReplayable(known=True)]
    assert (await bench.detail(made)).record.round == 2


@pytest.mark.parametrize("settlement", [Sent("p"), Suppressed("x")])
async def test_where_nothing_failed_there_is_nothing_to_replay(bench: Bench, settlement: Settlement) -> None:
    made = notification(bench.now)
    await bench.routed(made, settlement)
    assert await bench.accept(_replay(made, bench.now)) == [NotReplayable(known=True)]


@promise(Promise.CANCELS)
async def test_what_was_withdrawn_before_it_was_routed_is_not_replayable(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.withdraw(made)
    assert await bench.accept(_replay(made, bench.now)) == [NotReplayable(known=True)]


@promise(Promise.RECORDS_DUPLICATES)
async def test_a_duplicates_record_is_not_replayable(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)), NewNotification(second, (by_content(second),)))
    assert await bench.accept(_replay(second, bench.now)) == [NotReplayable(known=True)]


@promise(Promise.FINDS_REPEATS)
async def test_a_replay_neither_needs_nor_ends_a_dedup_window(bench: Bench) -> None:
    """What is being sent again is still what was said; ended by force, the next one is new beside it."""
    first, second, third = (notification(bench.now, body="same") for _ in range(3))
    await bench.accept(NewNotification(first, (by_content(first),)))
    await bench.routed(first, DEAD)
    assert await bench.accept(_replay(first, bench.now)) == [Accepted(first.id)]
    assert await bench.accept(NewNotification(second, (by_content(second),))) == [bench.duplicate(first, second)]
    assert await bench.store.dedup.forget([by_content(first).key]) == 1
    assert await bench.accept(NewNotification(third, (by_content(third),))) == [Accepted(third.id)]
    assert sorted(await bench.leasable()) == [first.id, third.id]


async def test_replays_and_arrivals_share_a_batch(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    fresh = notification(bench.now)
    answers = await bench.accept(NewNotification(fresh), _replay(made, bench.now))
    assert answers == [Accepted(fresh.id), Accepted(made.id)]
    assert sorted(await bench.leasable()) == [made.id, fresh.id]


async def test_a_replay_outlives_a_crash(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    await bench.accept(_replay(made, bench.now))
    assert await (await bench.crash()).leasable() == [made.id]


async def test_many_rounds(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    for attempt in (2, 3, 4):
        await bench.accept(_replay(made, bench.now))
        lease, item = await bench.take_one()
        change = sent(0, bench.now, attempt)
        if attempt < 4:
            change = type(change)(0, attempt, DEAD, bench.now, change.made)
        assert await bench.settle_rest(lease, item, change) == []
    record = (await bench.detail(made)).record
    assert (record.status, record.round) == (NotificationStatus.SENT, 4)


@promise(Promise.JOURNALS)
async def test_the_journal_tells_of_the_new_round_and_of_one_end_in_each(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, DEAD)
    await bench.accept(_replay(made, bench.now))
    lease, item = await bench.take_one()
    await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2))
    told = [(move.before, move.after) for move in await bench.moves() if isinstance(move, NotificationMoved)]
    assert told == [
        (None, NotificationStatus.PENDING),
        (NotificationStatus.PENDING, NotificationStatus.FAILED),
        (NotificationStatus.FAILED, NotificationStatus.PENDING),
        (NotificationStatus.PENDING, NotificationStatus.SENT),
    ]
    deliveries = [(move.before, move.after) for move in await bench.moves() if isinstance(move, DeliveryMoved)]
    assert deliveries == [
        (DeliveryStatus.PENDING, DeliveryStatus.FAILED),
        (DeliveryStatus.FAILED, DeliveryStatus.PENDING),
        (DeliveryStatus.PENDING, DeliveryStatus.SENT),
    ]

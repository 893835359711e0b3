"""Work.accept: keys, record and queue entry become visible together, or none of them."""

from __future__ import annotations

import msgspec
import pytest

from tests.contract.bench import APP, OTHER_APP, Bench, by_content, by_key, notification
from tests.contract.promised import promise
from tests.shows import shows
from waypost.domain.delivery import FailureClass
from waypost.domain.errors import Unavailable
from waypost.domain.ids import CallerId
from waypost.domain.moves import NotificationMoved
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Dead, Sent
from waypost.domain.status import NotificationStatus
from waypost.domain.status import NotificationStatus as N
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, later
from waypost.ports.promises import Promise
from waypost.ports.work import Accepted, Conflicting, Duplicate, NewNotification, Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.ACCEPTS_DURABLY)]


@shows("S1-91", "S3-45")
async def test_an_accepted_notification_can_be_read_and_leased_at_once(bench: Bench) -> None:
    made = await bench.accepted()
    assert await bench.status(made) is NotificationStatus.PENDING
    assert (await bench.detail(made)).record.notification == made
    lease = await bench.lease()
    assert [item.notification for item in lease.items] == [made]


async def test_fresh_work_names_no_targets(bench: Bench) -> None:
    await bench.accepted()
    assert (await bench.lease()).items[0].open_targets is None


async def test_one_answer_per_item_in_order(bench: Bench) -> None:
    first, second, third = (notification(bench.now, user=user) for user in ("a", "b", "c"))
    assert await bench.accept(first, second, third) == [Accepted(first.id), Accepted(second.id), Accepted(third.id)]


async def test_an_empty_batch_is_answered_with_nothing(bench: Bench) -> None:
    assert await bench.accept() == []


@promise(Promise.ACCEPTS_ONCE)
async def test_a_known_id_is_accepted_but_not_new(bench: Bench) -> None:
    made = await bench.accepted()
    assert await bench.accept(made) == [Accepted(made.id, new=False)]
    assert await bench.leasable() == [made.id]


@promise(Promise.ACCEPTS_ONCE)
async def test_the_same_id_twice_in_one_batch_is_one_notification(bench: Bench) -> None:
    made = notification(bench.now)
    assert await bench.accept(made, made) == [Accepted(made.id), Accepted(made.id, new=False)]
    assert await bench.leasable() == [made.id]


@promise(Promise.ACCEPTS_ONCE, Promise.CANCELS)
async def test_a_known_id_is_not_sent_again_after_it_is_final(bench: Bench) -> None:
    made = await bench.accepted()
    await bench.withdraw(made)
    assert await bench.accept(made) == [Accepted(made.id, new=False)]
    assert await bench.leasable() == []
    assert await bench.status(made) is NotificationStatus.CANCELLED


@promise(Promise.ACCEPTS_ONCE, Promise.FINDS_REPEATS)
async def test_a_repeat_by_id_with_its_claims_is_not_its_own_duplicate(bench: Bench) -> None:
    made = notification(bench.now)
    arrival = NewNotification(made, (by_key(made, "k"), by_content(made)))
    assert await bench.accept(arrival) == [Accepted(made.id)]
    assert await bench.accept(arrival) == [Accepted(made.id, new=False)]


@shows("S1-06", "S1-28", "S1-80", "S1-82")
@promise(Promise.RECORDS_DUPLICATES)
async def test_equal_content_in_its_window_is_a_duplicate_that_leaves_a_record(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)))
    assert await bench.accept(NewNotification(second, (by_content(second),))) == [bench.duplicate(first, second)]
    record = (await bench.detail(second)).record
    assert (record.status, record.duplicate_of) == (NotificationStatus.DEDUPLICATED, first.id)
    assert (await bench.detail(first)).duplicates == (second.id,)
    assert await bench.leasable() == [first.id]


@promise(Promise.FINDS_REPEATS)
async def test_the_second_of_two_equal_items_of_one_batch_is_the_firsts_duplicate(bench: Bench) -> None:
    first, second, third = (notification(bench.now, body="same") for _ in range(3))
    answers = await bench.accept(*(NewNotification(made, (by_content(made),)) for made in (first, second, third)))
    assert answers == [Accepted(first.id), bench.duplicate(first, second), bench.duplicate(first, third)]
    assert await bench.leasable() == [first.id]


@promise(Promise.RECORDS_DUPLICATES)
async def test_a_duplicates_own_repeat_gets_the_same_answer(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)))
    arrival = NewNotification(second, (by_content(second),))
    assert await bench.accept(arrival) == await bench.accept(arrival) == [bench.duplicate(first, second)]
    assert (await bench.detail(first)).duplicates == (second.id,)


@promise(Promise.FINDS_REPEATS)
async def test_equal_content_without_a_claim_is_no_duplicate(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)))
    assert await bench.accept(second) == [Accepted(second.id)]


@shows("S1-25", "S1-79")
@promise(Promise.FINDS_REPEATS)
async def test_equal_content_from_another_caller_is_another_notification(bench: Bench) -> None:
    """Requirements S1-79."""
    first = notification(bench.now, body="same")
    second = msgspec.structs.replace(notification(bench.now, body="same"), caller=CallerId("billing"))
    answers = await bench.accept(*(NewNotification(made, (by_content(made),)) for made in (first, second)))
    assert answers == [Accepted(first.id), Accepted(second.id)]


@shows("S1-07")
@promise(Promise.FINDS_REPEATS)
async def test_equal_content_is_new_when_the_window_is_over(bench: Bench) -> None:
    first = notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first, window_ms=MINUTE_MS),)))
    bench.clock.advance(MINUTE_MS)
    second = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(second, (by_content(second, MINUTE_MS),))) == [Accepted(second.id)]
    third = notification(bench.now, body="same")
    answers = await bench.accept(NewNotification(third, (by_content(third, MINUTE_MS),)))
    assert answers == [bench.duplicate(second, third)], "the window starts again with the second"


@promise(Promise.FINDS_REPEATS)
async def test_a_duplicate_does_not_prolong_the_window(bench: Bench) -> None:
    first = notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first, HOUR_MS),)))
    bench.clock.advance(HOUR_MS // 2)
    second = notification(bench.now, body="same")
    await bench.accept(NewNotification(second, (by_content(second, HOUR_MS),)))
    bench.clock.advance(HOUR_MS // 2)
    third = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(third, (by_content(third),))) == [Accepted(third.id)]


@shows("S1-82")
@promise(Promise.FINDS_REPEATS)
@pytest.mark.parametrize("age_h", [7, 13, 23])
async def test_a_key_counts_for_all_of_its_window(bench: Bench, age_h: int) -> None:
    first = notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first, DAY_MS),)))
    for _ in range(age_h):
        bench.clock.advance(HOUR_MS)
        other = notification(bench.now)
        await bench.accept(NewNotification(other, (by_content(other, DAY_MS), by_key(other, str(other.id)))))
    second = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(second, (by_content(second),))) == [bench.duplicate(first, second)]


@promise(Promise.FINDS_REPEATS)
async def test_content_of_a_finished_notification_still_counts(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)))
    await bench.routed(first, Sent("p"))
    assert await bench.accept(NewNotification(second, (by_content(second),))) == [bench.duplicate(first, second)]


@promise(Promise.REOPENS_WINDOWS)
@pytest.mark.parametrize("end", [N.FAILED, N.EXPIRED, N.CANCELLED, N.NO_TARGETS])
async def test_content_is_new_again_once_the_first_reached_nobody(bench: Bench, end: NotificationStatus) -> None:
    """Once: who says it a third time meets the second, in whichever table the keys of both lie."""
    first, second, third, fourth = (notification(bench.now, body="same") for _ in range(4))
    await bench.accept(NewNotification(first, (by_content(first, DAY_MS),)))
    await _ended(bench, first, end)
    bench.clock.advance(7 * HOUR_MS)
    answers = await bench.accept(*(NewNotification(each, (by_content(each, DAY_MS),)) for each in (second, third)))
    assert answers == [Accepted(second.id), bench.duplicate(second, third)]
    assert await bench.accept(NewNotification(fourth, (by_content(fourth),))) == [bench.duplicate(second, fourth)]
    assert await bench.leasable() == [second.id]


async def _ended(bench: Bench, made: Notification, end: NotificationStatus) -> None:
    if end is N.CANCELLED:
        await bench.withdraw(made)
    elif end is N.FAILED:
        await bench.routed(made, Dead("400", "bad", FailureClass.TERMINAL, letter=True))
    else:
        lease, _ = await bench.take_one()
        await bench.settle(lease, Settled(made, targets=() if end is N.NO_TARGETS else None, verdict=end))
    assert await bench.status(made) is end


@promise(Promise.FINDS_REPEATS)
async def test_an_idempotency_key_stands_for_what_failed_too(bench: Bench) -> None:
    """A repeat asks what became of the first; to send it again is a replay, or another key."""
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_key(first, "k"), by_content(first))))
    await bench.withdraw(first)
    both = NewNotification(second, (by_key(second, "k"), by_content(second)))
    assert await bench.accept(both) == [Duplicate(first.id)]


@shows("S1-81")
@promise(Promise.FINDS_REPEATS)
async def test_a_forced_expiry_lets_the_next_equal_request_through(bench: Bench) -> None:
    """Requirements S1-81."""
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)))
    assert await bench.store.dedup.forget([by_content(first).key]) == 1
    assert await bench.store.dedup.forget([by_content(first).key]) == 0
    assert await bench.accept(NewNotification(second, (by_content(second),))) == [Accepted(second.id)]


@shows("S2-18", "S4-36")
@promise(Promise.FINDS_REPEATS)
async def test_the_same_idempotency_key_and_body_answers_the_first_id_and_leaves_nothing(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_key(first, "k"),)))
    assert await bench.accept(NewNotification(second, (by_key(second, "k"),))) == [Duplicate(first.id)]
    assert await bench.store.views.detail(APP, second.id) is None
    assert (await bench.detail(first)).duplicates == ()


@promise(Promise.FINDS_REPEATS)
async def test_the_same_idempotency_key_with_another_body_is_a_conflict(bench: Bench) -> None:
    first, second = notification(bench.now), notification(bench.now)
    await bench.accept(NewNotification(first, (by_key(first, "k"),)))
    assert await bench.accept(NewNotification(second, (by_key(second, "k"),))) == [Conflicting(first.id)]
    assert await bench.store.views.detail(APP, second.id) is None
    assert await bench.leasable() == [first.id]


@promise(Promise.FINDS_REPEATS)
async def test_a_conflict_within_one_batch(bench: Bench) -> None:
    first, second, third = (notification(bench.now) for _ in range(3))
    answers = await bench.accept(
        NewNotification(first, (by_key(first, "k"),)), NewNotification(second, (by_key(second, "k"),)), third
    )
    assert answers == [Accepted(first.id), Conflicting(first.id), Accepted(third.id)]


@promise(Promise.FINDS_REPEATS)
async def test_an_idempotency_key_counts_before_a_content_key(bench: Bench) -> None:
    by_its_key = notification(bench.now, body="keyed")
    by_its_text = notification(bench.now, body="same")
    await bench.accept(
        NewNotification(by_its_key, (by_key(by_its_key, "k"),)),
        NewNotification(by_its_text, (by_content(by_its_text),)),
    )
    both = notification(bench.now, body="same")
    arrival = NewNotification(both, (by_content(both), by_key(both, "k")))
    assert await bench.accept(arrival) == [Conflicting(by_its_key.id)]
    assert await bench.store.views.detail(APP, both.id) is None


@promise(Promise.FINDS_REPEATS)
async def test_the_idempotency_key_of_a_content_duplicate_stands_for_the_first(bench: Bench) -> None:
    """A repeat that comes when the content's window is over gets the answer of its first time."""
    first, second, late, other = (notification(bench.now, body=body) for body in ("same", "same", "same", "other"))
    await bench.accept(NewNotification(first, (by_content(first, MINUTE_MS),)))
    repeated = NewNotification(second, (by_key(second, "k"), by_content(second, MINUTE_MS)))
    assert await bench.accept(repeated) == [bench.duplicate(first, second)]
    bench.clock.advance(HOUR_MS)
    assert await bench.accept(NewNotification(late, (by_key(late, "k"), by_content(late)))) == [Duplicate(first.id)]
    assert await bench.accept(NewNotification(other, (by_key(other, "k"),))) == [Conflicting(first.id)]
    assert await bench.leasable() == [first.id]


@shows("S2-17")
@promise(Promise.FINDS_REPEATS)
async def test_an_idempotency_key_outlives_the_ttl(bench: Bench) -> None:
    first = notification(bench.now, body="same", ttl_ms=MINUTE_MS)
    await bench.accept(NewNotification(first, (by_key(first, "k"),)))
    bench.clock.advance(23 * HOUR_MS)
    second = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(second, (by_key(second, "k"),))) == [Duplicate(first.id)]


@promise(Promise.FINDS_REPEATS)
async def test_the_same_key_in_another_app_is_another_key(bench: Bench) -> None:
    first, second = notification(bench.now), notification(bench.now, app=OTHER_APP)
    answers = await bench.accept(
        NewNotification(first, (by_key(first, "k"),)), NewNotification(second, (by_key(second, "k"),))
    )
    assert answers == [Accepted(first.id), Accepted(second.id)]


@promise(Promise.FINDS_REPEATS)
async def test_the_caller_of_a_conflict_may_use_its_content_later(bench: Bench) -> None:
    """What a refused item would have claimed is not claimed."""
    first, refused, later_on = (
        notification(bench.now),
        notification(bench.now, body="x"),
        notification(bench.now, body="x"),
    )
    await bench.accept(NewNotification(first, (by_key(first, "k"),)))
    await bench.accept(NewNotification(refused, (by_key(refused, "k"), by_content(refused))))
    assert await bench.accept(NewNotification(later_on, (by_content(later_on),))) == [Accepted(later_on.id)]


@shows("S4-03")
@promise(Promise.KEEPS_TIME)
async def test_what_is_scheduled_waits(bench: Bench) -> None:
    made = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    assert await bench.status(made) is NotificationStatus.SCHEDULED
    assert await bench.leasable() == []


async def test_each_lane_has_its_own_queue(bench: Bench) -> None:
    made = {lane: await bench.accepted(lane=lane) for lane in Lane}
    for lane, its_own in made.items():
        assert await bench.leasable(lane) == [its_own.id]


@promise(Promise.JOURNALS, Promise.RECORDS_DUPLICATES)
async def test_the_journal_tells_of_each_new_record_once(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)), NewNotification(second, (by_content(second),)))
    await bench.accept(first)
    moves = [move for move in await bench.moves() if isinstance(move, NotificationMoved)]
    assert [(move.notification_id, move.before, move.after) for move in moves] == [
        (first.id, None, NotificationStatus.PENDING),
        (second.id, None, NotificationStatus.DEDUPLICATED),
    ]


@promise(Promise.COUNTS, Promise.RECORDS_DUPLICATES)
async def test_the_balance_counts_every_record_once(bench: Bench) -> None:
    first, second = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_content(first),)), NewNotification(second, (by_content(second),)))
    cancelled = await bench.accepted()
    await bench.withdraw(cancelled)
    counts = dict(await bench.store.views.balance(APP))
    assert counts == {
        NotificationStatus.PENDING: 1,
        NotificationStatus.DEDUPLICATED: 1,
        NotificationStatus.CANCELLED: 1,
    }
    assert dict(await bench.store.views.balance(OTHER_APP)) == {}


@promise(Promise.ACCEPTS_WHOLE_BATCHES)
async def test_a_batch_with_something_very_large_is_accepted_whole_or_not_at_all(bench: Bench) -> None:
    made = [notification(bench.now), notification(bench.now, body="x" * 2_000_000)]
    try:
        accepted = await bench.accept(*made) == [Accepted(each.id) for each in made]
    except Unavailable:
        accepted = False
    assert len(await bench.store.views.statuses(APP, [each.id for each in made])) == (2 if accepted else 0)

"""at_most_once: an intent is settled before the bytes leave, and the first outcome replaces it."""

from __future__ import annotations

import pytest

from tests.contract.bench import RETRY_MS, TOKEN_HASH, Bench, again, intent, parked, sent, targets
from tests.contract.promised import promise
from tests.contract.stores import LEASE_MS
from waypost.domain.channel import Channel
from waypost.domain.delivery import FailureClass, OpenTarget
from waypost.domain.ids import DeviceId
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.notification import Guarantee, Notification
from waypost.domain.progress import Stale
from waypost.domain.settlement import Change, Dead, Unstarted, Unsure
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.promises import Promise
from waypost.ports.work import Lease, Settled, WorkItem

pytestmark = [pytest.mark.asyncio, promise(Promise.SENDS_AT_MOST_ONCE)]

DEADLINE_MS = 2 * LEASE_MS


async def _intended(bench: Bench, count: int = 1) -> tuple[Notification, Lease, WorkItem]:
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    intents = tuple(intent(n, bench.now, within_ms=DEADLINE_MS) for n in range(count))
    assert await bench.settle(lease, Settled(item.notification, intents, targets(count))) == []
    return made, lease, item


async def test_an_intent_counts_as_open_and_reads_processing(bench: Bench) -> None:
    made, _, _ = await _intended(bench)
    assert await bench.status(made) is NotificationStatus.PROCESSING
    receipt = (await bench.receipts(made))[0]
    assert (receipt.is_intent, receipt.is_open, receipt.attempt) == (True, True, 1)
    assert (await bench.detail(made)).record.finished_at is None


async def test_an_intent_stores_the_whole_target_list(bench: Bench) -> None:
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 3, intent(0, bench.now))
    assert [receipt.device_id for receipt in await bench.receipts(made)] == ["d0", "d1", "d2"]


async def test_the_first_outcome_replaces_the_intent(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    assert await bench.settle_rest(lease, item, sent(0, bench.now)) == []
    assert await bench.status(made) is NotificationStatus.SENT
    receipt = (await bench.receipts(made))[0]
    assert (receipt.status, receipt.attempt, len(receipt.attempts)) == (DeliveryStatus.SENT, 1, 1)


async def test_a_second_outcome_of_the_same_intent_is_stale(bench: Bench) -> None:
    made, lease, item = await _intended(bench, 2)
    await bench.settle_rest(lease, item, sent(0, bench.now))
    assert await bench.settle_rest(lease, item, again(0, bench.now)) == [Stale(made.id, 0, 1)]


async def test_an_outcome_of_another_attempt_does_not_replace_the_intent(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == [Stale(made.id, 0, 2)]
    assert (await bench.receipts(made))[0].is_intent


async def test_where_nothing_was_taken_it_is_tried_again_with_a_new_attempt(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    assert await bench.settle_rest(lease, item, again(0, bench.now)) == []
    bench.clock.advance(RETRY_MS)
    lease, item = await bench.take_one()
    assert item.open_targets == (OpenTarget(0, DeviceId("d0"), Channel("apns"), attempt=1, retries=1),)
    assert await bench.settle_rest(lease, item, intent(0, bench.now, attempt=2)) == []
    assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_a_failure_replaces_the_intent(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    dead = Dead("BadTopic", "bad topic", FailureClass.TERMINAL, letter=True)
    await bench.settle_rest(lease, item, Change(0, 1, dead, bench.now))
    assert await bench.status(made) is NotificationStatus.FAILED


async def test_no_answer_leaves_it_unknown_at_once(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    await bench.settle_rest(lease, item, Change(0, 1, Unsure("timeout"), bench.now))
    receipt = (await bench.receipts(made))[0]
    assert (receipt.status, receipt.is_open, receipt.due_at) == (DeliveryStatus.UNKNOWN, False, None)
    assert await bench.status(made) is NotificationStatus.UNKNOWN


async def test_after_a_crash_an_intent_is_never_sent_again(bench: Bench) -> None:
    made, _, _ = await _intended(bench)
    second = await bench.crash()
    assert await second.leasable() == []
    assert await second.status(made) is NotificationStatus.PROCESSING
    second.clock.advance(DEADLINE_MS)
    assert await second.leasable() == []


@promise(Promise.ENDS_IN_DOUBT_IN_TIME)
async def test_after_a_crash_an_intent_is_unknown_from_its_deadline(bench: Bench) -> None:
    made, _, _ = await _intended(bench)
    second = await bench.crash()
    deadline = (await second.receipts(made))[0].due_at
    assert deadline is not None
    await second.worker.promote_due(later(deadline, -1), 100)
    assert await second.status(made) is NotificationStatus.PROCESSING, "never early"
    second.clock.advance(deadline - second.now)
    await second.worker.promote_due(deadline, 100)
    record = (await second.detail(made)).record
    assert (record.status, record.finished_at) == (NotificationStatus.UNKNOWN, deadline)
    receipt = (await second.receipts(made))[0]
    assert (receipt.status, receipt.due_at, receipt.attempt) == (DeliveryStatus.UNKNOWN, None, 1)


@promise(Promise.ENDS_IN_DOUBT_IN_TIME, Promise.JOURNALS)
async def test_only_the_deadline_of_an_intent_makes_it_unknown_in_the_journal(bench: Bench) -> None:
    """An intent is not an outcome: nobody is told `unknown` before it is."""
    made, _, _ = await _intended(bench)
    told = [move for move in await bench.moves() if move.after == "unknown"]
    assert told == []
    second = await bench.crash()
    second.clock.advance(DEADLINE_MS)
    for _ in range(2):
        await second.worker.promote_due(second.now, 100)
    told = [move for move in await second.moves() if move.after == "unknown"]
    assert [type(move) for move in told] == [DeliveryMoved, NotificationMoved]
    assert {move.notification_id for move in told} == {made.id}


@promise(Promise.ENDS_IN_DOUBT_IN_TIME)
async def test_the_other_targets_of_a_crashed_intent_are_sent(bench: Bench) -> None:
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, intent(0, bench.now, within_ms=DEADLINE_MS))
    second = await bench.crash()
    lease, item = await second.take_one()
    assert [target.n for target in item.open_targets or ()] == [1]
    await second.settle_rest(lease, item, sent(1, second.now))
    assert await second.status(made) is NotificationStatus.PROCESSING
    second.clock.advance(DEADLINE_MS)
    await second.worker.promote_due(second.now, 100)
    assert await second.status(made) is NotificationStatus.PARTIAL


async def test_before_the_intent_a_crash_sends_again(bench: Bench) -> None:
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    await bench.take_one()
    assert await (await bench.crash()).leasable() == [made.id]


@promise(Promise.ENDS_IN_DOUBT_IN_TIME)
async def test_a_late_outcome_after_the_deadline_is_stale(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    second = await bench.crash()
    second.clock.advance(DEADLINE_MS)
    await second.worker.promote_due(second.now, 100)
    assert await second.settle_rest(lease, item, sent(0, second.now)) == [Stale(made.id, 0, 1)]
    assert await second.status(made) is NotificationStatus.UNKNOWN


async def test_parked_before_the_intent_and_sent_after(bench: Bench) -> None:
    made = await bench.accepted(guarantee=Guarantee.AT_MOST_ONCE)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, parked(0, bench.now, made.expires_at))
    bench.clock.advance(MINUTE_MS)
    assert await bench.worker.promote_due(bench.now, 10, {"breaker:demo/apns": 1}) == 1
    lease, item = await bench.take_one()
    await bench.settle_rest(lease, item, intent(0, bench.now))
    await bench.settle_rest(lease, item, sent(0, bench.now))
    receipt = (await bench.receipts(made))[0]
    assert (receipt.status, receipt.parked) == (DeliveryStatus.SENT, None)
    assert receipt.attempts[0].token_hash == TOKEN_HASH


async def test_an_intent_that_was_never_begun_can_be_given_back(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    assert await bench.settle_rest(lease, item, Change(0, 1, Unstarted(), bench.now)) == []
    lease, item = await bench.take_one()
    assert item.open_targets == (OpenTarget(0, DeviceId("d0"), Channel("apns"), attempt=1),)
    assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_a_repeated_intent_is_stale(bench: Bench) -> None:
    made, lease, item = await _intended(bench)
    assert await bench.settle_rest(lease, item, intent(0, bench.now)) == [Stale(made.id, 0, 1)]


async def test_giving_back_an_item_does_not_free_its_intents(bench: Bench) -> None:
    """Their bytes may have left."""
    made, lease, item = await _intended(bench)
    await bench.settle(lease, Settled(item.notification, given_back=True))
    assert await bench.leasable() == []
    assert (await bench.receipts(made))[0].is_intent

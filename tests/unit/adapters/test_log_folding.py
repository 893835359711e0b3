"""What a settlement makes of a task of the log."""

from __future__ import annotations

from tests.contract.bench import again, intent, notification, parked, sent, targets
from tests.contract.clock import START
from waypost.domain.channel import Channel
from waypost.domain.delivery import OpenTarget, Target
from waypost.domain.ids import DeviceId
from waypost.domain.notification import Guarantee
from waypost.domain.progress import Stale
from waypost.domain.settlement import Cancelled, Change, Unstarted
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, later
from waypost.domain.waits import WaitsFor
from waypost.ports.work import Settled
from waypost.stores.kafka.folding import Folded, cancelled, fold, receipts_of, rest_of
from waypost.stores.kafka.messages import Task

MADE = notification(START)
FRESH = Task(MADE)
SECOND_TRY = OpenTarget(1, DeviceId("d1"), Channel("apns"), attempt=1, retries=1)


def folded(task: Task, *changes: Change, count: int | None = None, withdrawn: str | None = None) -> Folded:
    """Settle some of a task, of *count* targets where it is fresh."""
    settled = Settled(MADE, changes, None if count is None else targets(count))
    return fold(receipts_of(task), settled, withdrawn, START)


def test_all_targets_sent_leaves_nothing() -> None:
    result = folded(FRESH, sent(0, START), sent(1, START), count=2)
    assert (result.receipts, result.waiting, result.stale) == ({}, (), ())
    assert result.decided is not None
    assert len(result.decided.settled.changes) == 2


def test_what_is_still_under_way_is_named_by_what_replaces_the_task() -> None:
    result = folded(FRESH, sent(1, START), count=3)
    assert result.receipts is not None
    rest = rest_of(MADE, result.receipts)
    assert rest is not None and rest.due_at is None
    assert [target.n for target in rest.targets or ()] == [0, 2]


def test_what_waits_is_left_to_the_store() -> None:
    listed = (*targets(1), Target(1, DeviceId("+49"), Channel("sms"), waits=WaitsFor((0,), 30)))
    result = fold(None, Settled(MADE, (sent(0, START),), listed), None, START)
    assert (result.receipts, result.waiting) == ({}, ())
    assert result.decided is not None and result.decided.settled.targets == listed


def test_retries_wait_together_by_their_time() -> None:
    result = folded(FRESH, again(0, START), again(1, START, wait_ms=HOUR_MS), again(2, START), count=3)
    assert [[target.n for target in task.targets or ()] for task in result.waiting] == [[0, 2], [1]]
    assert result.waiting[0].targets is not None
    assert (result.waiting[0].targets[0].attempt, result.waiting[0].targets[0].retries) == (1, 1)


def test_what_is_parked_names_its_condition() -> None:
    (task,) = folded(FRESH, parked(0, START, later(START, HOUR_MS)), count=1).waiting
    assert (task.condition, task.due_at) == ("breaker:demo/apns", later(START, HOUR_MS))
    assert task.targets is not None and task.targets[0].attempt == 0


def test_the_first_outcome_of_an_attempt_wins() -> None:
    task = Task(MADE, (SECOND_TRY,))
    assert folded(task, sent(1, START, attempt=1)).stale == (Stale(MADE.id, 1, 1),)
    assert folded(task, sent(1, START, attempt=2)).stale == ()
    assert folded(task, sent(7, START, attempt=2)).stale == (Stale(MADE.id, 7, 2),)


def test_an_intent_stays_in_hand_and_is_named_by_no_replacement() -> None:
    careful = notification(START, guarantee=Guarantee.AT_MOST_ONCE)
    result = fold(None, Settled(careful, (intent(0, START),), targets(1)), None, START)
    assert result.receipts is not None and result.receipts[0].is_intent
    assert rest_of(careful, result.receipts) is None
    done = fold(result.receipts, Settled(careful, (sent(0, START),)), None, START)
    assert done.receipts == {} and done.stale == ()


def test_a_withdrawn_notification_makes_no_further_attempt() -> None:
    unstarted = Change(1, 1, Unstarted(), START)
    result = folded(FRESH, again(0, START), unstarted, count=2, withdrawn="cancelled")
    assert result.waiting == ()
    assert result.decided is not None and result.decided.withdrawn == "cancelled"
    assert {type(change.settlement) for change in result.decided.settled.changes} == {Cancelled}


def test_a_withdrawn_task_ends_whole_or_by_its_targets() -> None:
    assert cancelled(FRESH, "why", START).verdict is NotificationStatus.CANCELLED
    (change,) = cancelled(Task(MADE, (SECOND_TRY,)), "why", START).changes
    assert (change.n, change.attempt, change.settlement) == (1, 2, Cancelled("why"))


def test_given_back_untouched_decides_nothing() -> None:
    result = fold(None, Settled(MADE, given_back=True), None, START)
    assert (result.receipts, result.decided, result.waiting, result.stale) == (None, None, (), ())

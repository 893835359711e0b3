"""Who has the next commit, and how long the next submission would wait: pure, with the times given."""

from __future__ import annotations

from typing import Any

from waypost.ports.pressure import Cause
from waypost.stores.sql.commit_queue import HURRIED, LATE_S, OUTCOMES_WAIT_S, CommitQueue, Queued
from waypost.stores.sql.transaction import OperationKind

ROWS = 10
"""Of outcomes in a commit; four times as many that are accepted."""
FUTURE: Any = None
"""Nobody is answered here."""

ACCEPT: OperationKind[Any, Any] = OperationKind("accept", lambda _, ops: ops, durable=True, overtakes=True)
SETTLE: OperationKind[Any, Any] = OperationKind("settle", lambda _, ops: ops, durable=False, patient=True)


def _queue(accepts: int, settles: int, since: float = 0.0) -> CommitQueue:
    """So many operations of each kind with ten rows each."""
    queue = CommitQueue(ROWS)
    for kind, count in ((SETTLE, settles), (ACCEPT, accepts)):
        for n in range(count):
            queue.put(Queued(kind, n, 10, FUTURE, since))
    return queue


def _turn(queue: CommitQueue, now: float) -> tuple[str, int]:
    taken = queue.take(now)
    queue.written(now)
    (name,) = {queued.kind.name for queued in taken}
    return name, len(taken)


def test_accepts_have_the_first_and_the_larger_turns_while_no_outcome_is_late() -> None:
    """A caller waits."""
    queue = _queue(accepts=12, settles=3)
    turns = [_turn(queue, LATE_S) for _ in range(6)]
    assert turns == [("accept", 4), ("settle", 1), ("accept", 4), ("settle", 1), ("accept", 4), ("settle", 1)]


def test_late_outcomes_have_the_larger_turns_and_keep_no_accept_out() -> None:
    """Deliveries come first, and every caller is answered."""
    queue = _queue(accepts=3, settles=12)
    turns = [_turn(queue, LATE_S + 0.01) for _ in range(6)]
    assert turns == [("accept", 1), ("settle", 4), ("accept", 1), ("settle", 4), ("accept", 1), ("settle", 4)]


def test_what_is_urgent_goes_before_what_was_accepted_first_and_commits_are_small_meanwhile() -> None:
    queue = _queue(accepts=12, settles=12)
    for n in ("first", "second"):
        queue.put(Queued(ACCEPT, n, 1, FUTURE, 0.0, is_urgent=True))
    seen = [queue.is_urgent(0.0)]
    assert [queued.op for queued in queue.take(0.0)] == ["first", "second", 0]
    assert [*seen, queue.is_urgent(0.0)] == [True, False], "what is left is not"
    assert _turn(queue, 0.0) == ("settle", 1)
    queue.put(Queued(ACCEPT, "third", 1, FUTURE, 0.0, is_urgent=True))
    assert [queued.op for queued in queue.take(0.0)] == ["third", 1], "with few beside it"


def test_one_urgent_commit_follows_the_other_until_outcomes_have_waited_for_long() -> None:
    """Then every second one is theirs."""
    queue = _queue(accepts=2, settles=4)
    assert _turn(queue, 0.0) == ("accept", 2)
    late_s = OUTCOMES_WAIT_S + 0.01
    for now_s, goes in ((0.0, True), (0.0, True), (late_s, False), (late_s, True), (late_s, False)):
        queue.put(Queued(ACCEPT, now_s, 1, FUTURE, now_s, is_urgent=True))
        assert queue.is_urgent(now_s) is goes
        assert queue.take(now_s)[0].is_urgent is goes


def test_who_waits_behind_what_is_urgent_is_seen_to_wait() -> None:
    queue = _queue(accepts=1, settles=0)
    queue.put(Queued(ACCEPT, "urgent", 1, FUTURE, 1.0, is_urgent=True))
    assert queue.pressure(1.0, 2.0).share == 0.5


def test_commits_are_small_while_another_process_is_hurried() -> None:
    queue = CommitQueue(2 * HURRIED)
    for n in range(20):
        queue.put(Queued(SETTLE, n, 1, FUTURE, 0.0))
    assert [len(queue.take(0.0, hurried=hurried)) for hurried in (True, False)] == [2, 2 * HURRIED]


def test_who_waits_alone_has_every_turn() -> None:
    """And the other kind the next, when it comes."""
    queue = _queue(accepts=8, settles=0)
    assert [_turn(queue, 0.1), _turn(queue, 0.1)] == [("accept", 4), ("accept", 4)]
    queue.put(Queued(ACCEPT, 0, 10, FUTURE, 0.1))
    queue.put(Queued(SETTLE, 0, 10, FUTURE, 0.1))
    assert _turn(queue, 0.1) == ("settle", 1)


def test_the_wait_is_foreseen_by_the_measured_pace() -> None:
    """Four operations took 0.4 s, so the eight that wait will take 0.8: 40 % of the 2 s that they may."""
    queue = _queue(accepts=12, settles=0)
    assert queue.pressure(0.0, 2.0).share == 0.0, "nothing is measured yet"
    queue.take(0.0)
    queue.written(0.4)
    for each in queue._accepts:
        each.since = 0.4  # they came just now: what is seen is foreseen alone
    foreseen = queue.pressure(0.4, 2.0)
    assert (round(foreseen.share, 6), foreseen.cause) == (0.4, Cause.ACCEPTS)


def test_a_commit_that_leaves_nobody_behind_tells_nothing_of_the_pace() -> None:
    """What one row costs by itself is not what each of a thousand does."""
    queue = _queue(accepts=1, settles=0)
    queue.take(0.0)
    queue.written(5.0)
    for n in range(100):
        queue.put(Queued(ACCEPT, n, 10, FUTURE, 5.0))
    assert queue.pressure(5.0, 2.0).share == 0.0


def test_one_slow_commit_does_not_close_the_doors_for_good() -> None:
    """So little is let in after it that no commit is full any more: smaller ones that are quicker are believed, too."""
    queue = _queue(accepts=4, settles=0)
    _stand_still(queue, until=40.0)
    for n in range(20):
        queue.put(Queued(ACCEPT, n, 10, FUTURE, 40.0 + n))
        queue.take(40.0 + n)
        queue.written(40.01 + n)
    queue.put(Queued(ACCEPT, 0, 10, FUTURE, 60.0))
    assert queue.pressure(60.0, 2.0).share < 0.1


def _stand_still(queue: CommitQueue, until: float) -> None:
    """A full commit takes so long."""
    queue.take(0.0)
    queue.written(until)


def test_what_has_waited_counts_where_no_pace_is_known() -> None:
    """A store may stand still before anything was measured."""
    assert _queue(accepts=1, settles=0).pressure(3.0, 2.0).share == 1.5


def test_outcomes_that_wait_are_pressure_on_those_who_submit() -> None:
    """Deliveries would starve."""
    pressure = _queue(accepts=0, settles=1).pressure(1.0, 2.0)
    assert (pressure.share, pressure.cause) == (0.5, Cause.OUTCOMES)


def test_outcomes_that_wait_too_long_stop_leases_however_long_submissions_wait() -> None:
    """Both waited, submissions a little longer: what is sent now could not be recorded all the same."""
    queue = _queue(accepts=1, settles=0, since=0.0)
    queue.put(Queued(SETTLE, 0, 10, FUTURE, 0.5))
    assert queue.pressure(3.0, 2.0).stops_leases
    assert not queue.pressure(2.4, 2.0).stops_leases


def test_what_is_dropped_or_written_is_no_pressure() -> None:
    """Or the doors would stay closed after the store has recovered."""
    queue = _queue(accepts=12, settles=0)
    queue.take(0.0)
    queue.written(40.0)
    assert len(queue.drop_late(40.0)) == 8
    assert queue.pressure(40.0, 2.0).share == 0.0

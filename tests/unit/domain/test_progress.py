"""Progress: what becomes of a notification's targets, one step at a time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from tests.unit.domain.made import ATTEMPT, NOW
from waypost.domain.address import UNROUTED
from waypost.domain.amendment import LeasedTargets, NotOpen, TooLate, Withdrawn
from waypost.domain.channel import Channel
from waypost.domain.delivery import FailureClass, Receipt, Target
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.progress import Progress, Stale, Step
from waypost.domain.replay import new_round
from waypost.domain.settlement import (
    Again,
    Change,
    Dead,
    Expired,
    Forget,
    Intent,
    Parked,
    Sent,
    Settlement,
    Unstarted,
    Unsure,
)
from waypost.domain.status import FINAL, NOTIFICATION_TRANSITIONS, DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, Instant, later

ID = NotificationId(b"n" * 16)
APNS = Channel("apns")
FRESH = Progress(AppId("demo"), ID, UserId("ann"), NotificationStatus.PENDING, None)
UNSTORED = Progress(AppId("demo"), ID, UserId("ann"), None, None)
SENT = Sent("p1")
AGAIN = Again(later(NOW, 1_000), True, "500", "try again")
DEAD = Dead("400", "bad", FailureClass.TERMINAL, letter=True)
GONE = Forget("410", Instant(5), letter=True)
PARKED = Parked("breaker:demo/apns", later(NOW, DAY_MS))
INTENT = Intent(later(NOW, 30_000))
UNSURE = Unsure("timeout")
PENDING = DeliveryStatus.PENDING


def targets(count: int, suppressed: int = 0) -> tuple[Target, ...]:
    """So many targets, the last ones suppressed."""
    reasons = [None] * (count - suppressed) + ["no_credential"] * suppressed
    return tuple(Target(n, DeviceId(f"d{n}"), APNS, why) for n, why in enumerate(reasons))


def change(n: int, settlement: Settlement, attempt: int = 1) -> Change:
    """A change, with an attempt where one was made."""
    is_idle = isinstance(settlement, Intent | Parked | Unstarted | Expired)
    return Change(n, attempt, settlement, NOW, None if is_idle else ATTEMPT)


def routed(count: int, *changes: Change, suppressed: int = 0) -> Progress:
    """What is left after the first settle of so many targets."""
    return FRESH.settle(changes, NOW, targets(count, suppressed)).progress


def words(step: Step) -> list[str]:
    """The moves of a step, shortly."""
    return [
        f"{each.n}:{each.before}>{each.after}" if isinstance(each, DeliveryMoved) else f"{each.before}>{each.after}"
        for each in step.moves
    ]


def test_the_first_settle_stores_the_whole_list() -> None:
    step = FRESH.settle([change(0, SENT)], NOW, targets(3, suppressed=1))
    assert step.routed and not step.finished
    assert [each.status for each in step.changed] == ["sent", "pending", "suppressed"]
    assert words(step) == ["2:pending>suppressed", "0:pending>sent"]


@pytest.mark.parametrize(
    ("settlements", "final"),
    [
        ((SENT, SENT), "sent"),
        ((SENT, DEAD), "partial"),
        ((DEAD, GONE), "failed"),
        ((Expired(), Expired()), "expired"),
        ((UNSURE, DEAD), "unknown"),
        ((UNSURE, SENT), "partial"),
    ],
)
def test_the_last_target_gives_the_final_status_once(settlements: tuple[Settlement, ...], final: str) -> None:
    one, two = settlements
    first = FRESH.settle([change(0, one)], NOW, targets(2))
    assert not first.finished
    last = first.progress.settle([change(1, two)], NOW)
    assert last.finished
    assert last.progress.status == final
    assert words(last)[-1] == f"pending>{final}"
    again = last.progress.settle([change(1, SENT, 2)], NOW)
    assert (again.progress, again.moves, again.stale) == (last.progress, (), (Stale(ID, 1, 2),))


def test_what_was_never_stored_begins_with_this_step() -> None:
    assert words(UNSTORED.settle([change(0, AGAIN)], NOW, targets(2))) == ["0:pending>pending", "None>pending"]
    assert words(UNSTORED.settle([change(0, SENT)], NOW, targets(1))) == ["0:pending>sent", "None>sent"]
    assert words(UNSTORED.settle([], NOW, verdict=NotificationStatus.EXPIRED)) == ["None>expired"]


def test_a_verdict_counts_only_before_any_target_is_known() -> None:
    assert FRESH.settle([], NOW, verdict=NotificationStatus.EXPIRED).progress.status == "expired"
    assert routed(1).settle([], NOW, verdict=NotificationStatus.EXPIRED).progress.status == "pending"
    assert FRESH.settle([], NOW, targets=()).progress.status == "no_targets"


def test_what_loses_is_stale_and_changes_nothing() -> None:
    sent = routed(2, change(0, SENT))
    step = sent.settle([change(0, DEAD, 2), change(1, SENT, 2), change(7, SENT)], NOW)
    assert step.progress == sent
    assert [(each.n, each.attempt) for each in step.stale] == [(0, 2), (1, 2), (7, 1)]
    assert (step.taken, step.moves) == ((), ())


def test_a_number_that_meant_another_device_is_stale() -> None:
    other = (Target(0, DeviceId("d1"), APNS), Target(1, DeviceId("d1"), APNS))
    step = routed(2).settle([change(0, SENT), change(1, SENT)], NOW, other)
    assert [each.n for each in step.stale] == [0]
    assert [each.n for each in step.taken] == [1]


def test_nothing_of_fresh_work_is_settled_without_its_list() -> None:
    step = FRESH.settle([change(0, SENT)], NOW)
    assert step.progress == FRESH
    assert len(step.stale) == 1


def test_parking_giving_back_and_intents_are_no_moves() -> None:
    step = FRESH.settle([change(0, PARKED), change(1, INTENT), change(2, Unstarted())], NOW, targets(3))
    assert step.moves == ()
    assert [each.n for each in step.taken] == [0, 1, 2]
    back = step.progress.settle([change(1, Unstarted())], NOW)
    assert back.moves == ()
    assert back.progress.receipts is not None and back.progress.receipts[1].status is PENDING


def test_an_intent_counts_as_open_until_its_outcome() -> None:
    intended = routed(1, change(0, INTENT))
    assert not intended.is_final
    assert intended.settle([change(0, INTENT)], NOW).stale == (Stale(ID, 0, 1),)
    assert words(intended.settle([change(0, SENT)], NOW)) == ["0:pending>sent", "pending>sent"]


class TestWithdraw:
    """Taking back, against what is leased."""

    def test_what_is_unrouted_ends_unless_it_is_leased(self) -> None:
        step, answer = FRESH.withdraw("caller", LeasedTargets(), NOW)
        assert (step.progress.status, answer, words(step)) == ("cancelled", Withdrawn(0), ["pending>cancelled"])
        step, answer = FRESH.withdraw("caller", LeasedTargets(whole=True), NOW)
        assert (step.progress.withdrawn, step.progress.status, answer) == ("caller", "pending", TooLate(0))

    def test_waiting_targets_end_and_leased_ones_stay(self) -> None:
        step, answer = routed(3, change(0, SENT), change(1, AGAIN)).withdraw(
            "caller", LeasedTargets(targets=frozenset({2})), NOW
        )
        assert answer == TooLate(2)
        assert words(step) == ["1:pending>cancelled"]
        assert step.progress.settle([change(2, AGAIN)], NOW).progress.status == "sent"

    def test_the_reason_of_the_first_order_stays_with_what_comes_back(self) -> None:
        marked = FRESH.withdraw("caller", LeasedTargets(whole=True), NOW)[0].progress
        step, answer = marked.withdraw(None, LeasedTargets(), NOW)
        assert answer == Withdrawn(0)
        (move,) = step.moves
        assert isinstance(move, NotificationMoved) and move.reason == "caller"

    def test_routed_since_it_was_leased_whole_all_of_it_is_in_hand(self) -> None:
        assert routed(2).withdraw("caller", LeasedTargets(whole=True), NOW)[1] == TooLate(2)

    def test_nothing_is_left_to_withdraw(self) -> None:
        done = routed(1, change(0, SENT))
        assert done.withdraw("caller", LeasedTargets(), NOW) == (Step(done, done), NotOpen(NotificationStatus.SENT))
        assert FRESH.withdraw(None, LeasedTargets(), NOW)[1] == NotOpen(NotificationStatus.PENDING)


class TestReplay:
    """New rounds."""

    def test_what_failed_is_reopened_and_what_was_sent_stays(self) -> None:
        step = new_round(routed(3, change(0, SENT), change(1, DEAD), change(2, UNSURE)), NOW)
        assert step is not None
        assert words(step) == ["partial>pending", "1:failed>pending", "2:unknown>pending"]
        assert [each.n for each in step.changed] == [1, 2]

    def test_what_had_no_targets_is_routed_anew(self) -> None:
        step = new_round(FRESH.settle([], NOW, targets=()).progress, NOW)
        assert step is not None and step.progress.receipts is None
        poison = Receipt(ID, 0, UNROUTED, None, DeliveryStatus.FAILED)
        noted = Progress(FRESH.app, ID, FRESH.user_id, NotificationStatus.FAILED, {0: poison})
        step = new_round(noted, NOW)
        assert step is not None and step.progress.receipts is None

    @pytest.mark.parametrize("progress", [FRESH, routed(1), routed(1, change(0, SENT)), routed(1, suppressed=1)])
    def test_there_is_nothing_to_replay(self, progress: Progress) -> None:
        assert new_round(progress, NOW) is None


SETTLEMENTS = st.sampled_from([SENT, AGAIN, DEAD, GONE, PARKED, INTENT, UNSURE, Unstarted(), Expired()])
CHANGES = st.builds(change, st.integers(0, 3), SETTLEMENTS, st.integers(1, 3))
ORDERS = st.one_of(
    st.lists(CHANGES, max_size=4),
    st.builds(LeasedTargets, st.booleans(), st.frozensets(st.integers(0, 3))),
    st.just("replay"),
)


@shows("S3-46", "S4-02")
@given(st.integers(0, 4), st.integers(0, 2), st.lists(ORDERS, max_size=8))
def test_every_story_adds_up(count: int, suppressed: int, orders: list[list[Change] | LeasedTargets | str]) -> None:
    """Moves follow each other without a gap, a final status is told once a round, and counts come out right."""
    step = UNSTORED.settle([], NOW, targets(count, min(suppressed, count)))
    told = list(step.moves)
    progress = step.progress
    for order in orders:
        match order:
            case list():
                step = progress.settle(order, NOW)
            case LeasedTargets():
                step = progress.withdraw("caller", order, NOW)[0]
            case _:
                step = new_round(progress, NOW) or Step(progress, progress)
        told += step.moves
        progress = step.progress
        if progress.receipts is not None:
            assert progress.is_final is not any(each.is_open for each in progress.receipts.values())
    detail = [each for each in told if isinstance(each, NotificationMoved)]
    assert [each.before for each in detail] == [None, *(each.after for each in detail[:-1])]
    for each in detail[1:]:
        assert each.before is not None
        is_replay = each.before in FINAL and each.after is NotificationStatus.PENDING
        assert is_replay or each.after in NOTIFICATION_TRANSITIONS[each.before]
    counts = Counter(each.after for each in detail)
    counts.subtract(each.before for each in detail if each.before is not None)
    assert +counts == Counter({progress.status: 1})

"""Targets that wait, and confirmations: what becomes of them, one step at a time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.made import ATTEMPT, NOW
from tests.unit.domain.test_progress import AGAIN, DEAD, FRESH, ID, INTENT, SENT, UNSURE, change, targets, words
from waypost.domain.amendment import (
    Confirm,
    Confirmed,
    LeasedTargets,
    NotConfirmed,
    Supersede,
    TooLate,
    Withdrawn,
    together,
)
from waypost.domain.channel import Channel
from waypost.domain.delivery import Target
from waypost.domain.ids import AppId, DeviceId, NotificationId, format_id
from waypost.domain.moves import DeliveryMoved
from waypost.domain.progress import Progress
from waypost.domain.replay import new_round
from waypost.domain.settlement import Change, Expired, Parked, Settlement
from waypost.domain.status import DELIVERY_TRANSITIONS, FINAL, NOTIFICATION_TRANSITIONS, DeliveryStatus
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.domain.waits import CONFIRMED_ELSEWHERE, Wait, WaitsFor, WaitsUntil

PARKED = Parked("breaker:demo/apns", later(NOW, 3_600 * SECOND_MS))
LATER = later(NOW, 30 * SECOND_MS)
(FIRST,) = targets(1)
D = DeliveryStatus


def waiting(n: int, wait: Wait | None, suppressed: str | None = None) -> Target:
    """Target *n*, on another channel."""
    return Target(n, DeviceId(f"d{n}"), Channel("sms"), suppressed, wait)


def fallback(*changes: Change, first: Target = FIRST, seconds: int = 30, status: D = D.DELIVERED) -> Progress:
    """A target, and one that stands in for it, after a first settle."""
    listed = (first, waiting(1, WaitsFor((0,), seconds, status)))
    return FRESH.settle(changes, NOW, listed).progress


def confirm(n: int = 0, status: D = D.DELIVERED) -> Confirm:
    """A confirmation."""
    return Confirm(AppId("demo"), ID, n, status, LATER)


def due(progress: Progress, n: int = 1) -> Instant | None:
    """When target *n* is due."""
    assert progress.receipts is not None
    return progress.receipts[n].due_at


def stands(progress: Progress) -> list[str]:
    """How its targets stand."""
    return [each.status.value for each in (progress.receipts or {}).values()]


class TestWaits:
    """What waits is due at no other time."""

    def test_until_a_time(self) -> None:
        progress = FRESH.settle([], NOW, (waiting(0, WaitsUntil(LATER)),)).progress
        assert (due(progress, 0), progress.is_final) == (LATER, False)

    def test_for_a_sibling_of_which_nothing_was_written_yet(self) -> None:
        assert due(fallback()) is None

    @pytest.mark.parametrize(
        ("settlement", "waits_s"),
        [(SENT, 30), (UNSURE, 30), (DEAD, 0), (Expired(), 0), (AGAIN, 30), (PARKED, 30), (INTENT, 30)],
        ids=["sent", "unsure", "dead", "over", "again", "parked", "intent"],
    )
    def test_the_wait_begins_with_what_is_written_first_of_it(self, settlement: Settlement, waits_s: int) -> None:
        step = fallback().settle([change(0, settlement)], NOW)
        assert due(step.progress) == later(NOW, waits_s * SECOND_MS)
        assert [each.n for each in step.changed] == [0, 1]
        assert not step.finished

    def test_a_provider_that_is_away_makes_no_fallback_late(self) -> None:
        """The wait began with the first attempt; what comes of the second changes nothing, unless it is the end."""
        waits = fallback(change(0, AGAIN))
        assert due(waits) == LATER
        second = change(0, SENT, attempt=2)
        assert due(waits.settle([msgspec.structs.replace(second, at=LATER)], later(NOW, SECOND_MS)).progress) == LATER
        assert due(waits.settle([change(0, DEAD, attempt=2)], later(NOW, SECOND_MS)).progress) == later(NOW, SECOND_MS)

    def test_one_of_several_siblings_is_enough(self) -> None:
        listed = (*targets(2), waiting(2, WaitsFor((0, 1), 30)))
        progress = FRESH.settle([change(0, DEAD)], NOW, listed).progress
        assert due(progress, 2) == LATER, "the other one may still reach it"
        progress = progress.settle([change(1, SENT)], NOW).progress
        step, _ = progress.confirm(confirm(1), LeasedTargets(), NOW)
        assert stands(step.progress) == ["failed", "delivered", "cancelled"]

    def test_it_is_due_at_once_when_the_last_of_several_siblings_fails(self) -> None:
        listed = (*targets(2), waiting(2, WaitsFor((0, 1), 30)))
        progress = FRESH.settle([change(0, DEAD)], NOW, listed).progress
        soon = later(NOW, SECOND_MS)
        assert due(progress.settle([change(1, DEAD)], soon).progress, 2) == soon

    def test_what_was_taken_and_came_back_is_not_waited_for(self) -> None:
        order = Confirm(AppId("demo"), ID, 0, D.FAILED, LATER, "30005", "unknown handset", is_dead=True)
        soon = later(NOW, SECOND_MS)
        step, answer = fallback(change(0, SENT)).confirm(order, LeasedTargets(), soon)
        assert (due(step.progress), answer) == (soon, Confirmed(D.FAILED))
        (move,) = step.moves
        assert isinstance(move, DeliveryMoved)
        assert (move.after, move.code, move.gone_since, move.token_hash) == (
            D.FAILED,
            "30005",
            LATER,
            ATTEMPT.token_hash,
        )

    def test_a_sibling_that_nobody_can_reach_is_not_waited_for(self) -> None:
        assert due(fallback(first=msgspec.structs.replace(FIRST, suppressed="no_credential"))) == NOW
        assert due(FRESH.settle([], NOW, (*targets(1), waiting(1, WaitsFor((7,), 30)))).progress) == NOW

    def test_nobody_waits_for_a_higher_number_or_itself(self) -> None:
        listed = (waiting(0, WaitsFor((1,), 30)), waiting(1, WaitsFor((1,), 30)))
        progress = FRESH.settle([], NOW, listed).progress
        assert (due(progress, 0), due(progress, 1)) == (NOW, NOW)

    def test_a_wait_for_less_than_a_confirmation_ends_with_the_settlement(self) -> None:
        step = fallback(status=D.SENT).settle([change(0, SENT)], NOW)
        assert (stands(step.progress), step.progress.status) == (["sent", "cancelled"], "sent")
        assert step.finished

    def test_the_end_of_one_that_waited_begins_the_next_wait(self) -> None:
        listed = (*targets(1), waiting(1, WaitsFor((0,), 30)), waiting(2, WaitsFor((1,), 60)))
        progress = FRESH.settle([change(0, SENT)], NOW, listed).progress
        assert (due(progress), due(progress, 2)) == (LATER, None)
        progress = progress.settle([msgspec.structs.replace(change(1, SENT), at=LATER)], LATER).progress
        assert due(progress, 2) == later(LATER, 60 * SECOND_MS)

    def test_one_confirmation_ends_the_whole_chain(self) -> None:
        listed = (*targets(1), waiting(1, WaitsFor((0,), 30)), waiting(2, WaitsFor((1,), 60)))
        progress = FRESH.settle([change(0, SENT)], NOW, listed).progress
        step, _ = progress.confirm(confirm(), LeasedTargets(), NOW)
        assert (stands(step.progress), step.progress.status) == (["delivered", "cancelled", "cancelled"], "delivered")

    def test_withdrawn_it_is_cancelled_with_the_rest(self) -> None:
        step, answer = fallback(change(0, SENT)).withdraw("caller", LeasedTargets(), NOW)
        assert (stands(step.progress), answer) == (["sent", "cancelled"], Withdrawn(1, 1))
        step, answer = fallback().withdraw("caller", LeasedTargets(whole=True), NOW)
        assert (stands(step.progress), answer) == (["pending", "cancelled"], TooLate(1))

    def test_routed_after_it_was_withdrawn_it_never_waits(self) -> None:
        marked = FRESH.withdraw("caller", LeasedTargets(whole=True), NOW)[0].progress
        step = marked.settle([change(0, SENT)], NOW, (*targets(1), waiting(1, WaitsUntil(LATER))))
        assert (stands(step.progress), step.progress.status) == (["sent", "cancelled"], "sent")

    def test_replayed_with_its_sibling_it_waits_again_and_alone_it_does_not(self) -> None:
        both = new_round(fallback(change(0, DEAD)).settle([change(1, DEAD)], NOW).progress, NOW)
        assert both is not None
        assert (due(both.progress, 0), due(both.progress)) == (NOW, None)
        alone = new_round(fallback(change(0, SENT)).settle([change(1, DEAD)], NOW).progress, NOW)
        assert alone is not None and alone.progress.receipts is not None
        assert (due(alone.progress), alone.progress.receipts[1].waits) == (NOW, None)


class TestConfirm:
    """Upwards only, and harmless otherwise."""

    @pytest.mark.parametrize("said", [D.SENT, D.DELIVERED, D.OPENED])
    @pytest.mark.parametrize("settlement", [SENT, UNSURE, DEAD, Expired(), AGAIN, INTENT])
    def test_a_receipt_goes_up_only(self, settlement: Settlement, said: D) -> None:
        progress = FRESH.settle([change(0, settlement)], NOW, targets(1)).progress
        assert progress.receipts is not None
        before = progress.receipts[0]
        step, answer = progress.confirm(confirm(status=said), LeasedTargets(), NOW)
        if not before.is_open and said in DELIVERY_TRANSITIONS[before.status]:
            assert answer == Confirmed(said)
            assert words(step)[0] == f"0:{before.status}>{said}"
            again = step.progress.confirm(confirm(status=said), LeasedTargets(), NOW)
            assert again == (again[0], NotConfirmed(said)) and not again[0].moves
        else:
            assert (step.moves, step.progress, answer) == ((), progress, NotConfirmed(before.status))

    def test_what_is_foreign_is_harmless(self) -> None:
        assert FRESH.confirm(confirm(), LeasedTargets(), NOW)[1] == NotConfirmed(None)
        assert fallback(change(0, SENT)).confirm(confirm(7), LeasedTargets(), NOW)[1] == NotConfirmed(None)
        assert fallback(change(0, SENT)).confirm(confirm(status=D.EXPIRED), LeasedTargets(), NOW)[1] == NotConfirmed(
            D.SENT
        )

    @pytest.mark.parametrize(
        ("settlements", "said", "moves"),
        [
            ((SENT, SENT), D.DELIVERED, "sent>delivered"),
            ((SENT, DEAD), D.DELIVERED, None),
            ((UNSURE, DEAD), D.SENT, "unknown>partial"),
            ((UNSURE, SENT), D.SENT, "partial>sent"),
            ((UNSURE,), D.OPENED, "unknown>delivered"),
        ],
    )
    def test_a_final_notification_follows(
        self, settlements: tuple[Settlement, ...], said: D, moves: str | None
    ) -> None:
        changes = [change(n, each) for n, each in enumerate(settlements)]
        progress = FRESH.settle(changes, NOW, targets(len(changes))).progress
        step, _ = progress.confirm(confirm(status=said), LeasedTargets(), NOW)
        assert words(step)[1:] == ([] if moves is None else [moves])
        assert not step.finished

    def test_what_waits_for_it_is_cancelled_and_the_notification_ends(self) -> None:
        step, _ = fallback(change(0, SENT)).confirm(confirm(), LeasedTargets(), NOW)
        assert words(step) == ["0:sent>delivered", "1:pending>cancelled", "pending>delivered"]
        assert step.finished and step.progress.receipts is not None
        assert step.progress.receipts[1].reason == CONFIRMED_ELSEWHERE

    def test_what_is_leased_by_then_goes_on_but_is_not_tried_again(self) -> None:
        step, _ = fallback(change(0, SENT)).confirm(confirm(), LeasedTargets(targets=frozenset({1})), NOW)
        assert words(step) == ["0:sent>delivered"]
        assert stands(step.progress.settle([change(1, SENT)], NOW).progress) == ["delivered", "sent"]
        assert stands(step.progress.settle([change(1, AGAIN)], NOW).progress) == ["delivered", "cancelled"]

    def test_less_than_it_waits_for_changes_nothing_for_it(self) -> None:
        progress = fallback(change(0, SENT), status=D.OPENED)
        step, _ = progress.confirm(confirm(), LeasedTargets(), NOW)
        assert (stands(step.progress), due(step.progress)) == (["delivered", "pending"], LATER)


@pytest.mark.parametrize(("settlement", "waits_s"), [(SENT, 30), (DEAD, 0)], ids=["sent", "dead"])
def test_what_was_attempted_before_a_replay_waits_again(settlement: Settlement, waits_s: int) -> None:
    """Its attempts go on counting; its wait begins anew, and has an end."""
    progress = fallback(change(0, DEAD)).settle([change(1, INTENT), change(1, UNSURE)], NOW).progress
    replay = new_round(progress, NOW)
    assert replay is not None and due(replay.progress) is None
    after = replay.progress.settle([change(0, settlement, attempt=2)], NOW).progress
    assert due(after) == later(NOW, waits_s * SECOND_MS)


def test_what_was_put_off_by_whoever_lost_it_does_not_replace_the_intent_of_another() -> None:
    """It may be on the wire: put off, it would be sent a second time."""
    on_the_wire = FRESH.settle([change(0, INTENT)], NOW, (FIRST,)).progress
    late = on_the_wire.settle([msgspec.structs.replace(change(0, PARKED), made=None)], NOW)
    assert [each.n for each in late.stale] == [0] and late.progress == on_the_wire
    assert on_the_wire.settle([change(0, AGAIN)], NOW).stale == (), "an outcome is an outcome"


def test_what_is_superseded_says_by_what() -> None:
    by = NotificationId(b"m" * 16)
    assert Supersede(AppId("demo"), ID, by).withdraws(ID).why == f"superseded by {format_id(by)}"


def test_one_answer_stands_for_all_of_a_collapse_key() -> None:
    assert together([Withdrawn(1), Withdrawn(2, 1)]) == Withdrawn(3, 1)
    assert together([Withdrawn(1, 1), TooLate(2)]) == TooLate(3)


SIBLINGS = st.lists(st.integers(0, 3), max_size=3).map(tuple)
WAITS = st.one_of(
    st.none(),
    st.builds(WaitsUntil, st.just(LATER)),
    st.builds(
        WaitsFor,
        SIBLINGS,
        st.just(30),
        st.sampled_from([D.SENT, D.DELIVERED, D.OPENED]),
    ),
)
SETTLEMENTS = st.sampled_from([SENT, AGAIN, DEAD, INTENT, UNSURE, Expired()])
CONFIRMS = st.builds(confirm, st.integers(0, 3), st.sampled_from([D.SENT, D.DELIVERED, D.OPENED, D.FAILED]))


@given(
    st.lists(WAITS, min_size=1, max_size=4), st.lists(st.one_of(CONFIRMS, SETTLEMENTS, st.just("caller")), max_size=12)
)
def test_every_target_ends_once_and_none_is_stuck(
    waits: list[Wait | None], orders: list[Confirm | Settlement | str]
) -> None:
    """Whoever leases what is due, and settles it as it comes, comes to an end; statuses go their allowed ways only."""
    listed = tuple(waiting(n, wait) for n, wait in enumerate(waits))
    progress = FRESH.settle([], NOW, listed).progress
    settlements = [each for each in orders if not isinstance(each, Confirm | str)]
    for order in [*orders, *[SENT] * 8]:
        before = progress
        match order:
            case Confirm():
                progress = progress.confirm(order, LeasedTargets(), NOW)[0].progress
            case str():
                progress = progress.withdraw(order, LeasedTargets(), NOW)[0].progress
            case _:
                progress = _settled(progress, order)
        _follows(before, progress)
    assert progress.is_final, settlements


def _settled(progress: Progress, settlement: Settlement) -> Progress:
    """Settle the first open target that is due at some time."""
    for receipt in (progress.receipts or {}).values():
        if receipt.is_open and receipt.due_at is not None:
            attempt = receipt.attempt if receipt.is_intent else receipt.attempt + 1
            given = SENT if receipt.is_intent else settlement
            return progress.settle([Change(receipt.n, attempt, given, NOW, ATTEMPT)], NOW).progress
    return progress


def _follows(before: Progress, after: Progress) -> None:
    assert before.receipts is not None and after.receipts is not None and before.status is not None
    for n, receipt in before.receipts.items():
        came = after.receipts[n].status
        assert came is receipt.status or receipt.is_intent or came in DELIVERY_TRANSITIONS[receipt.status]
    if after.status is not before.status:
        assert after.status in NOTIFICATION_TRANSITIONS[before.status]
    assert after.is_final is not any(each.is_open for each in after.receipts.values())
    assert after.status in FINAL or not before.is_final

"""Decide: outcomes by guarantee by retries; apply: compare-and-set on one receipt."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from tests.unit.domain.made import ATTEMPT, NOW, delivery, intent, notification, receipt
from waypost.domain.breaker import Rest
from waypost.domain.delivery import FailureClass, Receipt
from waypost.domain.notification import Guarantee
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.retry import EXPONENTIAL, POLICIES, Exhausted, Jitter, RetryPolicy
from waypost.domain.settlement import (
    ATTEMPTS_KEPT,
    Again,
    Cancelled,
    Change,
    Dead,
    Expired,
    Forget,
    Intent,
    Parked,
    Sent,
    Settlement,
    Suppressed,
    Unstarted,
    Unsure,
    apply,
    decide,
    opened,
)
from waypost.domain.status import DELIVERY_TRANSITIONS, DeliveryStatus
from waypost.domain.time import DAY_MS, HOUR_MS, SECOND_MS, Instant, later

POLICY = RetryPolicy("test", 2, (SECOND_MS, 2 * SECOND_MS), jitter=Jitter.NONE)
DROPPING = msgspec.structs.replace(POLICY, on_exhausted=Exhausted.DROP)
DAY_LATER = later(NOW, DAY_MS)
RETRYABLE, TERMINAL = FailureClass.RETRYABLE, FailureClass.TERMINAL

TAKEN = Taken("p1")
GONE = Gone("Unregistered", Instant(5))
REFUSED = Refused("BadTopic", "bad topic")
DENIED = CredentialRejected("403", "expired")
THROTTLED = Throttled("429")
UNREACHABLE = Unreachable("reset", "not written")
UNANSWERED = Unanswered("timeout", "no answer")

FIRST, LAST = 0, 2
ONCE, MOST = Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE
PARKED = Parked("breaker:demo/apns", DAY_LATER, "403")
REST = Rest("breaker:demo/apns", 5 * SECOND_MS)
IN_5S = later(NOW, 5 * SECOND_MS)
IN_1S = later(NOW, SECOND_MS)

DECISIONS: list[tuple[Outcome, Guarantee, int, Settlement]] = [
    *((TAKEN, guarantee, made, Sent("p1")) for guarantee, made in product((ONCE, MOST), (FIRST, LAST))),
    *(
        (GONE, guarantee, made, Forget("Unregistered", Instant(5), letter=True))
        for guarantee, made in product((ONCE, MOST), (FIRST, LAST))
    ),
    *(
        (REFUSED, guarantee, made, Dead("BadTopic", "bad topic", TERMINAL, letter=True))
        for guarantee, made in product((ONCE, MOST), (FIRST, LAST))
    ),
    *((DENIED, guarantee, FIRST, Again(IN_1S, True, "403", "expired")) for guarantee in (ONCE, MOST)),
    *((DENIED, guarantee, LAST, Dead("403", "expired", RETRYABLE, True)) for guarantee in (ONCE, MOST)),
    *(
        (THROTTLED, guarantee, made, Again(IN_1S, False, "429", "throttled by the provider"))
        for guarantee, made in product((ONCE, MOST), (FIRST, LAST))
    ),
    *((UNREACHABLE, guarantee, FIRST, Again(IN_1S, True, "reset", "not written")) for guarantee in (ONCE, MOST)),
    *((UNREACHABLE, guarantee, LAST, Dead("reset", "not written", RETRYABLE, True)) for guarantee in (ONCE, MOST)),
    (UNANSWERED, ONCE, FIRST, Again(IN_1S, True, "timeout", "no answer")),
    (UNANSWERED, ONCE, LAST, Dead("timeout", "no answer", RETRYABLE, True)),
    (UNANSWERED, MOST, FIRST, Unsure("timeout")),
    (UNANSWERED, MOST, LAST, Unsure("timeout")),
]


@shows("S1-20", "S1-56", "S2-15")
@pytest.mark.parametrize(("outcome", "guarantee", "retries_made", "expected"), DECISIONS)
def test_each_outcome_by_guarantee_and_retries(
    outcome: Outcome, guarantee: Guarantee, retries_made: int, expected: Settlement
) -> None:
    one = delivery(notification(guarantee=guarantee), retries_made=retries_made)
    assert decide(outcome, one, POLICY, NOW, 0.0) == expected


@pytest.mark.parametrize("outcome", [GONE, REFUSED])
def test_a_policy_may_drop_instead_of_leaving_a_dead_letter(outcome: Outcome) -> None:
    settlement = decide(outcome, delivery(), DROPPING, NOW, 0.0)
    assert isinstance(settlement, Forget | Dead)
    assert not settlement.letter


def test_a_used_up_policy_may_drop_too() -> None:
    settlement = decide(UNREACHABLE, delivery(retries_made=LAST), DROPPING, NOW, 0.0)
    assert settlement == Dead("reset", "not written", RETRYABLE, letter=False)


def test_a_dead_token_without_a_time_is_dead_now() -> None:
    assert decide(Gone("410"), delivery(), POLICY, NOW, 0.0) == Forget("410", NOW, letter=True)


@pytest.mark.parametrize(
    "outcome",
    [Throttled("429", 7_000), Unreachable("503", "away", 7_000), Unanswered("500", "error", 7_000)],
)
def test_a_providers_longer_hint_is_kept_to(outcome: Outcome) -> None:
    settlement = decide(outcome, delivery(), POLICY, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == later(NOW, 7_000)


@pytest.mark.parametrize(
    "outcome",
    [Throttled("429", 0), Unreachable("503", "away", 0), Unanswered("500", "error", 0)],
)
def test_a_hint_to_come_back_at_once_gives_our_own_delay(outcome: Outcome) -> None:
    """``Retry-After: 0``, or a date gone by, from a provider that goes on refusing must not become a storm."""
    settlement = decide(outcome, delivery(), POLICY, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == later(NOW, SECOND_MS)


@given(
    outcome=st.builds(
        lambda kind, wait_ms: kind("503", wait_ms=wait_ms) if kind is Throttled else kind("503", "away", wait_ms),
        st.sampled_from((Throttled, Unreachable, Unanswered)),
        st.none() | st.integers(0, 10**18),
    ),
    policy=st.sampled_from(tuple(POLICIES.values())),
    counts=st.tuples(st.integers(0, 40), st.integers(0, 10_000)),
    jitter=st.floats(0, 1),
)
def test_nothing_is_due_before_the_hint_nor_before_our_own_delay(
    outcome: Throttled | Unreachable | Unanswered, policy: RetryPolicy, counts: tuple[int, int], jitter: float
) -> None:
    """A provider that says ``Retry-After: 1`` each time must not use up all retries within seconds."""
    retries_made, throttles = counts
    forever = notification(expires_at=later(NOW, 10**19))
    settlement = decide(outcome, delivery(forever, retries_made=retries_made, throttles=throttles), policy, NOW, jitter)
    if isinstance(settlement, Dead):
        assert retries_made >= policy.max_retries
        return
    base_ms = policy.unanswered_base_ms if isinstance(outcome, Unanswered) else None
    own_ms = policy.delay_ms(throttles if isinstance(outcome, Throttled) else retries_made, jitter, base_ms)
    assert isinstance(settlement, Again)
    assert settlement.due_at == later(NOW, max(outcome.wait_ms or 0, own_ms))


def test_throttled_rounds_back_off_by_their_own_count() -> None:
    settlement = decide(THROTTLED, delivery(throttles=1), POLICY, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == later(NOW, 2 * SECOND_MS)


def test_no_answer_waits_longer_where_the_policy_says_so() -> None:
    """Requirements S1-121: backoff starts at 5 s."""
    settlement = decide(UNANSWERED, delivery(), EXPONENTIAL, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == later(NOW, 5 * SECOND_MS)


@shows("S1-94")
@pytest.mark.parametrize("outcome", [THROTTLED, UNREACHABLE, UNANSWERED])
def test_what_would_be_due_after_its_time_is_expired(outcome: Outcome) -> None:
    ending = delivery(notification(expires_at=IN_1S))
    settlement = decide(outcome, ending, POLICY, NOW, 0.0)
    assert isinstance(settlement, Expired)
    lasting = delivery(notification(expires_at=later(IN_1S, 1)))
    assert isinstance(decide(outcome, lasting, POLICY, NOW, 0.0), Again)


@pytest.mark.parametrize(
    ("outcome", "spends"), [(DENIED, False), (UNREACHABLE, False), (THROTTLED, False), (UNANSWERED, True)]
)
@pytest.mark.parametrize("retries_made", [FIRST, LAST])
def test_what_fails_at_an_open_breaker_leaves_the_next_probe_to_another(
    outcome: Outcome, spends: bool, retries_made: int
) -> None:
    """It rests whatever it met, and spends a retry only where the provider may have it."""
    settlement = decide(outcome, delivery(retries_made=retries_made), POLICY, NOW, 0.0, REST)
    if spends and retries_made == LAST:
        assert isinstance(settlement, Dead)
        return
    assert isinstance(settlement, Again)
    assert (settlement.due_at, settlement.spends_attempt) == (IN_5S, spends)


@pytest.mark.parametrize("outcome", [DENIED, UNREACHABLE, THROTTLED])
def test_what_ends_before_its_rest_waits_for_the_breaker_until_its_end(
    outcome: CredentialRejected | Unreachable | Throttled,
) -> None:
    ending = delivery(notification(expires_at=IN_1S))
    assert decide(outcome, ending, POLICY, NOW, 0.0, REST) == Parked(REST.condition, IN_1S, outcome.code)
    ended = delivery(notification(expires_at=NOW))
    assert decide(outcome, ended, POLICY, NOW, 0.0, REST) == Expired(outcome.code)


def test_what_is_too_old_for_its_policy_is_not_tried_again() -> None:
    """Requirements S3-62: age below 24 h."""
    policy = msgspec.structs.replace(POLICY, max_age_ms=HOUR_MS)
    young, old = later(NOW, HOUR_MS - 1), later(NOW, HOUR_MS)
    assert isinstance(decide(UNREACHABLE, delivery(), policy, young, 0.0), Again)
    assert isinstance(decide(UNREACHABLE, delivery(), policy, old, 0.0), Dead)


@given(st.sampled_from(DECISIONS), st.floats(0, 1))
def test_the_same_inputs_give_the_same_answer(row: tuple[Outcome, Guarantee, int, Settlement], jitter: float) -> None:
    outcome, guarantee, made, _ = row
    one = delivery(notification(guarantee=guarantee), retries_made=made)
    assert decide(outcome, one, EXPONENTIAL, NOW, jitter) == decide(outcome, one, EXPONENTIAL, NOW, jitter)


# Compare-and-set.

SETTLEMENTS: list[tuple[Settlement, DeliveryStatus]] = [
    (Sent("p1"), DeliveryStatus.SENT),
    (Again(IN_1S, True, "reset", "not written"), DeliveryStatus.PENDING),
    (Again(IN_1S, False, "429", "throttled"), DeliveryStatus.PENDING),
    (Expired("503"), DeliveryStatus.EXPIRED),
    (Forget("410", NOW, True), DeliveryStatus.FAILED),
    (Dead("400", "bad", TERMINAL, True), DeliveryStatus.FAILED),
    (PARKED, DeliveryStatus.PENDING),
    (Unsure("timeout"), DeliveryStatus.UNKNOWN),
    (Suppressed("device_gone"), DeliveryStatus.SUPPRESSED),
    (Cancelled("caller"), DeliveryStatus.CANCELLED),
    (Unstarted(), DeliveryStatus.PENDING),
]
CLOSED = [status for status in DeliveryStatus if status is not DeliveryStatus.PENDING]


@pytest.mark.parametrize(("settlement", "status"), SETTLEMENTS)
def test_the_first_outcome_of_the_next_attempt_is_taken(settlement: Settlement, status: DeliveryStatus) -> None:
    after = apply(receipt(attempt=2), Change(0, 3, settlement, NOW, ATTEMPT))
    assert after is not None
    assert after.status is status
    assert after.is_open == (status is DeliveryStatus.PENDING)
    assert (after.due_at is not None) == after.is_open


@pytest.mark.parametrize(("settlement", "status"), SETTLEMENTS)
def test_the_first_outcome_replaces_an_intent(settlement: Settlement, status: DeliveryStatus) -> None:
    after = apply(intent(), Change(0, 1, settlement, NOW, ATTEMPT))
    assert after is not None
    assert after.status is status
    assert not after.is_intent
    assert after.attempt == 1, "an intent is its attempt"


@pytest.mark.parametrize(("settlement", "_status"), SETTLEMENTS)
@pytest.mark.parametrize("attempt", [0, 1, 2, 4])
def test_another_attempt_is_refused(settlement: Settlement, _status: DeliveryStatus, attempt: int) -> None:
    assert apply(receipt(attempt=2), Change(0, attempt, settlement, NOW, ATTEMPT)) is None


@shows("S3-46")
@pytest.mark.parametrize(("settlement", "_status"), [*SETTLEMENTS, (Intent(DAY_LATER), DeliveryStatus.UNKNOWN)])
@pytest.mark.parametrize("closed", CLOSED)
def test_what_is_closed_stays_closed(settlement: Settlement, _status: DeliveryStatus, closed: DeliveryStatus) -> None:
    done = receipt(status=closed, attempt=1, due_at=None)
    for attempt in (1, 2):
        assert apply(done, Change(0, attempt, settlement, NOW, ATTEMPT)) is None


@shows("S3-46")
@pytest.mark.parametrize("before", [receipt(), intent(), receipt(parked="breaker:demo/apns")])
def test_no_settlement_leaves_the_transition_table(before: Receipt) -> None:
    attempt = before.attempt if before.is_intent else before.attempt + 1
    for settlement, _ in SETTLEMENTS:
        if before.is_intent and isinstance(settlement, Suppressed):
            continue  # decided before an intent is made, never after
        after = apply(before, Change(0, attempt, settlement, NOW, ATTEMPT))
        assert after is not None
        assert after.status is before.status or after.status in DELIVERY_TRANSITIONS[before.status]


def test_an_intent_is_open_until_its_deadline() -> None:
    after = apply(receipt(), Change(0, 1, Intent(DAY_LATER), NOW))
    assert after is not None
    assert (after.is_intent, after.is_open, after.attempt, after.due_at) == (True, True, 1, DAY_LATER)
    assert after.attempts == ()


def test_a_second_intent_for_the_same_attempt_is_refused() -> None:
    """A worker that was overtaken must not send what the other may have sent."""
    assert apply(intent(), Change(0, 1, Intent(DAY_LATER), NOW)) is None


def test_an_intent_that_was_never_begun_is_pending_again() -> None:
    after = apply(intent(), Change(0, 1, Unstarted(), NOW))
    assert after is not None
    assert (after.status, after.due_at, after.attempt) == (DeliveryStatus.PENDING, NOW, 1)


def test_giving_back_changes_nothing() -> None:
    before = receipt(attempt=2)
    assert apply(before, Change(0, 3, Unstarted(), NOW)) is before


def test_a_spent_retry_counts_and_a_throttled_round_counts_elsewhere() -> None:
    spent = apply(receipt(retries=1, throttles=1), Change(0, 1, Again(IN_1S, True, "x", "y"), NOW, ATTEMPT))
    put_off = apply(receipt(retries=1, throttles=1), Change(0, 1, Again(IN_1S, False, "x", "y"), NOW, ATTEMPT))
    assert spent is not None
    assert put_off is not None
    assert (spent.retries, spent.throttles) == (2, 1)
    assert (put_off.retries, put_off.throttles) == (1, 2)


def test_parking_spends_no_attempt() -> None:
    after = apply(receipt(attempt=1, code="503"), Change(0, 2, Parked("quota", DAY_LATER), NOW))
    assert after is not None
    assert (after.attempt, after.retries, after.parked, after.due_at) == (1, 0, "quota", DAY_LATER)
    assert after.code == "503", "the provider's last word stays"


def test_every_attempt_made_is_kept() -> None:
    one = receipt()
    for attempt in (1, 2, 3):
        after = apply(one, Change(0, attempt, Again(IN_1S, True, "x", "y"), NOW, ATTEMPT))
        assert after is not None
        one = after
    assert (one.attempt, len(one.attempts), one.first_attempt_at, one.last_attempt_at) == (3, 3, NOW, NOW)


@pytest.mark.parametrize("status", [DeliveryStatus.FAILED, DeliveryStatus.EXPIRED, DeliveryStatus.UNKNOWN])
def test_a_replayed_receipt_is_due_and_starts_its_retries_anew(status: DeliveryStatus) -> None:
    closed = receipt(status=status, attempt=4, retries=3, throttles=2, dead=True, due_at=None, resolved_at=NOW)
    after = opened(closed, IN_1S)
    assert (after.status, after.due_at, after.attempt) == (DeliveryStatus.PENDING, IN_1S, 4)
    assert (after.retries, after.throttles, after.dead, after.resolved_at) == (0, 0, False, None)


def test_a_receipt_keeps_its_first_attempt_and_the_latest() -> None:
    """A credential that is refused for weeks, or a quota that is never enough, does not grow a row without end."""
    grown: Receipt | None = receipt()
    for number in range(1, 1_001):
        assert grown is not None
        tried = msgspec.structs.replace(ATTEMPT, code=str(number))
        grown = apply(grown, Change(0, number, Parked("breaker:demo/apns", DAY_LATER, "denied"), NOW, tried))
    assert grown is not None
    assert grown.attempt == 1_000
    assert [each.code for each in grown.attempts] == ["1", *map(str, range(1_002 - ATTEMPTS_KEPT, 1_001))]

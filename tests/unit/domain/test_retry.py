"""Retry policies as data: table S1-T4, table D-T2, and how one is chosen."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from waypost.domain.content import Urgency
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.retry import (
    EXPONENTIAL,
    POLICIES,
    ErrorClass,
    Exhausted,
    Jitter,
    RetryPolicy,
    RetryRules,
    classify,
)
from waypost.domain.time import DAY_MS, MINUTE_MS, SECOND_MS


@shows("S1-67")
@pytest.mark.parametrize(
    ("n", "least_s", "most_s"),
    [(0, 1, 1.3), (1, 2, 2.6), (2, 4, 5.2), (3, 8, 10.4), (4, 16, 20.8), (12, 3600, 4680), (60, 3600, 4680)],
)
def test_the_exponential_delays_of_table_s1_t4(n: int, least_s: float, most_s: float) -> None:
    assert EXPONENTIAL.delay_ms(n, 0.0) == least_s * SECOND_MS
    assert EXPONENTIAL.delay_ms(n, 1.0) == most_s * SECOND_MS


@shows("S1-67")
@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_delay_is_always_within_its_jitter_and_cap(n: int, jitter: float) -> None:
    plain = EXPONENTIAL.delay_ms(n, 0.0)
    assert plain <= EXPONENTIAL.delay_ms(n, jitter) <= plain * 1.3
    assert plain <= EXPONENTIAL.cap_ms


@shows("S1-68")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda policy: policy.name)
def test_a_negative_count_is_a_programming_error(policy: RetryPolicy) -> None:
    """Requirements S1-68."""
    with pytest.raises(ValueError, match="negative"):
        policy.delay_ms(-1, 0.0)


@shows("S1-69")
@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize(("jitter", "part"), [(Jitter.ADD30, 0.3), (Jitter.FULL, 1.0)])
def test_jitter_spreads_simultaneous_failures(jitter: Jitter, part: float, n: int) -> None:
    """Requirements S1-69: of 10,000 failures at one instant no tenth of the spread holds a spike, from the first on.

    The spread is a part of the delay, which is one second at first (S1-67); full jitter is the widest there is.
    """
    policy = RetryPolicy("p", 5, jitter=jitter)
    chance = Random(n)
    delays = [policy.delay_ms(n, chance.random()) for _ in range(10_000)]
    tenth_ms = (SECOND_MS << n) * part / 10
    least = min(delays)
    tenths = Counter(int((delay - least) / tenth_ms) for delay in delays)
    assert len(tenths) >= 10
    assert max(tenths.values()) < 1_150


D_T2 = [
    ("s0_stream", 4, [30, 30, 30, 30], Jitter.NONE, Exhausted.DROP),
    ("s1_exponential", 5, [1, 2, 4, 8, 16], Jitter.ADD30, Exhausted.DLQ),
    ("s2_critical", 6, [2, 8, 32, 128, 200, 230], Jitter.NONE, Exhausted.DLQ),
    ("s2_default", 3, [2, 8, 32], Jitter.NONE, Exhausted.DLQ),
    ("s2_low", 2, [2, 8], Jitter.NONE, Exhausted.DROP),
    ("s3_sweep", 3, [0, 300, 900], Jitter.NONE, Exhausted.DLQ),
    ("s4_simple", 5, [1, 2, 4, 8, 16], Jitter.NONE, Exhausted.DLQ),
    ("s4_publish", 3, [5, 10, 20], Jitter.NONE, Exhausted.DLQ),
    ("s4_webhook", 2, [1, 2], Jitter.NONE, Exhausted.DROP),
]


@shows("S2-35", "S4-17")
@pytest.mark.parametrize(("name", "retries", "delays_s", "jitter", "end"), D_T2)
def test_each_row_of_table_d_t2(name: str, retries: int, delays_s: list[int], jitter: Jitter, end: Exhausted) -> None:
    policy = POLICIES[name]
    assert policy.max_retries == retries
    assert [policy.delay_ms(n, 0.0) // SECOND_MS for n in range(retries)] == delays_s
    assert (policy.jitter, policy.on_exhausted) == (jitter, end)


def test_there_is_no_policy_without_a_row() -> None:
    assert sorted(POLICIES) == sorted(name for name, *_ in D_T2)


def test_the_sweeps_age_limit_is_a_day() -> None:
    """Requirements S3-62."""
    assert POLICIES["s3_sweep"].max_age_ms == DAY_MS


def test_past_the_end_of_a_list_its_last_delay_holds() -> None:
    assert POLICIES["s3_sweep"].delay_ms(9, 0.5) == 15 * MINUTE_MS


def test_full_jitter_is_anywhere_from_nothing_to_the_delay() -> None:
    policy = RetryPolicy("full", 3, base_ms=1000, jitter=Jitter.FULL)
    assert [policy.delay_ms(1, jitter) for jitter in (0.0, 0.5, 1.0)] == [0, 1000, 2000]


def test_another_base_for_one_delay() -> None:
    assert EXPONENTIAL.delay_ms(1, 0.0, base_ms=5000) == 10_000


CLASSES: list[tuple[Outcome, ErrorClass | None]] = [
    (Taken("p"), None),
    (Gone("410"), ErrorClass.TERMINAL),
    (Refused("400", "bad"), ErrorClass.TERMINAL),
    (CredentialRejected("403", "key"), ErrorClass.CREDENTIAL),
    (Throttled("429"), ErrorClass.RATE_LIMIT),
    (Unreachable("refused", "away"), ErrorClass.GATEWAY_DOWN),
    (Unanswered("timeout", "no answer"), ErrorClass.TRANSIENT),
]


@shows("S1-65")
@pytest.mark.parametrize(("outcome", "error_class"), CLASSES)
def test_each_outcome_has_its_class(outcome: Outcome, error_class: ErrorClass | None) -> None:
    """Requirements S1-65."""
    assert classify(outcome) is error_class


def test_a_policy_is_chosen_by_class_then_by_urgency_then_by_default() -> None:
    default, urgent, limited = POLICIES["s2_default"], POLICIES["s2_critical"], POLICIES["s4_publish"]
    rules = RetryRules(default, {Urgency.CRITICAL: urgent}, {ErrorClass.RATE_LIMIT: limited})
    assert rules.choose(Urgency.NORMAL, ErrorClass.TRANSIENT) is default
    assert rules.choose(Urgency.CRITICAL, ErrorClass.TRANSIENT) is urgent
    assert rules.choose(Urgency.CRITICAL, ErrorClass.RATE_LIMIT) is limited

"""The breaker: closed, open, half-open."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from waypost.domain.breaker import Breaker, BreakerRules, BreakerState, failed, held, probing, succeeded

RULES = BreakerRules(failures_to_open=3, probe_after_s=5.0, probe_cap_s=30.0)
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
FRESH = Breaker(RULES)
FRESH_SLOW = Breaker(BreakerRules(failures_to_open=20, failing_for_s=10.0))


def _opened(at_s: float = 100.0) -> Breaker:
    return failed(FRESH, at_s, at_once=True)


def test_it_opens_after_that_many_failures_in_a_row() -> None:
    breaker = FRESH
    for n in range(2):
        breaker = failed(breaker, n)
        assert breaker.state is CLOSED
    breaker = failed(breaker, 7.0)
    assert (breaker.state, breaker.opened_at, breaker.wait_s) == (OPEN, 7.0, 5.0)


def test_few_failures_over_a_while_open_it_too() -> None:
    """A lone notification must not spend its retries on a provider that is away."""
    breaker = failed(failed(FRESH_SLOW, 0.0), 3.0)
    assert failed(breaker, 9.9).state is CLOSED
    assert failed(breaker, 10.0).state is OPEN
    assert failed(failed(FRESH_SLOW, 0.0), 60.0).state is CLOSED, "two may be an accident"


def test_a_pause_that_was_asked_for_is_kept_and_ends_with_a_probe() -> None:
    breaker = held(FRESH, 100.0, 20.0)
    assert breaker.state is OPEN
    assert probing(breaker, 119.9).state is OPEN
    assert succeeded(probing(breaker, 120.0)).state is CLOSED


def test_a_pause_of_hours_is_probed_as_often_as_any_other() -> None:
    assert probing(held(FRESH, 100.0, 7_200.0), 100.0 + RULES.probe_cap_s).state is HALF_OPEN


def test_a_success_in_between_starts_the_count_anew() -> None:
    breaker = succeeded(failed(failed(FRESH, 0), 0))
    assert breaker == FRESH
    assert failed(failed(breaker, 0), 0).state is CLOSED


def test_some_failures_open_it_at_once() -> None:
    assert _opened().state is OPEN


@pytest.mark.parametrize(("now_s", "state"), [(100.0, OPEN), (104.9, OPEN), (105.0, HALF_OPEN), (1e6, HALF_OPEN)])
def test_it_lets_a_probe_through_when_its_wait_is_over(now_s: float, state: BreakerState) -> None:
    assert probing(_opened(), now_s).state is state


def test_a_good_probe_closes_it() -> None:
    breaker = succeeded(probing(_opened(), 105.0))
    assert (breaker.state, breaker.failures) == (CLOSED, 0)


def test_each_failed_probe_doubles_the_wait_up_to_the_cap() -> None:
    breaker, now_s, waits = _opened(), 100.0, []
    for _ in range(5):
        waits.append(breaker.wait_s)
        now_s += breaker.wait_s
        breaker = failed(probing(breaker, now_s), now_s)
        assert (breaker.state, breaker.opened_at) == (OPEN, now_s)
    assert waits == [5.0, 10.0, 20.0, 30.0, 30.0]


def test_late_failures_do_not_prolong_an_open_breaker() -> None:
    assert failed(_opened(), 104.0) == _opened()


@pytest.mark.parametrize("breaker", [FRESH, failed(FRESH, 0), probing(_opened(), 200.0)])
def test_only_an_open_breaker_waits_for_a_probe(breaker: Breaker) -> None:
    assert probing(breaker, 1e9) is breaker


class Life(RuleBasedStateMachine):
    """Whatever happens, it can always come back."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = FRESH
        self.now_s = 0.0

    @rule(seconds=st.floats(0, 100))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.breaker = probing(self.breaker, self.now_s)

    @rule(at_once=st.booleans())
    def fail(self, at_once: bool) -> None:
        self.breaker = failed(self.breaker, self.now_s, at_once=at_once)

    @rule()
    def succeed(self) -> None:
        self.breaker = succeeded(self.breaker)
        assert self.breaker.state is CLOSED

    @invariant()
    def a_probe_is_never_further_away_than_the_cap(self) -> None:
        if self.breaker.state is OPEN:
            assert RULES.probe_after_s <= self.breaker.wait_s <= RULES.probe_cap_s
            assert probing(self.breaker, self.now_s + RULES.probe_cap_s).state is HALF_OPEN

    @invariant()
    def a_closed_breaker_has_counted_fewer_than_it_takes(self) -> None:
        if self.breaker.state is CLOSED:
            assert self.breaker.failures < RULES.failures_to_open


TestLife = Life.TestCase

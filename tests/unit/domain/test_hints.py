"""How long a provider's hint is kept to: also at an open breaker, and not beyond the end of the notification."""

from __future__ import annotations

import pytest

from tests.unit.domain.made import NOW, delivery, notification
from waypost.domain.breaker import Rest
from waypost.domain.outcome import Outcome, Throttled, Unanswered, Unreachable
from waypost.domain.retry import Jitter, RetryPolicy
from waypost.domain.settlement import LAST_CHANCE_MS, Again, Expired, decide
from waypost.domain.time import HOUR_MS, SECOND_MS, later

REST = Rest("breaker:demo/apns", 5 * SECOND_MS)
POLICY = RetryPolicy("test", 2, (SECOND_MS, 2 * SECOND_MS), jitter=Jitter.NONE)
BEYOND_MS = 2 * HOUR_MS
PATIENT: list[Outcome] = [
    Throttled("429", BEYOND_MS),
    Unreachable("503", "away", BEYOND_MS),
    Unanswered("500", "error", BEYOND_MS),
]


@pytest.mark.parametrize("outcome", PATIENT)
def test_a_hint_beyond_the_end_leaves_one_last_attempt_before_it(outcome: Outcome) -> None:
    lasting = delivery(notification(expires_at=later(NOW, HOUR_MS)))
    last = later(NOW, HOUR_MS - LAST_CHANCE_MS)
    settlement = decide(outcome, lasting, POLICY, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == last
    assert isinstance(decide(outcome, lasting, POLICY, last, 0.0), Expired)


@pytest.mark.parametrize("outcome", PATIENT)
def test_the_last_attempt_keeps_to_our_own_delay(outcome: Outcome) -> None:
    soon = delivery(notification(expires_at=later(NOW, LAST_CHANCE_MS + 500)))
    settlement = decide(outcome, soon, POLICY, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == later(NOW, SECOND_MS)


def test_a_longer_hint_is_kept_to_at_an_open_breaker() -> None:
    for outcome in (Unreachable("503", "away", 7_000), Throttled("429", 7_000), Unanswered("500", "error", 7_000)):
        settlement = decide(outcome, delivery(), POLICY, NOW, 0.0, REST)
        assert isinstance(settlement, Again)
        assert settlement.due_at == later(NOW, 7_000)

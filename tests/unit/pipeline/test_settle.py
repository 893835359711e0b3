"""Settle: which policy speaks for a delivery."""

from __future__ import annotations

from tests.unit.domain.made import delivery, notification
from waypost.domain.outcome import Unreachable
from waypost.domain.retry import POLICIES, RetryRules
from waypost.pipeline.settle import policy_for

RULES = RetryRules(POLICIES["s4_simple"])
AWAY = Unreachable("503", "away")


def test_the_policy_that_the_caller_named_comes_first() -> None:
    assert policy_for(delivery(notification(retry_policy="s2_low")), AWAY, RULES) is POLICIES["s2_low"]


def test_a_policy_that_is_known_no_more_gives_way_to_the_apps() -> None:
    """It was stored by another version: the outcome must be settled all the same."""
    assert policy_for(delivery(notification(retry_policy="of_old")), AWAY, RULES) is POLICIES["s4_simple"]

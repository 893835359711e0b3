"""Retry rules: which policy speaks for a delivery."""

from __future__ import annotations

from tests.unit.domain.made import notification
from waypost.domain.retry import POLICIES, ErrorClass, RetryRules

RULES = RetryRules(POLICIES["s4_simple"])


def test_the_policy_that_the_caller_named_comes_first() -> None:
    assert RULES.policy_for(notification(retry_policy="s2_low"), ErrorClass.TRANSIENT) is POLICIES["s2_low"]


def test_a_policy_that_is_known_no_more_gives_way_to_the_apps() -> None:
    """It was stored by another version: the outcome must be settled all the same."""
    assert RULES.policy_for(notification(retry_policy="of_old"), ErrorClass.TRANSIENT) is POLICIES["s4_simple"]

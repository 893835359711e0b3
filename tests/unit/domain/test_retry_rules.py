"""Retry rules: which policy speaks for a delivery."""

from __future__ import annotations

from waypost.domain.content import Urgency
from waypost.domain.retry import POLICIES, ErrorClass, RetryRules

RULES = RetryRules(POLICIES["s4_simple"])


def test_the_policy_that_the_caller_named_comes_first() -> None:
    assert RULES.policy_for("s2_low", Urgency.NORMAL, ErrorClass.TRANSIENT) is POLICIES["s2_low"]


def test_a_policy_that_is_known_no_more_gives_way_to_the_apps() -> None:
    """It was stored by another version: the outcome must be settled all the same."""
    assert RULES.policy_for("of_old", Urgency.NORMAL, ErrorClass.TRANSIENT) is POLICIES["s4_simple"]

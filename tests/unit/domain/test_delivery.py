"""Deliveries: when their time is over."""

from __future__ import annotations

import pytest

from tests.unit.domain.made import NOW, notification
from waypost.domain.delivery import NOW_OR_NEVER_MS, is_expired
from waypost.domain.message import message_of
from waypost.domain.time import later


@pytest.mark.parametrize(("late_ms", "expired"), [(-1, False), (0, True), (1, True)])
@pytest.mark.parametrize("attempt", [1, 2])
def test_no_attempt_starts_at_or_after_the_end(late_ms: int, expired: bool, attempt: int) -> None:
    one = notification(expires_at=NOW, ttl_ms=60_000)
    assert is_expired(one, attempt, later(NOW, late_ms)) is expired


@pytest.mark.parametrize(("late_ms", "expired"), [(0, False), (NOW_OR_NEVER_MS - 1, False), (NOW_OR_NEVER_MS, True)])
def test_a_ttl_of_zero_is_one_attempt_now(late_ms: int, expired: bool) -> None:
    one = notification(expires_at=NOW, ttl_ms=0)
    assert is_expired(one, 1, later(NOW, late_ms)) is expired
    assert is_expired(one, 2, later(NOW, late_ms))


@pytest.mark.parametrize(("left_ms", "seconds"), [(60_000, 60), (59_999, 59), (999, 0), (0, 0), (-5_000, 0)])
def test_the_remaining_ttl_is_whole_seconds_and_never_negative(left_ms: int, seconds: int) -> None:
    assert message_of(notification(expires_at=later(NOW, left_ms))).remaining_ttl_s(NOW) == seconds

"""How many messages a project may send now, and when the next ones may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waypost.adapters.fcm.quota import Quota

FULL = 600_000


def sent_within(quota: Quota, begin_s: int, end_s: int) -> int:
    """As much as is allowed, asked ten times a second."""
    return sum(quota.take(1_000_000, begin_s + tenth / 10) for tenth in range((end_s - begin_s) * 10))


def test_without_a_ramp_a_minute_has_the_whole_quota() -> None:
    quota = Quota(FULL, 0, 0.0)
    assert FULL <= sent_within(quota, 0, 60) <= FULL + 10_000
    assert abs(sent_within(quota, 60, 120) - FULL) <= 1_000


def test_a_ramp_begins_with_a_tenth_and_ends_with_all() -> None:
    quota = Quota(FULL, 60, 0.0)
    assert quota.take(5_000, 0.0) == 1_000
    first_s = sent_within(quota, 0, 1)
    assert 900 <= first_s <= 1_200
    assert 0.5 * FULL < sent_within(quota, 1, 60) < 0.6 * FULL
    assert 9_900 <= sent_within(quota, 60, 61) <= 10_100


def test_after_a_minute_of_silence_the_ramp_begins_again() -> None:
    quota = Quota(FULL, 60, 0.0)
    sent_within(quota, 0, 120)
    assert quota.take(50_000, 200.0) == 1_000


def test_the_wait_is_until_there_is_room() -> None:
    quota = Quota(600, 0, 0.0)
    assert quota.take(100, 0.0) == 10
    assert quota.wait_ms(1, 0.0) == 100
    assert quota.wait_ms(10, 0.0) == 1_000
    assert quota.take(1, 0.099) == 0
    assert quota.take(1, 0.101) == 1


@given(st.integers(60, 1_000_000), st.floats(0, 120), st.lists(st.tuples(st.floats(0, 5), st.integers(0, 5_000))))
def test_it_never_grants_more_than_the_quota_of_the_time_and_a_second(
    per_minute: int, ramp_s: float, asked: list[tuple[float, int]]
) -> None:
    quota = Quota(per_minute, ramp_s, 0.0)
    now_s, granted = 0.0, 0
    for pause_s, count in asked:
        now_s += pause_s
        given_now = quota.take(count, now_s)
        assert 0 <= given_now <= count
        granted += given_now
        assert granted <= per_minute / 60 * (now_s + 1) + 1
        assert quota.wait_ms(1, now_s) >= 1

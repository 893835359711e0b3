"""Quotas as operators write them."""

from __future__ import annotations

import pytest

from waypost.domain.limits import UNLIMITED, FixedWindow, Quota


@pytest.mark.parametrize(
    ("text", "quota", "written"),
    [
        ("100/15min", Quota(100, 900), "100/15min"),
        ("50000/s", Quota(50_000, 1), "50000/s"),
        ("1000 / h", Quota(1_000, 3_600), "1000/h"),
        ("5/60s", Quota(5, 60), "5/min"),
        ("7/2d", Quota(7, 172_800), "7/2d"),
        ("unlimited", UNLIMITED, "unlimited"),
    ],
)
def test_a_quota_is_written_as_one_text(text: str, quota: Quota, written: str) -> None:
    assert Quota.parse(text) == quota
    assert str(quota) == written
    assert quota.window == (FixedWindow(quota.limit, quota.window_s * 1_000) if quota.limit else None)


@pytest.mark.parametrize("text", ["", "100", "0/s", "100/", "100/0min", "-1/s", "1.5/s", "100/week", "100/min/min"])
def test_anything_else_is_told_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="100/15min"):
        Quota.parse(text)

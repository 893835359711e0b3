"""What several caps make of one notification."""

from __future__ import annotations

from typing import Literal
from zoneinfo import ZoneInfo

import pytest

from waypost.domain.capping import Capped, Claim, Full, judge
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.preferences import Cap
from waypost.domain.time import DAY_MS, Instant, later

NOON = Instant(20_000 * DAY_MS + DAY_MS // 2)
TOMORROW = later(NOON, DAY_MS // 2)
Over = Literal["hold", "drop", "degrade"]


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        (("hold", "hold"), Full(TOMORROW)),
        (("hold", "degrade"), Full(None, degrades=True)),
        (("degrade", "drop"), Full(None)),
        (("drop", "hold"), Full(None)),
    ],
)
def test_of_two_caps_that_are_reached_the_stricter_counts(over: tuple[Over, Over], expected: Full) -> None:
    wholes = {str(n): Cap(limit=1, over=each) for n, each in enumerate(over)}
    capped = Capped(wholes, {}, "news", ZoneInfo("UTC"))
    asked = Claim(AppId("demo"), UserId("ann"), NotificationId(bytes(16)), capped, frozenset({"push"}), NOON)
    assert judge(asked, {scope: {NotificationId(b"1" * 16): NOON} for scope in wholes}).whole == expected

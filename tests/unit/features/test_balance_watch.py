"""The watch over the balance."""

from __future__ import annotations

import pytest

from tests.contract.clock import StoppedClock
from waypost.domain.balance import Count, Difference, Line, Outline, Seen, Sheet, balance_of
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS, Instant
from waypost.features.balance.watch import BalanceWatch
from waypost.telemetry import Event, Metric
from waypost.telemetry.sink import Silent

AT = Instant(1_000_000)
PLACE = {"app": "demo", "lane": "normal"}


class Told(Silent):
    """What was said, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []
        self.gauges: dict[str, float] = {}

    def event(self, event: Event, /, **fields: object) -> None:
        """Keep it."""
        self.events.append((event, fields))

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep the last value of each line."""
        if metric is Metric.BALANCE_DIFFERENCE:
            self.gauges[labels["line"]] = value


def sheet(**counted: int) -> Sheet:
    """A look at one app and lane, where nothing is open."""
    each = balance_of(Seen(counted, {}, {}))
    return Sheet(AT, {(AppId("demo"), Lane.NORMAL): each})


def test_what_is_off_for_a_minute_is_told_once_and_its_end_too() -> None:
    """The metric is at once what it is; the event waits."""
    told = Told()
    watch = BalanceWatch(told)
    off, sound = sheet(**{Count.ACCEPTED: 3, Count.REQUESTS: 3, "sent": 2}), sheet(accepted=3, requests=3, sent=3)
    for second, found in ((0, off), (15, off), (59, off), (60, off), (75, off), (90, sound), (105, sound)):
        watch.take(found, Instant(AT + second * 1_000))
        assert told.gauges == {Line.REQUESTS: 0, Line.NOTIFICATIONS: 1 if found is off else 0, Line.DELIVERIES: 0}
        assert len(told.events) == (second >= 60) + (second >= 90)
    assert told.events == [
        (Event.BALANCE_OFF, {**PLACE, "line": "notifications", "difference": 1}),
        (Event.BALANCE_RESTORED, {**PLACE, "line": "notifications"}),
    ]


def test_what_was_off_for_a_moment_is_not_told() -> None:
    told = Told()
    watch = BalanceWatch(told)
    for minutes, found in ((0, sheet(targets=1)), (1, sheet()), (2, sheet(targets=1))):
        watch.take(found, Instant(AT + minutes * MINUTE_MS))
    assert told.events == []


class Slow:
    """A store that takes two seconds to be looked at."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.looks = 0

    async def read(self, app: AppId | None = None) -> Sheet:
        """Take time."""
        self.looks += 1
        self.now_s += 2.0
        return sheet()

    async def outline(self, app: AppId) -> Outline:
        """Find nothing."""
        return Outline({}, 0, 0)

    def refused(self, app: AppId, lane: Lane, n: int) -> None:
        """Count nothing."""

    async def audit(self) -> list[Difference]:
        """Find nothing."""
        return []


@pytest.mark.asyncio
async def test_looks_that_take_long_are_far_apart() -> None:
    """However much is open, a small part of the time goes into looking."""
    slow = Slow()
    watch = BalanceWatch(Silent(), lambda: slow.now_s)
    looks = []
    for now_s in (0.0, 17.0, 26.0, 27.0, 42.0):  # by a ticker every 15 s at the soonest
        slow.now_s = now_s
        await watch.look(slow, StoppedClock())
        looks.append(slow.looks)
    assert looks == [1, 1, 1, 2, 2]

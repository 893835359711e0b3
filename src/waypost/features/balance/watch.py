"""The watch over the balance: it looks often, and tells once of what has been off for a minute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from waypost.domain.balance import OPEN_DELIVERIES, Line, Place, Sheet
from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant
from waypost.ports.balance import BalanceSheet
from waypost.ports.clock import Clock
from waypost.telemetry import Event, Metric, Telemetry

LOOK_S: Final = 15.0
"""Seconds between two looks."""
_PAUSE: Final = 20
"""How many times as long as a look took the next one waits at least, however much is open."""


class BalanceWatch:
    """The watch of one process."""

    def __init__(self, telemetry: Telemetry, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._off: dict[tuple[Place, Line], Instant] = {}
        """Since when each line is off."""
        self._told: set[tuple[Place, Line]] = set()
        self._next_s = 0.0

    async def look(self, balance: BalanceSheet, clock: Clock) -> None:
        """Look whether *balance* adds up, unless the last look took long and was a moment ago."""
        since_s = self._monotonic()
        if since_s < self._next_s:
            return
        sheet = await balance.read()
        now_s = self._monotonic()
        self._next_s = now_s + _PAUSE * (now_s - since_s) - LOOK_S
        self.take(sheet, clock.now())

    def take(self, sheet: Sheet, now: Instant) -> None:
        """Set the metric, and tell of what is off for a minute, and of what was."""
        off = {(place, line): n for place, each in sheet.balances.items() for line, n in each.differences.items()}
        by_line: Counter[Line] = Counter()
        for (_, line), n in off.items():
            by_line[line] += abs(n)
        self._measure(sheet, now)
        for line in Line:
            self._telemetry.gauge(Metric.BALANCE_DIFFERENCE, by_line[line], line=line)
        for what in self._told - off.keys():
            (app, lane), line = what
            self._telemetry.event(Event.BALANCE_RESTORED, app=app, lane=lane, line=line)
        self._told &= off.keys()
        self._off = {what: self._off.get(what, now) for what in off}
        for what, n in off.items():
            if what not in self._told and now - self._off[what] >= MINUTE_MS:
                self._told.add(what)
                (app, lane), line = what
                self._telemetry.event(Event.BALANCE_OFF, app=app, lane=lane, line=line, difference=n)

    def _measure(self, sheet: Sheet, now: Instant) -> None:
        """Set the gauges of what is open, which the look has found anyway, and of how far behind the look was."""
        still_open = Counter({(lane, place): 0 for lane in Lane for place in OPEN_DELIVERIES})
        for (_, lane), each in sheet.balances.items():
            still_open.update({(lane, place): n for place, n in each.deliveries.open.items()})
        for (lane, place), n in still_open.items():
            self._telemetry.gauge(Metric.OPEN_DELIVERIES, n, lane=lane, place=place)
        self._telemetry.gauge(Metric.LEDGER_BEHIND, max(0, now - sheet.at) / SECOND_MS)

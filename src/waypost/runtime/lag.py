"""The lag of delivery by lane and app, as metrics with a bounded number of labels."""

from __future__ import annotations

from typing import Final

from waypost.domain.backlog import AppLag, Lags, of_largest
from waypost.domain.time import SECOND_MS
from waypost.ports.clock import Clock
from waypost.ports.work import Work
from waypost.telemetry import Metric, Telemetry

LAG_S: Final = 15.0
"""Seconds between two measurements: the counters are summed up, once for all apps."""
APPS: Final = 20
"""Apps of a lane that are told by name."""
_OTHERS: Final = "(others)"
_NOTHING: Final = AppLag(0)


class LagWatch:
    """A watch on what is open in the store."""

    def __init__(self, work: Work, clock: Clock, telemetry: Telemetry) -> None:
        self._work = work
        self._clock = clock
        self._telemetry = telemetry
        self._told: Lags = {}

    async def measure(self) -> None:
        """Publish how much is open and how old it is, and nothing of the apps that are told no longer."""
        found = of_largest(await self._work.lag(), APPS)
        self._tell({**dict.fromkeys(self._told, _NOTHING), **found})
        self._told = found

    def _tell(self, lags: Lags) -> None:
        now = self._clock.now()
        for (lane, app), lag in lags.items():
            labels = {"lane": lane, "app": app or _OTHERS}
            age_s = 0.0 if lag.oldest is None else max(0, now - lag.oldest) / SECOND_MS
            self._telemetry.gauge(Metric.OPEN, lag.open, **labels)
            self._telemetry.gauge(Metric.OLDEST_NEW, age_s, **labels)

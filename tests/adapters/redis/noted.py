"""Telemetry that can be waited for."""

from __future__ import annotations

import asyncio
from collections import Counter

from waypost.telemetry import Event, Metric, Silent


class Noted(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: Counter[tuple[Metric, str]] = Counter()
        self._news = asyncio.Event()

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        self.events.append(event)
        self._news.set()

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """See Telemetry; by the values of the labels."""
        self.counts[metric, " ".join(labels.values())] += int(n)

    async def saw(self, event: Event) -> None:
        """Return when *event* has been told."""
        while event not in self.events:
            await self._news.wait()
            self._news.clear()

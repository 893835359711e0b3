"""Where events and metrics go: whatever the composition root injects."""

from __future__ import annotations

from typing import Protocol

from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric


class Telemetry(Protocol):
    """Takes what happens; never blocks, never raises."""

    def wants(self, event: Event, /) -> bool:
        """Whether anything would come of *event*: for what happens so often that even to say it costs."""
        ...

    def event(self, event: Event, /, **fields: object) -> None:
        """Log *event* with its fields."""
        ...

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Add *n* to a counter."""
        ...

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        ...

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Record one value of a histogram."""
        ...


class Silent:
    """A sink that forgets everything."""

    def wants(self, event: Event, /) -> bool:
        """Nothing."""
        return False

    def event(self, event: Event, /, **fields: object) -> None:
        """Forget it."""

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Forget it."""

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Forget it."""

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Forget it."""

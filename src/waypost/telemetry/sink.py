"""The sink of events and metrics, which the composition root injects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric


class Telemetry(Protocol):
    """A sink for events and metrics; it never blocks and never raises."""

    def wants(self, event: Event, /) -> bool:
        """Tell whether *event* would be kept: asked about events so frequent that even to build them costs."""
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

    def observe_all(self, metric: Metric, values: Sequence[float], /, **labels: str) -> None:
        """Record many values of a histogram at once, for much less than one by one."""
        ...


class Silent:
    """A sink that forgets everything."""

    def wants(self, event: Event, /) -> bool:
        """Return False: no event is kept."""
        return False

    def event(self, event: Event, /, **fields: object) -> None:
        """Ignore the event."""

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Ignore the count."""

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Ignore the gauge."""

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Ignore the observation."""

    def observe_all(self, metric: Metric, values: Sequence[float], /, **labels: str) -> None:
        """Ignore the values."""

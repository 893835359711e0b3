"""A telemetry sink that keeps its events."""

from __future__ import annotations

from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Silent


class Noted(Silent):
    """What happened, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []
        self.gauges: dict[Metric, float] = {}
        """The last value of each without labels."""

    def event(self, event: Event, /, **fields: object) -> None:
        """Keep it."""
        self.events.append((event, fields))

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep it."""
        if not labels:
            self.gauges[metric] = value

    def fields_of(self, event: Event) -> list[dict[str, object]]:
        """Of each time that *event* happened."""
        return [fields for happened, fields in self.events if happened is event]

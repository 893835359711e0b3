"""Several sinks as one."""

from __future__ import annotations

from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Telemetry


class Combined:
    """Tells every sink everything; each takes what is its business."""

    def __init__(self, *sinks: Telemetry) -> None:
        self._sinks = sinks

    def wants(self, event: Event, /) -> bool:
        """See Telemetry."""
        return any(sink.wants(event) for sink in self._sinks)

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        for sink in self._sinks:
            sink.event(event, **fields)

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._sinks:
            sink.count(metric, n, **labels)

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._sinks:
            sink.gauge(metric, value, **labels)

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._sinks:
            sink.observe(metric, value, **labels)

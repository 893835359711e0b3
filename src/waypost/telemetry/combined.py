"""Several sinks as one."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Silent, Telemetry


class Combined:
    """A sink that passes to each sink what it handles: whatever it does not leave to ``Silent``."""

    def __init__(self, *sinks: Telemetry) -> None:
        self._events = [sink for sink in sinks if type(sink).event is not Silent.event]
        self._metrics = [sink for sink in sinks if type(sink).count is not Silent.count]

    def wants(self, event: Event, /) -> bool:
        """See Telemetry."""
        return any(sink.wants(event) for sink in self._events)

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        for sink in self._events:
            sink.event(event, **fields)

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._metrics:
            sink.count(metric, n, **labels)

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._metrics:
            sink.gauge(metric, value, **labels)

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._metrics:
            sink.observe(metric, value, **labels)

    def observe_all(self, metric: Metric, values: Sequence[float], /, **labels: str) -> None:
        """See Telemetry."""
        for sink in self._metrics:
            sink.observe_all(metric, values, **labels)

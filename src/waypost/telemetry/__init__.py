"""Telemetry: named events and metrics, each in one enum; sinks are injected."""

from waypost.telemetry.combined import Combined
from waypost.telemetry.events import Event, Level
from waypost.telemetry.metrics import Metric, MetricKind
from waypost.telemetry.sink import Silent, Telemetry

__all__ = ["Combined", "Event", "Level", "Metric", "MetricKind", "Silent", "Telemetry"]

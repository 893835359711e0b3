"""Events as JSON lines, one object an event (requirements S3-101)."""

from __future__ import annotations

import sys
from typing import Any, TextIO

import msgspec
import structlog

from waypost.telemetry import Event, Level, Metric

_ORDER = {level: rank for rank, level in enumerate((Level.DEBUG, Level.INFO, Level.WARNING, Level.ERROR))}
_encode = msgspec.json.Encoder(enc_hook=str).encode


class StructlogSink:
    """Writes events of *level* and above; metrics are somebody else's."""

    def __init__(self, level: Level, service: str = "push-worker", stream: TextIO = sys.stderr) -> None:
        self._rank = _ORDER[level]
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(stream),
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
                structlog.processors.JSONRenderer(serializer=_json),
            ],
            wrapper_class=structlog.BoundLogger,
        ).bind(service=service)

    def event(self, event: Event, /, **fields: object) -> None:
        """Write one line, if its level is asked for."""
        if _ORDER[event.level] >= self._rank:
            self._log.msg(event.label, level=event.level.value, **fields)

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Not logged."""

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Not logged."""

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Not logged."""


def _json(fields: dict[str, Any], **_: object) -> str:
    return _encode(fields).decode()

"""The log sink: one line of JSON an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import msgspec
import structlog
from structlog.typing import EventDict

from waypost.telemetry import Event, Level, Silent

_ORDER = list(Level)
_encode = msgspec.json.Encoder(enc_hook=lambda value: type(value).__name__).encode


class StructlogSink(Silent):
    """Writes events of *level* and above to a binary stream, with the fields every line of this process has."""

    def __init__(self, stream: BinaryIO, level: Level = Level.INFO, **always: object) -> None:
        self._shown = frozenset(_ORDER[_ORDER.index(level) :])
        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp")
        self._log = _EventLog(structlog.BytesLogger(stream), [stamp, _line], dict(always))

    def wants(self, event: Event, /) -> bool:
        """See Telemetry."""
        return event.level in self._shown

    def event(self, event: Event, /, **fields: object) -> None:
        """Write one line; a stream that is gone is not worth dying for."""
        if not self.wants(event):
            return
        try:
            self._log.say(event, fields)
        except OSError:
            return


class _EventLog(structlog.BoundLoggerBase):
    """Logs events of our enum alone."""

    def say(self, event: Event, fields: Mapping[str, object]) -> None:
        """Write one line."""
        self._proxy_to_logger("msg", event.label, level=event.level.value, **fields)


def _line(_logger: object, _method: str, event: EventDict) -> bytes:
    """Time, level and name first; bytes (ids, hashes) in hex, what JSON cannot say by the name of its type."""
    head = {name: event.pop(name) for name in ("timestamp", "level", "event")}
    return _encode(head | _readable(event))


def _readable(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}

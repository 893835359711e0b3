"""The log sinks: one line an event, of JSON or for people."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from io import FileIO

import msgspec

from waypost.adapters.jsonlines.writer import LineWriter, Unbuffered
from waypost.telemetry import Event, Level, Metric, Silent, Telemetry

_STDERR = 2
_ORDER = list(Level)
_PLAIN = re.compile(r"[\w./:@+-]+", re.ASCII)
_encode = msgspec.json.Encoder(enc_hook=lambda value: type(value).__name__).encode


class JsonLinesSink(Silent):
    """A sink that writes events of *level* and above to a stream, with the fields every line of this process has."""

    def __init__(
        self, stream: Unbuffered, level: Level = Level.INFO, metrics: Telemetry | None = None, **always: object
    ) -> None:
        """Create the sink; *metrics* counts the lines that were dropped, since nobody read those before them."""
        self._shown = frozenset(_ORDER[_ORDER.index(level) :])
        self._metrics = metrics or Silent()
        self._always = always
        self._writer = LineWriter(stream, lambda count: self._line(Event.LOG_DROPPED, count=count))

    def wants(self, event: Event, /) -> bool:
        """See Telemetry."""
        return event.level in self._shown

    def event(self, event: Event, /, **fields: object) -> None:
        """Write one line, soon, without waiting for whoever reads it.

        Time, level and name come first; bytes (ids, hashes) are in hex, and what JSON cannot say is named by its type.
        """
        if self.wants(event) and not self._writer.put(self._line(event, **fields)):
            self._metrics.count(Metric.LOG_DROPPED)

    def flush(self, limit_s: float) -> bool:
        """Wait until all is written, for *limit_s* at most; return whether it is."""
        return self._writer.flush(limit_s)

    def _line(self, event: Event, **fields: object) -> bytes:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        head = {"timestamp": now, "level": event.level.value, "event": event.label}
        said = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
        return _encode(head | self._always | said) + b"\n"


class TextLinesSink(JsonLinesSink):
    """The same lines for people on a terminal: time of day, level, event, and its fields as ``name=value``."""

    def _line(self, event: Event, **fields: object) -> bytes:
        head = f"{datetime.now().astimezone():%H:%M:%S.%f}"[:-3] + f"  {event.level.value:7}  {event.label:24}"
        said = "  ".join(f"{name}={_word(value)}" for name, value in (self._always | fields).items())
        return f"{head}  {said}".rstrip().encode() + b"\n"


def _word(value: object) -> str:
    """Write *value* so that it reaches no terminal as a command: in quotes, escaped, unless it is a plain word."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(msgspec.to_builtins(value, enc_hook=lambda it: type(it).__name__))


def standard_error() -> FileIO:
    """Open standard error without a buffer."""
    return FileIO(_STDERR, "wb", closefd=False)

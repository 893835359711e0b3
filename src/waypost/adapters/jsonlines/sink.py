"""The log sink: one line of JSON an event."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Lock
from typing import BinaryIO

import msgspec

from waypost.telemetry import Event, Level, Silent

_ORDER = list(Level)
_encode = msgspec.json.Encoder(enc_hook=lambda value: type(value).__name__).encode


class JsonLinesSink(Silent):
    """Writes events of *level* and above to a binary stream, with the fields every line of this process has."""

    def __init__(self, stream: BinaryIO, level: Level = Level.INFO, **always: object) -> None:
        self._stream = stream
        self._shown = frozenset(_ORDER[_ORDER.index(level) :])
        self._always = always
        self._lock = Lock()

    def wants(self, event: Event, /) -> bool:
        """See Telemetry."""
        return event.level in self._shown

    def event(self, event: Event, /, **fields: object) -> None:
        """Write one line; a stream that is gone is not worth dying for.

        Time, level and name come first; bytes (ids, hashes) are in hex, and what JSON cannot say is named by its type.
        """
        if not self.wants(event):
            return
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        head = {"timestamp": now, "level": event.level.value, "event": event.label}
        said = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
        line = _encode(head | self._always | said) + b"\n"
        try:
            with self._lock:
                self._stream.write(line)
                self._stream.flush()
        except OSError:
            return

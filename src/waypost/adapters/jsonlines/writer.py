"""A writer of lines in a thread of its own, so that nobody waits for whoever reads them."""

from __future__ import annotations

import atexit
import select
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final, Protocol

LINES_LIMIT: Final = 10_000
"""The most lines that wait to be written, some 3 MiB; what comes then is dropped."""
FLUSH_S: Final = 1.0
"""Seconds for which the end of the process waits for the last lines."""


class Unbuffered(Protocol):
    """A stream that has no buffer, whose lock the end of the interpreter would wait for."""

    def write(self, data: memoryview, /) -> int | None:
        """Write some of *data* and say how much; None where it would have to wait, and was told not to."""
        ...

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        ...


class LineWriter:
    """A bounded queue of lines before a stream that may take none: a pipe that nobody reads, a disk that hangs."""

    def __init__(self, stream: Unbuffered, dropped: Callable[[int], bytes]) -> None:
        """Create the queue; *dropped* words the line that says how many were dropped."""
        self._stream = stream
        self._line_of_dropped = dropped
        self._lines: list[bytes] = []
        self._dropped = 0
        self._is_writing = False
        self._changed = Condition()
        self._thread: Thread | None = None

    def put(self, line: bytes) -> bool:
        """Write *line* soon; False where too many wait, and it is dropped."""
        with self._changed:
            if len(self._lines) >= LINES_LIMIT:
                self._dropped += 1
                return False
            self._lines.append(line)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="waypost-log", daemon=True)
                self._thread.start()
                atexit.register(self.flush, FLUSH_S)
            self._changed.notify_all()
            return True

    def flush(self, limit_s: float) -> bool:
        """Wait until all is written, for *limit_s* at most; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._lines or self._is_writing), limit_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                self._is_writing = True
                lines, self._lines = self._lines, []
                dropped, self._dropped = self._dropped, 0
            if dropped:
                lines.append(self._line_of_dropped(dropped))
            self._write(b"".join(lines))

    def _write(self, data: bytes) -> None:
        """Write all of it; a stream that is gone is not worth dying for."""
        left = memoryview(data)
        try:
            while left:
                taken = self._stream.write(left)
                if taken is None:  # somebody made the pipe refuse instead of wait
                    select.select([], [self._stream], [])
                left = left[taken or 0 :]
        except (OSError, ValueError):
            return

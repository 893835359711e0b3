"""Time that moves when a test says so."""

from __future__ import annotations

from waypost.domain.time import Instant, later

START = Instant(1_800_000_000_000)


class StoppedClock:
    """A Clock that stands still until it is told to move on."""

    def __init__(self, start: Instant = START) -> None:
        self._now = start
        self._set_by_ms = 0

    def now(self) -> Instant:
        """See Clock."""
        return later(self._now, self._set_by_ms)

    def monotonic(self) -> float:
        """See Clock."""
        return self._now / 1000

    def advance(self, span_ms: int) -> Instant:
        """Move on; the new time."""
        self._now = later(self._now, span_ms)
        return self.now()

    def set(self, by_ms: int) -> None:
        """Set the wall clock to another time."""
        self._set_by_ms += by_ms

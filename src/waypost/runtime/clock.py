"""The real clock, ids and chance."""

from __future__ import annotations

import os
import time
from typing import Final

from waypost.domain.ids import NotificationId, next_ids
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.clock import Clock


class SystemClock:
    """The machine's wall and monotonic clocks."""

    def now(self) -> Instant:
        """Read the wall clock, in milliseconds."""
        return Instant(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """Read CLOCK_MONOTONIC, in seconds: the same for every process of the machine."""
        return time.monotonic()


_SET_BY_MS: Final = 50
"""Milliseconds between wall clock and monotonic clock from which the former was set, or has drifted away."""


class ClockWatch:
    """A watch on a wall clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = self._ahead()

    def was_set(self) -> bool:
        """Tell whether the clock was set since this was last told."""
        ahead_ms = self._ahead()
        if abs(ahead_ms - self._ahead_ms) < _SET_BY_MS:
            return False
        self._ahead_ms = ahead_ms
        return True

    def _ahead(self) -> float:
        return self._clock.now() - self._clock.monotonic() * SECOND_MS


_NOISE_BYTES: Final = 10
"""The random bytes of one call for ids."""
_DRAWN_BYTES: Final = 64 * _NOISE_BYTES
"""The random bytes that are asked of the system at once."""


class RandomIds:
    """A maker of UUIDv7s that never go back within the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._floor = 0
        self._noise = b""

    def next(self, count: int) -> list[NotificationId]:
        """Make *count* ids in order."""
        if not self._noise:
            self._noise = os.urandom(_DRAWN_BYTES)
        noise, self._noise = self._noise[:_NOISE_BYTES], self._noise[_NOISE_BYTES:]
        ids, self._floor = next_ids(self._clock.now(), count, noise, self._floor)
        return ids

"""The real clock, ids and chance."""

from __future__ import annotations

import os
import time

from waypost.domain.ids import NotificationId, next_ids
from waypost.domain.time import Instant
from waypost.ports.clock import Clock


class SystemClock:
    """The machine's wall and monotonic clocks."""

    def now(self) -> Instant:
        """Read the wall clock, in milliseconds."""
        return Instant(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """Read CLOCK_MONOTONIC, in seconds: the same for every process of the machine."""
        return time.monotonic()


class RandomIds:
    """A maker of UUIDv7s that never go back within the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._floor = 0

    def next(self, count: int) -> list[NotificationId]:
        """Make *count* ids in order."""
        ids, self._floor = next_ids(self._clock.now(), count, os.urandom(10), self._floor)
        return ids

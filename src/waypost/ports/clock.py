"""Time, ids and chance, injected everywhere."""

from __future__ import annotations

from typing import Protocol

from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant


class Clock(Protocol):
    """A clock: wall time for TTLs and schedules, monotonic time for leases, breakers and deadlines."""

    def now(self) -> Instant:
        """Read the wall clock, in milliseconds."""
        ...

    def monotonic(self) -> float:
        """Read a clock that never goes back, in seconds; only differences mean something."""
        ...


class Ids(Protocol):
    """A maker of notification ids."""

    def next(self, count: int) -> list[NotificationId]:
        """Make *count* ids in order; ids of one process never go back, whatever the clock does."""
        ...


class RandomSource(Protocol):
    """A source of random numbers."""

    def __call__(self) -> float:
        """Draw a number from 0 to 1."""
        ...

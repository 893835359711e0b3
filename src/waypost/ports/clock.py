"""Time, ids and chance, injected everywhere."""

from __future__ import annotations

from typing import Protocol

from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant


class Clock(Protocol):
    """Wall time for TTLs and schedules, monotonic time for leases, breakers and deadlines."""

    def now(self) -> Instant:
        """Wall clock, milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean something."""
        ...


class Ids(Protocol):
    """Makes notification ids."""

    def next(self, count: int) -> list[NotificationId]:
        """*count* ids in order; ids of one process never go back, whatever the clock does."""
        ...


class RandomSource(Protocol):
    """Chance."""

    def __call__(self) -> float:
        """A number from 0 to 1."""
        ...

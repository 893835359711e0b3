"""The pressure on intake: how long it takes to be accepted, by which entry points shed load."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Cause(StrEnum):
    """The cause of pressure: what waits too long for its commit."""

    ACCEPTS = "accepts"
    """Submissions of callers."""
    OUTCOMES = "outcomes"
    """Outcomes that must be recorded, and whatever else is written beside submissions."""


class Pressure(Struct, frozen=True):
    """The wait for a commit, as shares of what is allowed: 0 is no wait at all; from 1 on it is too long."""

    accepts: float
    """The wait of a submission."""
    outcomes: float
    """The wait of an outcome."""
    is_hurried: bool = False
    """Whether what is critical waits for others' commits now: they are to be short."""

    @property
    def share(self) -> float:
        """The longer of both waits."""
        return max(self.accepts, self.outcomes)

    @property
    def cause(self) -> Cause:
        """The cause: which of both waits longer."""
        return Cause.OUTCOMES if self.outcomes > self.accepts else Cause.ACCEPTS

    @property
    def stops_leases(self) -> bool:
        """Whether to lease no more: what was sent waits too long to be recorded, and sending would make it longer."""
        return self.outcomes >= 1


CALM: Final = Pressure(0.0, 0.0)
"""The pressure where nobody waits."""

"""How hard it is to be accepted at the moment: what the doors shed by."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Cause(StrEnum):
    """What waits too long for its commit."""

    ACCEPTS = "accepts"
    """What callers have submitted."""
    OUTCOMES = "outcomes"
    """What was sent and must be recorded, and whatever else is written beside what is accepted."""


class Pressure(Struct, frozen=True):
    """How long a submission would wait for its commit, or an outcome has waited, as a share of what is allowed."""

    share: float
    """0 is no wait at all; from 1 on it is too long."""
    cause: Cause

    @property
    def stops_leases(self) -> bool:
        """What was sent waits too long to be recorded: sending more would make it longer."""
        return self.cause is Cause.OUTCOMES and self.share >= 1


CALM: Final = Pressure(0.0, Cause.ACCEPTS)
"""Nobody waits."""

"""Doors without limits, for tests of what else they do."""

from __future__ import annotations

from typing import Final

from waypost.domain.limits import Granted, Limit, Wait
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent


class _Unasked:
    """In place of a limiter where there are no limits."""

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """Nobody asks."""
        raise AssertionError(f"{name} has no limit")


UNBOUNDED: Final = EntrypointLimits(Bounds(), _Unasked(), SystemClock(), Silent())

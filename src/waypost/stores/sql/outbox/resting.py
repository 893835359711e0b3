"""The rest of a relay that could not publish: no delivery waits for it.

Requirement S4-73: 5, 10, 20, 40 s, at most 60 s.
"""

from __future__ import annotations

import asyncio
from typing import Final

from waypost.telemetry import Event, Telemetry

RESTS_S: Final = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds to rest after so many failures in a row; the last one from then on."""


class Resting:
    """The failures in a row, and the rest after each."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._failures = 0

    def failed(self, why: str) -> None:
        """Count a failure: the broker took nothing; *why* holds no secret."""
        self._failures += 1
        self._telemetry.event(Event.RELAY_RETRY, failures=self._failures, again_in_s=self._rest_s(), why=why)

    def succeeded(self) -> None:
        """Forget failures: the broker took what there was."""
        self._failures = 0

    async def rest(self, least_s: float) -> None:
        """Rest for as long as the failures ask for, *least_s* where it was not the broker."""
        await asyncio.sleep(self._rest_s() if self._failures else least_s)

    def _rest_s(self) -> float:
        return RESTS_S[min(self._failures, len(RESTS_S)) - 1]

"""The notifications that may be in the log, unknown to the ledger: ids above the recorder's position."""

from __future__ import annotations

from collections.abc import Collection

from waypost.domain.ids import NotificationId, created_at, is_made_by_us
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.clock import Clock
from waypost.ports.ledger import Ledger

_SKEW_MS = MINUTE_MS
"""Milliseconds that the clock of another machine may be ahead that makes ids."""


class Unrecorded:
    """The ids between what is recorded and now."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def among(self, ids: Collection[NotificationId]) -> set[NotificationId]:
        """Return those of *ids* that a recorder may still find in the log.

        The others were recorded before this was asked, or never accepted.
        """
        if not ids:
            return set()
        since, until = await self._ledger.complete_until(), later(self._clock.now(), _SKEW_MS)
        return {each for each in ids if is_made_by_us(each) and since <= created_at(each) <= until}

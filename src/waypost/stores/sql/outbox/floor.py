"""The number from which the relay reads the outbox: not from its beginning, where all is published.

While somebody has an old snapshot (a dump) the server keeps every entry that was published since in its index, and a
read from the beginning passes all of them.
"""

from __future__ import annotations

from typing import Final

from waypost.ports.clock import Clock

LAG_S: Final = 60.0
"""Seconds by which the relay lags to read again: for commits that end later than those after them."""


class Floor:
    """The number up to which entries were published, or were somebody's to publish, when last looked through."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mark: tuple[float, int] | None = None
        self._highest = 0
        self.at = 0

    def saw(self, highest: int) -> None:
        """Note an entry that was claimed."""
        self._highest = max(self._highest, highest)

    def is_through(self) -> None:
        """Note that nothing more is to be claimed at this moment."""
        now_s = self._clock.monotonic()
        if self._mark is not None and now_s - self._mark[0] < LAG_S:
            return
        if self._mark is not None:
            self.at = self._mark[1]
        self._mark = (now_s, self._highest)

    def back_to(self, lowest: int) -> None:
        """Go back to an entry that is to be claimed again."""
        self.at = min(self.at, lowest - 1)
        self._mark = None

"""The backlog: how much is accepted and not final, and who may add to it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane

Waiting = Mapping[tuple[Lane, AppId | None], int]
"""Open notifications by lane and app; None stands for those of which the app is not known yet."""


class Full(StrEnum):
    """The limit that was reached: that of the whole lane, or one app's share."""

    LANE = "lane"
    APP = "app"


class Backlog(Struct, frozen=True):
    """The numbers of waiting notifications by lane and app, and the limit for each lane."""

    limit: int
    """The limit for each lane."""
    is_shared: bool
    """Whether there is more than one app."""
    waiting: Waiting = {}

    @property
    def counts_from(self) -> int:
        """How many must be open in a lane before anybody is refused there."""
        return max(1, self.limit // 2)

    def full(self, lane: Lane, app: AppId) -> Full | None:
        """Name the limit that *lane* has reached for *app*; None where *app* may add to it.

        An app may have as many waiting as the lane has room left, so that one alone gets half of the limit, two a third
        each, and one that has nothing waiting always finds room. It is the rule by which switches share a buffer:
        Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998, with alpha = 1.
        """
        room = self.limit - sum(n for (of_lane, _), n in self.waiting.items() if of_lane is lane)
        if room <= 0:
            return Full.LANE
        if self.is_shared and self.waiting.get((lane, app), 0) >= room:
            return Full.APP
        return None

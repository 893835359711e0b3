"""The backlog: how much is accepted and not final, and who may add to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant

Waiting = Mapping[tuple[Lane, AppId | None], int]
"""Open notifications by lane and app; None stands for those of which the app is not known yet."""

LATE_AFTER_S: Final[Mapping[Lane, int]] = dict.fromkeys(Lane, 900) | {Lane.CRITICAL: 60, Lane.BULK: 3_600}
"""Seconds from which the oldest in a lane is late, so that an operator is told."""


class AppLag(Struct, frozen=True):
    """The lag of delivery for one app in one lane."""

    open: int
    """Notifications that are accepted and not final, scheduled ones included."""
    oldest: Instant | None = None
    """When the oldest was accepted of which the first attempt is not over; None: there is none."""


Lags = Mapping[tuple[Lane, AppId | None], AppLag]
"""The lag by lane and app; None stands for apps that are summed up or not known yet."""


def of_largest(lags: Lags, most: int) -> Lags:
    """Keep the *most* apps of each lane that have most open, and sum up the others."""
    by_lane: defaultdict[Lane, list[tuple[AppId, AppLag]]] = defaultdict(list)
    rest: defaultdict[Lane, list[AppLag]] = defaultdict(list)
    for (lane, app), lag in lags.items():
        if app is None:
            rest[lane].append(lag)
        else:
            by_lane[lane].append((app, lag))
    kept: dict[tuple[Lane, AppId | None], AppLag] = {}
    for lane, apps in by_lane.items():
        apps.sort(key=lambda each: (-each[1].open, each[0]))
        kept.update({(lane, app): lag for app, lag in apps[:most]})
        rest[lane] += [lag for _, lag in apps[most:]]
    kept.update({(lane, None): _sum(others) for lane, others in rest.items() if others})
    return kept


def _sum(lags: list[AppLag]) -> AppLag:
    return AppLag(
        sum(lag.open for lag in lags), min((lag.oldest for lag in lags if lag.oldest is not None), default=None)
    )


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

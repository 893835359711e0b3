"""Best hours: from what users read when to the hour of the day in which to send to each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo

from waypost.domain.best_hour import HOURS, BasedOn, BestHour, Hours, best_hour, summed
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, later, to_datetime
from waypost.ports.analytics import Analytics
from waypost.ports.clock import Clock

HABIT_MS: Final = 90 * DAY_MS
"""Milliseconds that count as somebody's habit."""


class CountedHours:
    """The hours of the day in which users read most, by what analytics counted."""

    def __init__(self, analytics: Analytics, clock: Clock) -> None:
        self._analytics = analytics
        self._clock = clock

    async def of(
        self, app: AppId, users: Mapping[UserId, ZoneInfo], like: Sequence[UserId] = ()
    ) -> dict[UserId, BestHour]:
        """Name the best hour of each of *users*, in the zone given for them; who is missing, nothing is known of.

        It is the user's own, else that of users *like* them (members of a segment), else that of all of the app.
        """
        now = self._clock.now()
        since = later(now, -HABIT_MS)
        own = await self._analytics.hours(app, list(users), since)
        alike = summed(await self._analytics.hours(app, like, since)) if like else Hours()
        (everybody,) = await self._analytics.hours(app, None, since)
        found: dict[UserId, BestHour] = {}
        for (user_id, zone), hours in zip(users.items(), own, strict=True):
            known = [(BasedOn.USER, hours), (BasedOn.SEGMENT, alike), (BasedOn.APP, everybody)]
            if (best := best_hour(known, _shift(zone, now))) is not None:
                found[user_id] = best
        return found


def _shift(zone: ZoneInfo, now: Instant) -> int:
    """Return the zone's offset from UTC in whole hours."""
    offset = to_datetime(now).astimezone(zone).utcoffset() or timedelta()
    return round(offset.total_seconds() * 1000 / HOUR_MS) % HOURS

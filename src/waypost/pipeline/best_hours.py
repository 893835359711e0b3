"""Best hours: from what users read when to the hour of the day in which to send to each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from waypost.domain.best_hour import HABIT_MS, BasedOn, BestHour, Hours, best_hour, summed
from waypost.domain.best_time import Habits, shift_of
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import later
from waypost.ports.analytics import Analytics
from waypost.ports.clock import Clock


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
        now, found = self._clock.now(), await self.habits(app, list(users), like)
        best = {user: best_hour(found[user], shift_of(zone, now)) for user, zone in users.items()}
        return {user: hour for user, hour in best.items() if hour is not None}

    async def habits(self, app: AppId, users: Sequence[UserId], like: Sequence[UserId] = ()) -> dict[UserId, Habits]:
        """Read when each of *users* reads, users *like* them, and all of the app."""
        since = later(self._clock.now(), -HABIT_MS)
        own = await self._analytics.hours(app, users, since)
        alike = summed(await self._analytics.hours(app, like, since)) if like else Hours()
        (everybody,) = await self._analytics.hours(app, None, since)
        rest = [(BasedOn.SEGMENT, alike), (BasedOn.APP, everybody)]
        return {user: [(BasedOn.USER, hours), *rest] for user, hours in zip(users, own, strict=True)}

"""Best hours: when to send to each user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from zoneinfo import ZoneInfo

from waypost.domain.best_hour import BestHour
from waypost.domain.ids import AppId, UserId


class BestHours(Protocol):
    """The hours of the day in which users open most."""

    async def of(
        self, app: AppId, users: Mapping[UserId, ZoneInfo], like: Sequence[UserId] = ()
    ) -> dict[UserId, BestHour]:
        """Name the best hour of each of *users*, in the zone given for them; who is missing, nothing is known of.

        It is the user's own, else that of users *like* them (members of a segment), else that of all of the app.
        """
        ...

"""Zones: where the users of an app are on the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waypost.domain.ids import AppId, UserId
from waypost.domain.local_time import ChosenZone, choose_zone
from waypost.domain.profile import NOBODY
from waypost.ports.profiles import Profiles


async def zones_of(
    profiles: Profiles, of_apps: Mapping[AppId, str | None], app: AppId, users: Sequence[UserId]
) -> dict[UserId, ChosenZone]:
    """Find the zone of each of *users*: that of their profile, else the one of their app."""
    known = await profiles.of(app, list(dict.fromkeys(users)))
    return {user: choose_zone(known.get(user, NOBODY).time_zone, of_apps.get(app)) for user in users}

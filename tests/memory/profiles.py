"""The profiles of users in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import ATTRIBUTES_LIMIT, NOBODY, Profile, ProfileChange, changed
from waypost.domain.time import Instant


class MemoryProfiles:
    """See ports.profiles.Profiles."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AppId, UserId], tuple[Profile, Instant]] = {}

    async def of(self, app: AppId, users: Sequence[UserId]) -> Mapping[UserId, Profile]:
        """See Profiles."""
        return {user: self._kept[app, user][0] for user in users if (app, user) in self._kept}

    async def put(self, app: AppId, user_id: UserId, profile: Profile, at: Instant) -> bool:
        """See Profiles."""
        is_new = (app, user_id) not in self._kept
        self._kept[app, user_id] = profile, at
        return is_new

    async def change(self, app: AppId, user_id: UserId, change: ProfileChange, at: Instant) -> Profile | None:
        """See Profiles."""
        before, _ = self._kept.get((app, user_id), (NOBODY, at))
        after = changed(before, change)
        if len(after.attributes) > ATTRIBUTES_LIMIT:
            return None
        self._kept[app, user_id] = after, at
        return after

    async def change_many(self, app: AppId, changes: Sequence[tuple[UserId, ProfileChange]], at: Instant) -> list[int]:
        """See Profiles."""
        return [n for n, (user, change) in enumerate(changes) if await self.change(app, user, change, at) is None]

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Profiles."""
        if self._kept.get((app, user_id), (NOBODY, until))[1] <= until:
            self._kept.pop((app, user_id), None)

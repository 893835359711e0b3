"""The preferences of users in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waypost.domain.ids import AppId, UserId
from waypost.domain.preferences import PreferenceChange, changed
from waypost.domain.time import Instant
from waypost.stores.sql.preferences import Said


class MemoryPreferences:
    """What ``SqlPreferences`` says to routes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AppId, UserId], Said] = {}

    async def of(self, app: AppId, users: Sequence[UserId]) -> Mapping[UserId, Said]:
        """See SqlPreferences."""
        return {user: self._kept[app, user] for user in users if (app, user) in self._kept}

    async def change(self, app: AppId, user_id: UserId, change: PreferenceChange, at: Instant, by: str) -> Said:
        """See SqlPreferences."""
        before = self._kept.get((app, user_id), Said())
        said = self._kept[app, user_id] = Said(changed(before.preferences, change), at, by)
        return said

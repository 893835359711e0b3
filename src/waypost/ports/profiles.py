"""The profiles of users: language, time zone and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import Profile, ProfileChange
from waypost.domain.time import Instant


class Profiles(Protocol):
    """The store of profiles. Each method raises Unavailable where the store is away."""

    async def of(self, app: AppId, users: Sequence[UserId]) -> Mapping[UserId, Profile]:
        """Return the profiles of those of *users* that have one."""
        ...

    async def put(self, app: AppId, user_id: UserId, profile: Profile, at: Instant) -> bool:
        """Put *profile* in the place of the one before; whether there was none."""
        ...

    async def change(self, app: AppId, user_id: UserId, change: ProfileChange, at: Instant) -> Profile | None:
        """Change the user's profile, and return what it is then; None, and no change, where that is too large."""
        ...

    async def change_many(self, app: AppId, changes: Sequence[tuple[UserId, ProfileChange]], at: Instant) -> list[int]:
        """Change many profiles, in this order; return the places of those that would be too large, which stay."""
        ...

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Forget the user's profile as it was until then."""
        ...

"""Knowing: what users said, read once for a batch, and kept for half an hour or until they say something else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.preferences import NOTHING_SAID, Preferences
from waypost.domain.profile import NOBODY
from waypost.features.parts import Ground

KEPT_S: Final = 1_800
"""Seconds for which it is kept (requirement S3-72)."""
USERS_LIMIT: Final = 50_000
"""The most users who are kept; the longest kept goes first."""

User = tuple[AppId, UserId]


class Known(Struct, frozen=True):
    """A user as they were read."""

    said: Preferences
    time_zone: str | None
    read_s: float
    """When it was read."""


class KnownUsers:
    """The users that this process knows.

    Each batch begins by asking the store who changed since the last time: a change that is committed counts in
    whatever is routed after that, in every process, however long ago the user was read.
    """

    def __init__(self) -> None:
        self._known: dict[User, Known] = {}
        self._seen = 0
        """The number of the last change that is heeded."""

    async def of(self, ground: Ground, users: Collection[User]) -> Mapping[User, Known]:
        """Return what is known of *users*."""
        changes = await ground.store.user_changes.since(self._seen)
        self._forget(self._known.keys() if changes.users is None else changes.users)
        self._seen = max(self._seen, changes.n)
        oldest_s = ground.clock.monotonic() - KEPT_S
        get = self._known.get
        found = {user: known for user in users if (known := get(user)) is not None and known.read_s > oldest_s}
        if len(found) < len(users):
            read = await _read(ground, [user for user in users if user not in found])
            found |= read
            if self._seen == changes.n:  # else some of them may have changed after they were read
                self._keep(read)
        return found

    def _forget(self, users: Iterable[User]) -> None:
        for user in list(users):
            self._known.pop((user[0], user[1]), None)

    def _keep(self, read: Mapping[User, Known]) -> None:
        for user, known in read.items():
            self._known.pop(user, None)
            self._known[user] = known
        while len(self._known) > USERS_LIMIT:
            del self._known[next(iter(self._known))]


async def _read(ground: Ground, users: Iterable[User]) -> dict[User, Known]:
    by_app: dict[AppId, list[UserId]] = {}
    for app, user_id in users:
        by_app.setdefault(app, []).append(user_id)
    found: dict[User, Known] = {}
    now_s = ground.clock.monotonic()
    for app, asked in by_app.items():
        said = await ground.store.preferences.of(app, asked)
        profiles = await ground.store.profiles.of(app, asked)
        for user_id in asked:
            preferences = said[user_id].preferences if user_id in said else NOTHING_SAID
            found[app, user_id] = Known(preferences, profiles.get(user_id, NOBODY).time_zone, now_s)
    return found

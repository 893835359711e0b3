"""The live connections of users: what happened in a feed is told to those who look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.ports.feed import Mark, NewEntry


class Changed(Struct, frozen=True):
    """A change of a user's feed: entries were marked, on one of the user's devices.

    It says no counts: whoever is told reads them, so that none of before overwrites a later one.
    """

    app: AppId
    user_id: UserId
    mark: Mark
    ids: tuple[NotificationId, ...] = ()
    """The entries; none where they were too many to name."""


class Live(Protocol):
    """Tells processes that hold connections; what is lost on the way, they read from the feed themselves."""

    async def brought(self, entries: Sequence[NewEntry]) -> None:
        """Tell that *entries* are in their feeds, in the order of their places; one process at a time calls this."""
        ...

    async def changed(self, change: Changed) -> None:
        """Tell that entries were marked."""
        ...

"""Topics of our own: users hear them, on whatever channel they are reached by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant


class Topic(Struct, frozen=True):
    """A topic of an app."""

    name: str
    number: int
    """The store's own number: a topic that is made again has another."""
    description: str
    is_open: bool
    """Whether users may subscribe by themselves."""
    created_at: Instant


class Topics(Protocol):
    """The store of topics and of who hears them. Each method raises Unavailable where the store is away."""

    async def put(self, app: AppId, name: str, description: str, *, is_open: bool, at: Instant) -> bool:
        """Make a topic, or say anew what it is; whether there was none. Its members stay."""
        ...

    async def find(self, app: AppId, name: str) -> Topic | None:
        """Return the topic of that name."""
        ...

    async def page(self, app: AppId, after: str, n: int) -> list[Topic]:
        """List at most *n* topics by name, after *after*."""
        ...

    async def remove(self, app: AppId, name: str) -> bool:
        """Remove a topic: nobody hears it any more. False where there was none."""
        ...

    async def change(self, app: AppId, name: str, add: Sequence[UserId], take: Sequence[UserId], at: Instant) -> bool:
        """Let all of *add* hear a topic and none of *take*, who are others; False where there is no such topic."""
        ...

    async def heard_by(self, app: AppId, user_id: UserId) -> list[str]:
        """Name the topics that a user hears, in order."""
        ...

    async def count(self, topic: Topic) -> int:
        """Count who hears *topic*."""
        ...

    async def members(self, topic: Topic, after: str, n: int) -> list[UserId]:
        """List at most *n* users who hear *topic*, by id, after *after*."""
        ...

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Take the user out of all topics, as they were until then."""
        ...

    async def drop(self, page: int) -> int:
        """Delete at most *page* members of a topic that was removed; return how many it was."""
        ...

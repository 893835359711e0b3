"""Segments: filters of users by name, and who is in one now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.segment import Filter
from waypost.domain.time import Instant


class Segment(Struct, frozen=True):
    """A filter that an app gave a name."""

    name: str
    filter: Filter
    changed_at: Instant


class Counted(Struct, frozen=True):
    """The number of users that a filter chooses, and the first few of them by id."""

    count: int
    looked_at: int
    """The number of users whose ids were read to find them."""
    examples: tuple[UserId, ...]


class Segments(Protocol):
    """The store of segments. Each method raises Unavailable where the store is away."""

    async def put(self, app: AppId, name: str, filter_: Filter, at: Instant) -> bool:
        """Give a filter a name, in the place of the one before; whether there was none."""
        ...

    async def find(self, app: AppId, name: str) -> Segment | None:
        """Return the segment of that name."""
        ...

    async def page(self, app: AppId, after: str, n: int) -> list[Segment]:
        """List at most *n* segments by name, after *after*."""
        ...

    async def remove(self, app: AppId, name: str) -> bool:
        """Forget a segment; False where there was none. Jobs that began with it go on."""
        ...

    async def count(self, app: AppId, filter_: Filter, now: Instant, examples: int) -> Counted:
        """Count whom *filter_* chooses at *now*, page by page: who changes meanwhile may be counted or not."""
        ...

    async def first(self, app: AppId, filter_: Filter, now: Instant, n: int) -> Sequence[UserId]:
        """Return the first *n* users by id whom *filter_* chooses at *now*, and read no further than to them."""
        ...

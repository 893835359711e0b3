"""Dedup keys: the operations beside the accept that claims them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant


class Claimed(Struct, frozen=True):
    """A key in its window."""

    first_id: NotificationId
    body_hash: bytes


LookUp = Callable[[Sequence[bytes], Instant], Awaitable[Mapping[bytes, Claimed]]]
"""A question which of some keys are claimed at a time; Unavailable."""


class Dedup(Protocol):
    """The windows of claimed keys; claiming itself is part of ``Work.accept``."""

    async def forget(self, keys: Sequence[bytes]) -> int:
        """End the windows of *keys* now, so that the next equal request is new; return how many were open."""
        ...

    async def drop_over(self) -> int:
        """Delete keys whose windows are over; return how many pieces of storage that freed."""
        ...

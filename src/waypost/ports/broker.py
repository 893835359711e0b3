"""The topics that the outbox is published to, for others to read; and a schedule of due times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant


class Entry(Struct, frozen=True):
    """An entry of a topic."""

    app: AppId
    user_id: UserId
    """The user whose it is: a broker whose order is that of keys keeps theirs."""
    body: bytes


class Publisher(Protocol):
    """A topic with its lanes; the entries of one user are read in their order."""

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """Append *entries*; Unavailable: nobody knows whether that was done. Repeated, they are read twice."""
        ...


class Due(Struct, frozen=True):
    """A task that is due at a time."""

    id: bytes
    body: bytes
    at: Instant


class Claimed(Struct, frozen=True):
    """A due entry held by whoever claimed it, for as long as the claim holds."""

    due: Due
    token: bytes
    failures: int = 0
    """The number of times that it was put back."""


class Schedule(Protocol):
    """A schedule of due times, handed out in two phases: claimed, then confirmed once the task is done. Never early.

    A claim that is neither confirmed nor put back ends by itself, and the entry is due again: so it is done at least
    once, also by another process.
    """

    async def put(self, entries: Sequence[Due]) -> None:
        """Add *entries*; an id that is there gets the new time and body, and whoever claimed it loses it."""
        ...

    async def claim(self, now: Instant, n: int) -> list[Claimed]:
        """Take at most *n* entries due at *now*, the longest due first."""
        ...

    async def confirm(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """Remove for good what is still claimed; return the others."""
        ...

    async def put_back(self, claimed: Sequence[Claimed], at: Instant) -> list[Claimed]:
        """Make entries that were not done due again at *at*, with one failure more; return those no longer claimed."""
        ...

    async def drop(self, ids: Sequence[bytes]) -> int:
        """Forget *ids*, claimed or not; return how many there were."""
        ...

"""What carries work between processes, where another store holds the truth: a broker, and a schedule of due times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant


class Entry(Struct, frozen=True):
    """Something for whoever reads next."""

    app: AppId
    user_id: UserId
    """Whose it is: a broker whose order is that of keys keeps theirs."""
    body: bytes


class Held(Struct, frozen=True):
    """An entry in the hands of one reader, until it is acknowledged or the broker gives that reader up."""

    app: AppId
    body: bytes
    place: str
    """Where it lies; means something to the broker alone."""


class Broker(Protocol):
    """Lanes of entries, each handed to one reader at a time, at least once; the entries of one user in their order.

    It may lose what it holds: whoever publishes keeps what is not acknowledged. Nothing waits here; an exception
    (``Unavailable``) means that nobody knows whether the call was done, and everything is safe to repeat.
    """

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """Append *entries*; published twice, an entry is read twice."""
        ...

    async def read(self, lane: Lane, n: int) -> list[Held]:
        """Take at most *n* entries, apps taking turns: those first that a reader had who was given up."""
        ...

    async def ack(self, lane: Lane, held: Sequence[Held]) -> None:
        """Hand these out no more; what is not this reader's any longer stays as it is."""
        ...


class Due(Struct, frozen=True):
    """Something to be done at a time."""

    id: bytes
    body: bytes
    at: Instant


class Claimed(Struct, frozen=True):
    """A due entry in the hands of whoever claimed it, for as long as the claim holds."""

    due: Due
    token: bytes
    failures: int = 0
    """How often it was put back."""


class Schedule(Protocol):
    """Due times, handed out in two phases: claimed, then confirmed once what was due is done. Never early.

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
        """Remove for good what is still claimed; gives the others."""
        ...

    async def put_back(self, claimed: Sequence[Claimed], at: Instant) -> list[Claimed]:
        """It could not be done: due again at *at*, one failure more, if it is still claimed; gives the others."""
        ...

    async def drop(self, ids: Sequence[bytes]) -> int:
        """Forget *ids*, claimed or not; how many there were."""
        ...

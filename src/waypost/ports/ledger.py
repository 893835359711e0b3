"""The ledger: what is recorded where the log is the truth, and the log as the recorder reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.amendment import Supersede
from waypost.domain.dedup import Claim
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Notification
from waypost.domain.time import Instant
from waypost.ports.work import Settled


class Arrived(Struct, frozen=True, tag=True):
    """A notification was accepted."""

    notification: Notification
    claims: tuple[Claim, ...] = ()
    """The keys that it claims, where they are kept in no other store that lasts."""


class Decided(Struct, frozen=True, tag=True):
    """Something of a notification was settled."""

    settled: Settled
    withdrawn: str | None = None
    """Why the notification was taken back, where it was."""


LogEntry = Arrived | Decided


class Ledger(Protocol):
    """The door by which the recorder writes down what the log says."""

    async def record(self, batch: Sequence[LogEntry]) -> None:
        """Write all of *batch*, or nothing of it (Unavailable); durable when it returns.

        Entries may come again, and those of one notification in any order but that of its settlements: arrivals are
        upserts by id, settlements compare-and-set by (notification, target, attempt), as in ``Work.settle``. What was
        settled first and arrives later is one notification. Nothing that is recorded here is leased from the store.
        """
        ...

    async def of_log(self, app: AppId, ids: Sequence[NotificationId]) -> Mapping[NotificationId, Notification]:
        """Those of *ids* that the app has, that are not final, and whose truth is the log."""
        ...

    async def older(self, order: Supersede) -> Sequence[NotificationId]:
        """The notifications that a supersession is about: of a collapse key, the open ones that are recorded."""
        ...

    async def close_intents(self, n: int) -> int:
        """End at most *n* intents of the log's whose deadline is over as ``unknown``; how many it was."""
        ...

    async def complete(self, until: Instant) -> None:
        """Note that all is recorded whose id was made before *until*."""
        ...

    async def complete_until(self) -> Instant:
        """The time noted last by ``complete``: what was made before it and is not known here was never accepted."""
        ...


class RecordedLog(Protocol):
    """The log as a recorder reads it, each entry at least once, by one recorder at a time."""

    async def read(self) -> Sequence[LogEntry]:
        """What comes next; empty after a moment in which nothing came. Unavailable while the log is away."""
        ...

    async def advance(self) -> None:
        """Let what was read be behind: no recorder reads it again, unless this one dies first."""
        ...

    async def passed(self) -> Instant | None:
        """Up to which time of their ids all that was accepted is behind; None where there is nothing new to say.

        Unavailable while the log is away.
        """
        ...

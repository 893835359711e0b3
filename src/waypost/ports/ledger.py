"""The ledger: the record where the log is the truth, and the log as the recorder reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.amendment import Supersede
from waypost.domain.dedup import Claim
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Notification
from waypost.domain.time import Instant
from waypost.ports.work import Settled


class Arrived(Struct, frozen=True, tag=True):
    """The news that a notification was accepted."""

    notification: Notification
    claims: tuple[Claim, ...] = ()
    """The keys that it claims, where they are kept in no other store that lasts."""


class Decided(Struct, frozen=True, tag=True):
    """The news that something of a notification was settled."""

    settled: Settled
    withdrawn: str | None = None
    """The reason why the notification was taken back, where it was."""


LogEntry = Arrived | Decided


class Mark(Struct, frozen=True):
    """The progress of a recorder in one part of the log (a partition), by positions there."""

    part: str
    since: int
    until: int
    """The position before which everything is recorded once the step is made."""


class Batch(Struct, frozen=True):
    """The entries that a recorder read next, and its progress once they are recorded; empty where nothing came."""

    entries: Sequence[LogEntry] = ()
    marks: Sequence[Mark] = ()


class Completed(Struct, frozen=True):
    """The report that of these parts all is recorded that was accepted before *until*, by the time in its id."""

    parts: Sequence[str]
    until: Instant


class Ledger(Protocol):
    """The store into which recorders write what the log says, each for its own parts of the log."""

    async def begin(self, known: Mapping[str, int], every: Collection[str]) -> Mapping[str, int]:
        """Answer at which position each part in *known* goes on; one that was never recorded begins where *known* says.

        *every* names all parts of the log: ``complete_until`` speaks of these.
        """
        ...

    async def record(self, batch: Sequence[LogEntry], marks: Sequence[Mark] = ()) -> bool:
        """Write all of *batch* and make its steps, or nothing of it (Unavailable); durable when it returns.

        False, and nothing written, where a part is not at the position where its step begins: another recorder has it
        meanwhile, or this very step was made when its answer was lost.

        Entries may come again, and those of one notification in any order but that of its settlements: arrivals are
        upserts by id, settlements compare-and-set by (notification, target, attempt), as in ``Work.settle``. What was
        settled first and arrives later is one notification. Nothing that is recorded here is leased from the store.
        """
        ...

    async def forget(self, keys: Sequence[bytes]) -> int:
        """End the windows of *keys* now, also of what is in the log and not recorded yet; how many were recorded."""
        ...

    async def of_log(self, app: AppId, ids: Sequence[NotificationId]) -> Mapping[NotificationId, Notification]:
        """Return those of *ids* that the app has, that are not final, and whose truth is the log."""
        ...

    async def older(self, order: Supersede) -> Sequence[NotificationId]:
        """List the notifications that a supersession is about: of a collapse key, the open ones that are recorded."""
        ...

    async def close_intents(self, n: int) -> int:
        """End at most *n* intents of the log's as ``unknown``; how many it was.

        Those whose deadline is over, and of which all is recorded that was said until then, in every part.
        """
        ...

    async def complete(self, completed: Completed) -> None:
        """Note how far some parts are recorded; never takes anything back."""
        ...

    async def complete_until(self) -> Instant:
        """Answer up to when every part is complete: what was made before and is not known here was never accepted."""
        ...


class RecordedLog(Protocol):
    """The log as a recorder reads it: only its own parts, each entry at least once."""

    async def read(self) -> Batch:
        """Read what comes next; empty after a moment in which nothing came.

        What was not advanced past is read again. Unavailable while the log or the ledger is away.
        """
        ...

    async def advance(self) -> None:
        """Move the position past what was read."""
        ...

    async def begin_again(self) -> None:
        """Forget what was read, and go on in each part where the ledger says."""
        ...

    async def passed(self) -> Completed | None:
        """Tell up to when all that was accepted is behind; None where there is nothing new to say.

        Unavailable while the log is away.
        """
        ...

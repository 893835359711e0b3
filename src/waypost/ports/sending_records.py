"""The records that senders keep of notifications beside the store: who is at one, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.domain.sending_record import RecordStatus, SendingRecord
from waypost.domain.time import Instant


class Right(StrEnum):
    """The right of a worker that wants to send, as the record has it (requirements S4-T4)."""

    FIRST = "first"
    """Its lock is taken; nobody tried before."""
    RETRY = "retry"
    """Its lock is taken; it failed before."""
    HELD = "held"
    """Another worker is at it, or died there, until the lock ends."""
    DELIVERED = "delivered"
    """It was delivered: it is not sent again."""


class Round(Struct, frozen=True):
    """A round of a notification: its end, by which it is told from a replay, and the retries that it has had."""

    expires_at: Instant
    retries: int = 0


class Acquired(Struct, frozen=True):
    """The answer to a worker: whether it may send, and else for how long not."""

    right: Right
    wait_ms: int = 0


class SendingRecords(Protocol):
    """The records; each call is one round trip, and each record is decided about atomically."""

    async def acquire(self, rounds: Mapping[NotificationId, Round]) -> Sequence[Acquired]:
        """Take the lock of each notification, in order; what was delivered in another round is a retry."""
        ...

    async def note(self, came: Mapping[NotificationId, tuple[RecordStatus, Round]]) -> None:
        """Write what became of each: ``delivered`` or ``failed``; what was delivered in its round stays so."""
        ...

    async def read(self, ids: Sequence[NotificationId]) -> dict[NotificationId, SendingRecord]:
        """Return the records of those of *ids* that have one."""
        ...

"""What waits to be carried by a broker, for operators to look at."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant


class EntryState(StrEnum):
    """How far an entry has come; those that are done are kept for a while."""

    PENDING = "pending"
    CLAIMED = "claimed"
    PUBLISHED = "published"
    DONE = "done"


class OutboxEntry(Struct, frozen=True):
    """A notification, or one target of it (*n*), on its way by the broker."""

    seq: int
    """Grows in the order in which entries are published."""
    notification_id: NotificationId
    n: int | None
    lane: Lane
    state: EntryState
    added_at: Instant
    claimed_at: Instant | None
    published_at: Instant | None
    done_at: Instant | None
    leased: int
    """How often a worker leased it."""


class OutboxQuery(Struct, frozen=True):
    """Which entries to list: newest first, at most *limit*, older than *before*."""

    app: AppId
    states: tuple[EntryState, ...] = ()
    before: int | None = None
    limit: int = 50


class OutboxView(Protocol):
    """The outbox of the relayed stack; empty in every other."""

    async def entries(self, query: OutboxQuery) -> list[OutboxEntry]:
        """A page of entries."""
        ...

    async def counts(self, app: AppId) -> dict[EntryState, int]:
        """How many entries are in each state."""
        ...

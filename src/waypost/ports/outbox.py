"""The outbox, for operators to look at: entries that are published to topics that others read."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant


class EntryState(StrEnum):
    """The states of an entry; those that are published are kept for a while."""

    PENDING = "pending"
    CLAIMED = "claimed"
    PUBLISHED = "published"


class OutboxEntry(Struct, frozen=True):
    """A notification, or one target of it (*n*), that is to be published to a topic."""

    seq: int
    """The number, growing in the order in which entries are published."""
    notification_id: NotificationId
    n: int | None
    lane: Lane
    state: EntryState
    added_at: Instant
    claimed_at: Instant | None
    published_at: Instant | None
    due_at: Instant | None = None
    """The time until which it waits, where others are told of that; None where it may be sent now."""
    topics: tuple[str, ...] = ()
    """The topics that it goes to, where they are by channel; else its lane says it."""


class OutboxQuery(Struct, frozen=True):
    """A filter for entries: newest first, at most *limit*, older than *before*."""

    app: AppId
    states: tuple[EntryState, ...] = ()
    before: int | None = None
    limit: int = 50


class OutboxView(Protocol):
    """The outbox on PostgreSQL, where it is published; empty elsewhere."""

    async def entries(self, query: OutboxQuery) -> list[OutboxEntry]:
        """Return a page of entries."""
        ...

    async def counts(self, app: AppId) -> dict[EntryState, int]:
        """Count the entries in each state."""
        ...

"""The reads of notifications, their receipts and dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant


class NotificationRecord(Struct, frozen=True):
    """A notification and its state; *status* is as read now (``scheduled``, ``processing`` are derived)."""

    notification: Notification
    status: NotificationStatus
    finished_at: Instant | None = None
    reason: str | None = None
    duplicate_of: NotificationId | None = None
    round: int = 1
    """The round, which grows with each replay."""
    recorded: bool = True
    """Whether it is recorded: False while only the log has it; the ledger follows in a moment."""
    content_known: bool = True
    """False where it is not recorded and was accepted elsewhere: of *notification* only ``id``, ``app`` and
    ``created_at`` mean something, and it may never have been accepted."""
    archived: bool = False
    """Whether it was read from the archive: the store has it no more."""


class Marked(Struct, frozen=True):
    """The marks that a notification's reader made (ports.marks)."""

    read_at: Instant | None = None
    hidden_at: Instant | None = None


class NotificationDetail(Struct, frozen=True):
    """A notification with everything that happened to it."""

    record: NotificationRecord
    receipts: tuple[Receipt, ...] = ()
    duplicates: tuple[NotificationId, ...] = ()
    """The records of content duplicates of it, at most 100."""
    marked: Marked = Marked()


class Addressed(Struct, frozen=True):
    """The user whom a notification is for, and the numbers of its targets."""

    user_id: UserId
    targets: Mapping[DeviceId, int]


class HistoryQuery(Struct, frozen=True):
    """A filter for notifications: newest first, at most *limit*, older than *before*."""

    app: AppId
    user_id: UserId | None = None
    statuses: tuple[NotificationStatus, ...] = ()
    before: NotificationId | None = None
    limit: int = 50


class PageQuery(Struct, frozen=True):
    """A filter for the visible notifications of a user: newest first, *limit* after the first *offset*."""

    app: AppId
    user_id: UserId
    statuses: tuple[NotificationStatus, ...]
    waiting: bool | None = None
    """Whether to list, of those being processed, only where every target was tried and waits (True), or the others."""
    types: tuple[str | None, ...] = ()
    """The types; of any where there are none."""
    offset: int = 0
    limit: int = 20


class Page(Struct, frozen=True):
    """A page of a user's notifications, without their duplicates' records, and the total number of them."""

    details: tuple[NotificationDetail, ...]
    total: int


class DeadLetter(Struct, frozen=True):
    """A failed delivery that was kept, with the notification that it takes to replay it."""

    record: NotificationRecord
    receipt: Receipt


class DeadQuery(Struct, frozen=True):
    """A filter for dead letters: newest first, older than *before* (notification id, target number)."""

    app: AppId
    code: str | None = None
    user_id: UserId | None = None
    since: Instant | None = None
    before: tuple[NotificationId, int] | None = None
    limit: int = 50


class Views(Protocol):
    """The reads by key or by cursor (the last key seen); none holds a cursor open."""

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """Return one notification of an app with its receipts; None where the app has no such notification."""
        ...

    async def history(self, query: HistoryQuery) -> list[NotificationRecord]:
        """Return a page of notifications, newest first."""
        ...

    async def page(self, query: PageQuery) -> Page:
        """Return a page of a user's notifications, without those that were hidden."""
        ...

    async def dead(self, query: DeadQuery) -> list[DeadLetter]:
        """Return a page of dead letters, newest first."""
        ...

    async def balance(self, app: AppId | None = None) -> Mapping[NotificationStatus, int]:
        """Count the notifications in each stored status, by counting rows: for tests, reports and operators."""
        ...

    async def statuses(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, NotificationStatus]:
        """Return the status of each known id."""
        ...

    async def addressed(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Addressed]:
        """Return whom each known id is for; one that is not routed yet has no targets."""
        ...

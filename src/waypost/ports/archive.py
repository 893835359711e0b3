"""The archive: finished notifications that left the store, in files, and the manifest that finds them again."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.time import Instant
from waypost.ports.views import HistoryQuery, NotificationDetail, NotificationRecord

LAYOUT: Final = 1
"""The number of the layout of files that are written now."""


class Fault(StrEnum):
    """The fault of a file."""

    AWAY = "away"  # it is not there, or cannot be read
    CHANGED = "changed"  # it is not what was written
    UNKNOWN = "unknown"  # the manifest does not have it


class ArchiveFile(Struct, frozen=True):
    """A file of the archive, as the manifest has it; the files of an app do not overlap."""

    app: AppId
    first_id: NotificationId
    last_id: NotificationId
    path: str
    """The path in the folder or bucket, by app and day."""
    n: int
    """Notifications in it."""
    size: int
    """Bytes."""
    sha256: bytes
    layout: int
    written_at: Instant


class ArchivedPage(Struct, frozen=True):
    """A page of notifications of the archive, newest first."""

    records: tuple[NotificationRecord, ...]
    before: NotificationId | None
    """The id before which the next page begins; None at the end. A page may hold less than asked for, even nothing."""


class Archive(Protocol):
    """The reads of the archive; Unavailable where its files cannot be reached."""

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """Return one notification of an app with its receipts, from the one file that can have it."""
        ...

    async def history(self, query: HistoryQuery) -> ArchivedPage:
        """Return a page of notifications; it opens a bounded number of files."""
        ...


class NoArchive:
    """The archive of an installation that has none."""

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """See Archive."""
        return None

    async def history(self, query: HistoryQuery) -> ArchivedPage:
        """See Archive."""
        return ArchivedPage((), None)

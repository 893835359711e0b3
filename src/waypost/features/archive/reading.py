"""The reads of the archive, each by the manifest: a look-up opens one file, a page a bounded number of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import IO, Final, TypeVar

import msgspec
from pyarrow import ArrowException

from waypost.domain.ids import AppId, NotificationId
from waypost.ports.archive import ArchivedPage, ArchiveFile, Fault
from waypost.ports.views import HistoryQuery, NotificationDetail, NotificationRecord
from waypost.stores.archive.bucket import ArchiveAway, Bucket, Unsound
from waypost.stores.archive.parquet import found, listed
from waypost.stores.sql.archive import SqlArchive

LOOKED_AT: Final = 200
"""The most files that are looked at in the manifest for a page."""
OPENED: Final = 10
"""The most files that are opened for a page."""
AT_ONCE: Final = 4
"""The most files that are read at the same time in a process."""
_Read = TypeVar("_Read")
_LAST_ID: Final = NotificationId(b"\xff" * 16)


class ReadArchive:
    """The reads: see Archive."""

    def __init__(self, manifest: SqlArchive, bucket: Bucket) -> None:
        self._manifest = manifest
        self._bucket = bucket
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """See Archive."""
        file = await self._manifest.at_or_below(app, notification_id)
        if file is None or file.last_id < notification_id:
            return None
        try:
            async with self._turns:
                return await asyncio.to_thread(self._found, file.path, notification_id)
        except ArchiveAway:
            if not await self._was_replaced(file):
                raise
        return await self.detail(app, notification_id)

    async def history(self, query: HistoryQuery) -> ArchivedPage:
        """See Archive."""
        files, end = await self._manifest.newest(query.app, query.user_id, query.before, LOOKED_AT)
        records: list[NotificationRecord] = []
        for n, file in enumerate(files):
            if n == OPENED:
                return ArchivedPage(tuple(records), files[n - 1].first_id)
            try:
                records += await self._listed(file, query, query.limit - len(records))
            except ArchiveAway:
                if not await self._was_replaced(file):
                    raise
                return await self.history(query)
            if len(records) == query.limit:
                return ArchivedPage(tuple(records), records[-1].notification.id)
        return ArchivedPage(tuple(records), end)

    async def _listed(self, file: ArchiveFile, query: HistoryQuery, n: int) -> list[NotificationRecord]:
        """List what is in a file and no more in the store, which lists what it has itself."""
        before, left = query.before or _LAST_ID, []
        while True:
            async with self._turns:
                found = await asyncio.to_thread(self._read_list, file.path, query, before, n)
            standing = await self._manifest.still_in_store([each.notification.id for each in found])
            left += [each for each in found if each.notification.id not in standing]
            if len(left) >= n or len(found) < n:
                return left[:n]
            before = found[-1].notification.id

    async def _was_replaced(self, file: ArchiveFile) -> bool:
        """Tell whether a late row or an erasure had it written anew, and deleted, since the manifest was read."""
        return await self._manifest.of_path(file.path) is None

    def _found(self, path: str, notification_id: NotificationId) -> NotificationDetail | None:
        return self._read(path, lambda file: found(file, notification_id))

    def _read_list(self, path: str, query: HistoryQuery, before: NotificationId, n: int) -> list[NotificationRecord]:
        return self._read(path, lambda file: listed(file, query.user_id, query.statuses, before, n))

    def _read(self, path: str, reads: Callable[[IO[bytes]], _Read]) -> _Read:
        """Read in a file; Unsound where it is none of ours any more."""
        try:
            with self._bucket.open(path) as file:
                return reads(file)
        except (ArrowException, OSError, ValueError, msgspec.MsgspecError) as error:
            raise Unsound(path, Fault.CHANGED, f"cannot be read: {type(error).__name__}") from error

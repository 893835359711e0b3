"""Files of the archive, written so that a crash leaves nothing that is half there.

A file goes through these steps, each of which may be the last before a crash:

1. its path is noted (``Todo.WRITING``);
2. it is written, and beside it what the manifest will say of it, as JSON;
3. it is read back and compared;
4. in one transaction it comes into the manifest, in the place of one that it replaces, if what it was made from still
   reads as it did; what is still to be done is noted (``DROPPING``, ``REPLACED``);
5. the rows leave the store, a page a transaction; the file that was replaced is deleted;
6. the notes go.

Before step 4 the store has the rows, from then on the archive has them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from waypost.domain.ids import AppId, NotificationId, created_at, format_id
from waypost.domain.time import HOUR_MS, Instant, isoformat, later
from waypost.features.archive.said import said_of
from waypost.ports.archive import LAYOUT, ArchiveFile
from waypost.ports.clock import Clock
from waypost.ports.views import NotificationDetail
from waypost.stores.archive.bucket import ArchiveAway, Bucket
from waypost.stores.archive.parquet import ids_in, read, written
from waypost.stores.sql.archive import NewFile, Placing, SqlArchive, Standing, Todo, hashes_of

PAGE: Final = 500
"""Rows that leave the store in one transaction."""
ABANDONED_MS: Final = HOUR_MS
"""Milliseconds after which nobody can still be writing a file."""
BESIDE: Final = ".json"
"""The end of the path of what is said of a file beside it."""
NOTHING: Final[Standing] = {}


class Files:
    """The files of one archive, and how they change."""

    def __init__(self, manifest: SqlArchive, bucket: Bucket, clock: Clock, *, with_content: bool = True) -> None:
        """Create it; not *with_content*, texts and data are left out."""
        self.manifest = manifest
        self.bucket = bucket
        self._clock = clock
        self._with_content = with_content

    async def write(
        self,
        app: AppId,
        details: Sequence[Sequence[NotificationDetail]],
        replaced: ArchiveFile | None = None,
        standing: Standing = NOTHING,
    ) -> bool:
        """Write a file of each of *details*; False, and nothing came of it, where what it was made from has changed.

        *replaced* is the file in whose place they come, *standing* how those of the rows read that are in the store:
        they are to leave it.
        """
        paths = [_path_of(each) for each in details]
        await self.manifest.begin(app, paths)
        new = [await asyncio.to_thread(self._written, path, each) for path, each in zip(paths, details, strict=True)]
        placed = await self.manifest.place(Placing(tuple(new), replaced, standing, drops=bool(standing)))
        if placed and replaced is not None:
            await self.remove(replaced.path)
        if not placed:
            for path in paths:
                await self.remove(path)
        return placed

    def now(self) -> Instant:
        """Return the time."""
        return self._clock.now()

    async def details(self, file: ArchiveFile) -> list[NotificationDetail]:
        """Read all of a file that the manifest has; ArchiveAway where it is not as it was written."""
        return await asyncio.to_thread(self._details, file)

    async def remove(self, path: str) -> None:
        """Delete a file that no manifest has, and the note of it."""
        await asyncio.to_thread(self.bucket.delete, path + BESIDE)
        await asyncio.to_thread(self.bucket.delete, path)
        await self.manifest.done(path)

    async def tidy(self) -> None:
        """Delete what was replaced, and what was written in vain."""
        await self.manifest.give_up(later(self._clock.now(), -ABANDONED_MS))
        while paths := await self.manifest.to_do(Todo.REPLACED, PAGE):
            for path in paths:
                await self.remove(path)

    async def drop(self, path: str, before: Instant) -> int:
        """Let the rows of a file leave the store, where they were finished before *before*; how many it was."""
        ids = await asyncio.to_thread(self._ids, path)
        dropped = 0
        for at in range(0, len(ids), PAGE):
            dropped += await self.manifest.drop(ids[at : at + PAGE], before)
        await self.manifest.done(path)
        return dropped

    def _ids(self, path: str) -> list[NotificationId]:
        with self.bucket.open(path) as file:
            return ids_in(file)

    def _details(self, file: ArchiveFile) -> list[NotificationDetail]:
        data = self.bucket.get(file.path)
        if sha256(data).digest() != file.sha256:
            raise ArchiveAway(f"the archive's {file.path} is not what was written")
        return read(data)

    def _written(self, path: str, details: Sequence[NotificationDetail]) -> NewFile:
        """Write a file and read it back."""
        data = written(details, with_content=self._with_content)
        self.bucket.put(path, data)
        first, last = details[0].record.notification, details[-1].record.notification
        checksum, now = sha256(data).digest(), self._clock.now()
        file = ArchiveFile(first.app, first.id, last.id, path, len(details), len(data), checksum, LAYOUT, now)
        self.bucket.put(path + BESIDE, said_of(file))
        again = self._details(file)
        if [each.record.notification.id for each in again] != [each.record.notification.id for each in details]:
            raise ArchiveAway(f"the archive's {path} does not read as it was written")
        return NewFile(file, hashes_of([each.record.notification.user_id for each in details]))


def _path_of(details: Sequence[NotificationDetail]) -> str:
    """Name a file by app, day and first id; the end tells it from one that it replaces."""
    first = details[0].record.notification
    day = isoformat(created_at(first.id))[:10]
    return f"{quote(first.app, safe='')}/{day}/{format_id(first.id)}.{secrets.token_hex(4)}.parquet"

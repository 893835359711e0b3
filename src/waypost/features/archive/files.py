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
from collections.abc import Callable, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Final
from urllib.parse import quote

from waypost.domain.ids import AppId, created_at, format_id
from waypost.domain.time import HOUR_MS, Instant, isoformat, later
from waypost.features.archive.said import said_of
from waypost.ports.archive import LAYOUT, ArchiveFile, Fault
from waypost.ports.clock import Clock
from waypost.ports.views import NotificationDetail
from waypost.stores.archive.bucket import ArchiveAway, Bucket, Unsound
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

    def __init__(
        self,
        manifest: SqlArchive,
        bucket: Bucket,
        clock: Clock,
        *,
        with_content: bool = True,
        tells: Callable[[Unsound], None] = lambda _: None,
    ) -> None:
        """Create it; not *with_content*, texts and data are left out. *tells* of each file that is not whole, once."""
        self.manifest = manifest
        self.bucket = bucket
        self.unsound: set[str] = set()
        """The paths of the manifest that were met and are not whole."""
        self._clock = clock
        self._with_content = with_content
        self._tells = tells

    async def write(
        self,
        app: AppId,
        details: Sequence[Sequence[NotificationDetail]],
        replaced: ArchiveFile | None = None,
        standing: Standing = NOTHING,
        gone: str | None = None,
    ) -> bool:
        """Write a file of each of *details*; False, and nothing came of it, where what it was made from has changed.

        *replaced* is the file in whose place they come, *standing* how those of the rows read that are in the store:
        they are to leave it. *gone* is a file that the manifest lacks, and that they come in place of: what the store
        has of it leaves, too.
        """
        paths = [_path_of(each) for each in details]
        await self.manifest.begin(app, paths)
        new = [await asyncio.to_thread(self._written, path, each) for path, each in zip(paths, details, strict=True)]
        lost, drops = () if gone is None else (gone,), bool(standing) or gone is not None
        placed = await self.manifest.place(Placing(tuple(new), replaced, standing, drops, lost))
        old = [*lost, *([] if replaced is None else [replaced.path])]
        for path in old if placed else paths:
            await self.remove(path)
        return placed

    def now(self) -> Instant:
        """Return the time."""
        return self._clock.now()

    async def details(self, file: ArchiveFile) -> list[NotificationDetail] | None:
        """Read all of a file of the manifest; None, and it is noted, where it is lost or not as it was written."""
        data = await self._whole(file)
        return None if data is None else await asyncio.to_thread(read, data)

    async def is_whole(self, file: ArchiveFile) -> bool:
        """Read a file that the manifest has, and note whether it is as it was written."""
        if await self._whole(file) is None:
            return False
        await self.manifest.faults.unmark(file.path)
        return True

    async def give_up(self, file: ArchiveFile) -> None:
        """Take a file out of the manifest, and delete what is left of it; what the store has of it is archived anew."""
        await self.write(file.app, [], file)

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
        """Let the rows of a file leave the store, where they were finished before *before*; how many it was.

        None leaves it whose file cannot be shown to be whole.
        """
        file = await self.manifest.of_path(path)
        data = None if file is None else await self._whole(file)
        if data is None:
            return 0
        ids = await asyncio.to_thread(ids_in, BytesIO(data))
        dropped = 0
        for at in range(0, len(ids), PAGE):
            dropped += await self.manifest.drop(ids[at : at + PAGE], before)
        await self.manifest.done(path)
        return dropped

    async def _whole(self, file: ArchiveFile) -> bytes | None:
        """Read a file; None, and it is noted, where it is lost or not as it was written."""
        if file.path in self.unsound:
            return None
        try:
            return await asyncio.to_thread(self._as_written, file)
        except Unsound as unsound:
            self.unsound.add(file.path)
            if await self.manifest.faults.mark(file, unsound.fault):
                self._tells(unsound)
            return None

    def _as_written(self, file: ArchiveFile) -> bytes:
        """Read a file; Unsound where it is lost or not as it was written."""
        data = self.bucket.get(file.path)
        if sha256(data).digest() != file.sha256:
            raise Unsound(file.path, Fault.CHANGED, "is not what was written")
        return data

    def _written(self, path: str, details: Sequence[NotificationDetail]) -> NewFile:
        """Write a file and read it back."""
        data = written(details, with_content=self._with_content)
        self.bucket.put(path, data)
        first, last = details[0].record.notification, details[-1].record.notification
        checksum, now = sha256(data).digest(), self._clock.now()
        file = ArchiveFile(first.app, first.id, last.id, path, len(details), len(data), checksum, LAYOUT, now)
        self.bucket.put(path + BESIDE, said_of(file))
        again = read(self._as_written(file))
        if [each.record.notification.id for each in again] != [each.record.notification.id for each in details]:
            raise ArchiveAway(f"the archive's {path} does not read as it was written")
        return NewFile(file, hashes_of([each.record.notification.user_id for each in details]))


def _path_of(details: Sequence[NotificationDetail]) -> str:
    """Name a file by app, day and first id; the end tells it from one that it replaces."""
    first = details[0].record.notification
    day = isoformat(created_at(first.id))[:10]
    return f"{quote(first.app, safe='')}/{day}/{format_id(first.id)}.{secrets.token_hex(4)}.parquet"

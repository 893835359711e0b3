"""How notifications leave the store for the archive: whole days, oldest first, each app's in files of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, created_at, first_id_at
from waypost.domain.time import DAY_MS, Instant
from waypost.features.archive.files import PAGE, Files
from waypost.ports.archive import ArchiveFile
from waypost.ports.views import NotificationDetail
from waypost.stores.sql.archive import Todo

ROWS: Final = 10_000
"""The most notifications in a file, unless some came late into it."""


class Moved(Struct, frozen=True):
    """The result of one round."""

    notifications: int
    """Notifications that left the store."""
    unsound: int
    """Files that were met and are not whole: what belongs into them stays in the store."""


async def move(files: Files, before: Instant, *, rows: int = ROWS) -> Moved:
    """Move into the archive what was made and finished before the day of *before*.

    What was interrupted is ended first. What belongs into a file that is lost or damaged waits; nothing else does.
    """
    day = Instant(before - before % DAY_MS)
    await files.tidy()
    await _look_again(files)
    dropped = await _drop(files, day)
    walk = _Walk(files, day)
    while (oldest := await walk.next()) is not None:
        part, app = await _part_of(files, *oldest, day, rows), oldest[1]
        if isinstance(part, _Waits):
            walk.pass_over(app, part.last)
            continue
        if not await _write(files, app, part, rows):
            break  # something of it changed meanwhile: the next round reads it anew
        dropped += await _drop(files, day)
    return Moved(dropped, len(files.unsound))


async def _look_again(files: Files) -> None:
    """Look at the files that were not whole: somebody may have mended one."""
    for each in await files.manifest.faults.all():
        file = await files.manifest.of_path(each.path)
        if file is None:
            await files.manifest.faults.unmark(each.path)
        else:
            await files.is_whole(file)


async def _drop(files: Files, before: Instant) -> int:
    dropped, after = 0, ""
    while paths := await files.manifest.to_do(Todo.DROPPING, PAGE, after):
        for path in paths:
            dropped += await files.drop(path, before)
        after = paths[-1]
    return dropped


class _Walk:
    """The walk through what is old enough, oldest first, past what waits for a file to be mended."""

    def __init__(self, files: Files, before: Instant) -> None:
        self._files = files
        self._before = before
        self._at = NotificationId(b"")
        self._passed: dict[AppId, NotificationId] = {}

    async def next(self) -> tuple[NotificationId, AppId] | None:
        n = PAGE if self._passed else 1
        while page := await self._files.manifest.oldest(self._before, self._at, n):
            for self._at, app in page:
                if app not in self._passed or self._at > self._passed[app]:
                    return self._at, app
        return None

    def pass_over(self, app: AppId, last: NotificationId) -> None:
        """Leave out what an app has up to an id."""
        self._passed[app] = last


class _Part(Struct, frozen=True):
    """The notifications that go into files together."""

    found: list[NotificationDetail]
    """What leaves the store."""
    replaced: ArchiveFile | None
    kept: list[NotificationDetail]
    """What *replaced* has."""


class _Waits(Struct, frozen=True):
    """The answer that what an app has up to an id waits: it lies in a file that is not whole."""

    last: NotificationId


async def _part_of(files: Files, oldest: NotificationId, app: AppId, before: Instant, rows: int) -> _Part | _Waits:
    """Find what *oldest* goes with: into a new file, or into one in the place of one that it lies in or beside."""
    until = _end_of_day(oldest)
    below, above = await files.manifest.at_or_below(app, oldest), await files.manifest.above(app, oldest)
    if above is not None:
        until = min(until, above.first_id)
    found = await files.manifest.old(app, oldest, until, before, rows)
    replaced = next((each for each in (below, above) if each and _takes(each, oldest, len(found), rows)), None)
    if replaced is None:
        return _Part(found, None, [])
    kept = await files.details(replaced)
    if kept is not None:
        return _Part(found, replaced, kept)
    return _Waits(replaced.last_id) if _has(replaced, oldest) else _Part(found, None, [])


async def _write(files: Files, app: AppId, part: _Part, rows: int) -> bool:
    """Write a part; False where nothing came of it, since something of it has changed."""
    if not part.found:
        return False
    standing = {
        made.id: (str(made.user_id), record.round, record.finished_at)
        for record in (each.record for each in part.found)
        for made in (record.notification,)
    }
    return await files.write(app, _in_files([*part.kept, *part.found], rows), part.replaced, standing)


def _takes(file: ArchiveFile, oldest: NotificationId, n: int, rows: int) -> bool:
    """Tell whether what begins with *oldest* goes into *file*: it lies in it, or is of its day and fits."""
    fits = file.n + n <= rows and _end_of_day(oldest) == _end_of_day(file.first_id)
    return _has(file, oldest) or fits


def _has(file: ArchiveFile, one: NotificationId) -> bool:
    """Tell whether an id lies in *file*."""
    return file.first_id <= one <= file.last_id


def _in_files(details: Sequence[NotificationDetail], rows: int) -> list[list[NotificationDetail]]:
    """Divide notifications among files of at most *rows*; of one id the last counts."""
    by_id = {each.record.notification.id: each for each in details}
    ordered = [by_id[one] for one in sorted(by_id)]
    return [ordered[at : at + rows] for at in range(0, len(ordered), rows)]


def _end_of_day(notification_id: NotificationId) -> NotificationId:
    made = created_at(notification_id)
    return first_id_at(Instant(made - made % DAY_MS + DAY_MS))

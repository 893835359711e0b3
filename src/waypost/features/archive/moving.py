"""How notifications leave the store for the archive: whole days, oldest first, each app's in files of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.ids import AppId, NotificationId, created_at, first_id_at
from waypost.domain.time import DAY_MS, Instant
from waypost.features.archive.files import PAGE, Files
from waypost.ports.archive import ArchiveFile
from waypost.ports.views import NotificationDetail
from waypost.stores.sql.archive import Todo

ROWS: Final = 10_000
"""The most notifications in a file, unless some came late into it."""


async def move(files: Files, before: Instant, *, rows: int = ROWS) -> int:
    """Move into the archive what was made and finished before the day of *before*; how many left the store.

    What was interrupted is ended first.
    """
    day = Instant(before - before % DAY_MS)
    await files.tidy()
    dropped = await _drop(files, day)
    while (oldest := await files.manifest.oldest(day)) is not None:
        if not await _write(files, *oldest, day, rows):
            break  # something of it changed meanwhile: the next round reads it anew
        dropped += await _drop(files, day)
    return dropped


async def _drop(files: Files, before: Instant) -> int:
    dropped = 0
    while paths := await files.manifest.to_do(Todo.DROPPING, PAGE):
        for path in paths:
            dropped += await files.drop(path, before)
    return dropped


async def _write(files: Files, oldest: NotificationId, app: AppId, before: Instant, rows: int) -> bool:
    """Write the file that *oldest* belongs into: a new one, or one in the place of one that it lies in or beside."""
    until = _end_of_day(oldest)
    below, above = await files.manifest.at_or_below(app, oldest), await files.manifest.above(app, oldest)
    if above is not None:
        until = min(until, above.first_id)
    found = await files.manifest.old(app, oldest, until, before, rows)
    if not found:
        return False
    standing = {
        made.id: (str(made.user_id), record.round, record.finished_at)
        for record in (each.record for each in found)
        for made in (record.notification,)
    }
    replaced = next((each for each in (below, above) if each and _takes(each, oldest, len(found), rows)), None)
    kept = [] if replaced is None else await files.details(replaced)
    return await files.write(app, _in_files([*kept, *found], rows), replaced, standing)


def _takes(file: ArchiveFile, oldest: NotificationId, n: int, rows: int) -> bool:
    """Tell whether what begins with *oldest* goes into *file*: it lies in it, or is of its day and fits."""
    fits = file.n + n <= rows and _end_of_day(oldest) == _end_of_day(file.first_id)
    return file.first_id <= oldest <= file.last_id or fits


def _in_files(details: Sequence[NotificationDetail], rows: int) -> list[list[NotificationDetail]]:
    """Divide notifications among files of at most *rows*; of one id the last counts."""
    by_id = {each.record.notification.id: each for each in details}
    ordered = [by_id[one] for one in sorted(by_id)]
    return [ordered[at : at + rows] for at in range(0, len(ordered), rows)]


def _end_of_day(notification_id: NotificationId) -> NotificationId:
    made = created_at(notification_id)
    return first_id_at(Instant(made - made % DAY_MS + DAY_MS))

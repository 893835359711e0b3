"""How a user is taken out of the archive: the files that have rows of theirs are written anew."""

from __future__ import annotations

from msgspec.structs import replace

from waypost.domain.content import Content
from waypost.domain.delivery import Receipt
from waypost.domain.ids import first_id_at
from waypost.domain.time import Instant, later
from waypost.features.archive.files import ABANDONED_MS, Files
from waypost.ports.archive import ArchiveFile
from waypost.ports.erasure import ERASED_DEVICE, Erasure
from waypost.ports.views import NotificationDetail


async def erase(files: Files, erasure: Erasure, *, deletes: bool, since: Instant | None = None) -> None:
    """Take the user out of every file, and delete what held them; may be repeated, wherever it was interrupted.

    What is left of a row is what is left of one in the store (``Erasures.blank``), or nothing where it *deletes*.
    With *since*, when the last pass over all files began, only those are looked at that came into the manifest later.
    StillInArchive where a file that can have the user is not whole: the others do not wait for it. One that was met
    is looked at again by the archive's own duty, and not by each pass.
    """
    await files.tidy()
    manifest = files.manifest
    files.unsound |= {each.path for each in await manifest.faults.all()}
    found = (
        await manifest.of_user(erasure.app, erasure.user_id, erasure.asked_at)
        if since is None
        else await manifest.written_since(erasure.app, erasure.user_id, later(since, -ABANDONED_MS))
    )
    left = [file.path for file in found if not await _clear(files, file, erasure, deletes=deletes)]
    if left:
        raise StillInArchive


async def _clear(files: Files, file: ArchiveFile, erasure: Erasure, *, deletes: bool) -> bool:
    """Write one file anew, unless its user only looks like this one; False where it cannot be read."""
    details = await files.details(file)
    if details is None:
        return False
    end = first_id_at(later(erasure.asked_at, 1))
    left: list[NotificationDetail] = []
    meant = 0
    for each in details:
        made = each.record.notification
        if made.user_id != erasure.user_id or made.id >= end:
            left.append(each)
            continue
        meant += 1
        if not deletes:
            left.append(blanked(each, erasure))
    if meant and not await files.write(erasure.app, [left] if left else [], file):
        raise ChangedMeanwhile
    return True


class ChangedMeanwhile(Exception):
    """The error that a file was replaced while it was being written anew: the next round of the erasure does it."""


class StillInArchive(Exception):
    """The error that a file that can have the user is lost or damaged: the erasure ends once that is mended."""


def blanked(detail: NotificationDetail, erasure: Erasure) -> NotificationDetail:
    """Take the user out of a notification, as ``Erasures.blank`` does."""
    made = detail.record.notification
    anonymous = replace(
        made,
        user_id=erasure.tombstone,
        caller=erasure.caller_after(made.caller),
        content=Content(),
        device_ids=(),
    )
    receipts = tuple(map(_blanked_receipt, detail.receipts))
    return replace(detail, record=replace(detail.record, notification=anonymous), receipts=receipts)


def _blanked_receipt(receipt: Receipt) -> Receipt:
    return replace(receipt, device_id=ERASED_DEVICE, provider_id=None, reason=None, attempts=(), dead=False)

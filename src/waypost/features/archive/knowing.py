"""The manifest and the files, held against each other: every file read again, and files that the manifest lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, parse_id
from waypost.domain.time import Instant, from_datetime
from waypost.features.archive.erasing import blanked
from waypost.features.archive.files import BESIDE, Files
from waypost.features.archive.said import Said, said_of
from waypost.ports.archive import ArchiveFile, Fault
from waypost.ports.views import NotificationDetail
from waypost.stores.archive.bucket import ArchiveAway
from waypost.stores.archive.parquet import read
from waypost.stores.sql.archive import NewFile, Placing, hashes_of
from waypost.stores.sql.erased import ErasedUsers
from waypost.stores.sql.erasures import SqlErasures


class Checked(Struct, frozen=True):
    """A file, and what is wrong with it; None is nothing."""

    path: str
    fault: Fault | None
    rows: int = 0


class Known(Struct, frozen=True):
    """A file that the manifest lacked: whether it has it now, or why not."""

    path: str
    rows: int
    refused: str | None = None
    passed_over: int = 0
    """Notifications in it of users who were erased since it was written: nobody is in them any more."""


async def verify(files: Files) -> AsyncIterator[Checked]:
    """Read every file of the manifest, and compare; then tell what lies there besides."""
    known: set[str] = set()
    after: tuple[str, bytes] = ("", b"")
    while page := await files.manifest.all(after):
        for file in page:
            known |= {file.path, file.path + BESIDE}
            yield await asyncio.to_thread(_check, files, file)
        after = page[-1].app, page[-1].first_id
    for path in await asyncio.to_thread(files.bucket.paths):
        if path not in known:
            yield Checked(path, Fault.UNKNOWN)


class Forgotten(Struct, frozen=True):
    """The store's knowledge of who was erased, and what is left of them."""

    erasures: SqlErasures
    deletes: bool
    """Whether nothing is left, or what ``Erasures.blank`` leaves."""


async def know_again(files: Files, forgotten: Forgotten) -> AsyncIterator[Known]:
    """Put files that the manifest lacks into it, by what lies beside them: a store of before the archive wrote them.

    Rows of theirs that the store has leave it again. A file that the manifest has, and that is gone, makes room. Users
    who were erased since a file was written do not come back with it: it is written anew without them.
    """
    for beside in await asyncio.to_thread(files.bucket.paths):
        path = beside.removesuffix(BESIDE)
        if path != beside and PurePosixPath(path).suffix == ".parquet" and not await files.manifest.of_path(path):
            yield await _know(files, path, forgotten)


async def _know(files: Files, path: str, forgotten: Forgotten) -> Known:
    try:
        new, details, written_at = await asyncio.to_thread(_found, files, path)
    except (ArchiveAway, msgspec.MsgspecError, ValueError) as error:
        return Known(path, 0, f"cannot be read: {type(error).__name__}")
    if await files.manifest.is_noted(path):
        return Known(path, new.file.n, "it is being written, or was replaced")
    other = await files.manifest.at_or_below(new.file.app, new.file.last_id)
    replaced = other if other is not None and other.last_id >= new.file.first_id else None
    if replaced is not None and await asyncio.to_thread(_is_there, files, replaced.path):
        return Known(path, new.file.n, f"{replaced.path} has the same time")
    erased = await forgotten.erasures.carried_out(new.file.app, written_at)
    left, n = _without(details, erased, deletes=forgotten.deletes)
    if n:
        is_known = await files.write(new.file.app, [left] if left else [], replaced, gone=path)
    else:
        is_known = await _place(files, new, replaced)
    if is_known:
        return Known(path, len(left), passed_over=n)
    return Known(path, new.file.n, "another file has the same time")


async def _place(files: Files, new: NewFile, replaced: ArchiveFile | None) -> bool:
    await files.manifest.begin(new.file.app, [new.file.path])
    if await files.manifest.place(Placing((new,), replaced, {}, drops=True)):
        return True
    await files.manifest.done(new.file.path)
    return False


def _without(
    details: Sequence[NotificationDetail], erased: ErasedUsers, *, deletes: bool
) -> tuple[list[NotificationDetail], int]:
    """Take those out who were erased; what is left, and how many notifications were theirs."""
    left, n = [], 0
    for each in details:
        made = each.record.notification
        erasure = erased.order_about(made.user_id, made.id)
        n += erasure is not None
        if erasure is None:
            left.append(each)
        elif not deletes:
            left.append(blanked(each, erasure))
    return left, n


def _found(files: Files, path: str) -> tuple[NewFile, list[NotificationDetail], Instant]:
    """Read a file that the manifest lacks, and when it was written."""
    said = msgspec.json.decode(files.bucket.get(path + BESIDE), type=Said)
    first, last = parse_id(said.first_id), parse_id(said.last_id)
    checksum, now = bytes.fromhex(said.sha256), files.now()
    file = ArchiveFile(AppId(said.app), first, last, path, said.rows, said.bytes, checksum, said.layout, now)
    data = files.bucket.get(path)
    if sha256(data).digest() != file.sha256:
        raise ValueError("it is not what was written")
    details = read(data)
    users = hashes_of([each.record.notification.user_id for each in details])
    return NewFile(file, users), details, from_datetime(datetime.fromisoformat(said.written_at))


def _check(files: Files, file: ArchiveFile) -> Checked:
    try:
        data, beside = files.bucket.get(file.path), files.bucket.get(file.path + BESIDE)
    except ArchiveAway:
        return Checked(file.path, Fault.AWAY)
    is_same = sha256(data).digest() == file.sha256 and _says(beside, file)
    if not is_same or len(read(data)) != file.n:
        return Checked(file.path, Fault.CHANGED)
    return Checked(file.path, None, file.n)


def _says(beside: bytes, file: ArchiveFile) -> bool:
    """Tell whether what lies beside a file is its entry of the manifest; it may be no JSON at all by now."""
    try:
        return bool(msgspec.json.decode(beside) == msgspec.json.decode(said_of(file)))
    except msgspec.DecodeError:
        return False


def _is_there(files: Files, path: str) -> bool:
    try:
        files.bucket.get(path)
    except ArchiveAway:
        return False
    return True

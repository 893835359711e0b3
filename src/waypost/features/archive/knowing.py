"""The manifest and the files, held against each other: every file read again, and files that the manifest lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from enum import StrEnum
from hashlib import sha256
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, parse_id
from waypost.features.archive.files import BESIDE, Files
from waypost.features.archive.said import Said, said_of
from waypost.ports.archive import ArchiveFile
from waypost.stores.archive.bucket import ArchiveAway
from waypost.stores.archive.parquet import read
from waypost.stores.sql.archive import NewFile, Placing, hashes_of


class Fault(StrEnum):
    """The fault of a file."""

    AWAY = "away"  # it is not there, or cannot be read
    CHANGED = "changed"  # it is not what was written
    UNKNOWN = "unknown"  # the manifest does not have it


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


async def know_again(files: Files) -> AsyncIterator[Known]:
    """Put files that the manifest lacks into it, by what lies beside them: a store of before the archive wrote them.

    Rows of theirs that the store has leave it again. A file that the manifest has, and that is gone, makes room.
    """
    for beside in await asyncio.to_thread(files.bucket.paths):
        path = beside.removesuffix(BESIDE)
        if path != beside and PurePosixPath(path).suffix == ".parquet" and not await files.manifest.of_path(path):
            yield await _know(files, path)


async def _know(files: Files, path: str) -> Known:
    try:
        new = await asyncio.to_thread(_new_file, files, path)
    except (ArchiveAway, msgspec.MsgspecError, ValueError) as error:
        return Known(path, 0, f"cannot be read: {type(error).__name__}")
    if await files.manifest.is_noted(path):
        return Known(path, new.file.n, "it is being written, or was replaced")
    other = await files.manifest.at_or_below(new.file.app, new.file.last_id)
    replaced = other if other is not None and other.last_id >= new.file.first_id else None
    if replaced is not None and await asyncio.to_thread(_is_there, files, replaced.path):
        return Known(path, new.file.n, f"{replaced.path} has the same time")
    await files.manifest.begin(new.file.app, [path])
    if await files.manifest.place(Placing((new,), replaced, {}, drops=True)):
        return Known(path, new.file.n)
    await files.manifest.done(path)
    return Known(path, new.file.n, "another file has the same time")


def _new_file(files: Files, path: str) -> NewFile:
    said = msgspec.json.decode(files.bucket.get(path + BESIDE), type=Said)
    first, last = parse_id(said.first_id), parse_id(said.last_id)
    checksum, written_at = bytes.fromhex(said.sha256), files.now()
    file = ArchiveFile(AppId(said.app), first, last, path, said.rows, said.bytes, checksum, said.layout, written_at)
    data = files.bucket.get(path)
    if sha256(data).digest() != file.sha256:
        raise ValueError("it is not what was written")
    return NewFile(file, hashes_of([each.record.notification.user_id for each in read(data)]))


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

"""What is said of a file beside it, and by the command line."""

from __future__ import annotations

import msgspec

from waypost.domain.ids import created_at, format_id
from waypost.domain.time import isoformat
from waypost.ports.archive import ArchiveFile


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of the manifest as it lies beside its file."""

    app: str
    path: str
    rows: int
    bytes: int
    first_id: str
    last_id: str
    first_created_at: str
    last_created_at: str
    sha256: str
    layout: int
    written_at: str


def said(file: ArchiveFile) -> Said:
    """Describe a file."""
    return Said(
        app=file.app,
        path=file.path,
        rows=file.n,
        bytes=file.size,
        first_id=format_id(file.first_id),
        last_id=format_id(file.last_id),
        first_created_at=isoformat(created_at(file.first_id)),
        last_created_at=isoformat(created_at(file.last_id)),
        sha256=file.sha256.hex(),
        layout=file.layout,
        written_at=isoformat(file.written_at),
    )


def said_of(file: ArchiveFile) -> bytes:
    """Write the entry of a file as JSON."""
    return msgspec.json.format(msgspec.json.encode(said(file)))

"""The meaning of each SQLite failure for the store."""

from __future__ import annotations

import errno
import sqlite3
from enum import Enum, auto

from waypost.domain.errors import ErrorCode, StorageBroken, StorageFull, Unavailable


class StoreFault(Enum):
    """The meaning of a failed statement for the store."""

    BUSY = auto()  # somebody else writes
    FULL = auto()  # no room on the disk
    BROKEN = auto()  # the file is not a sound database
    AWAY = auto()  # the disk did not answer properly
    LOST = auto()  # the server does not answer
    CLASH = auto()  # two transactions stood in each other's way: once more
    TAKEN = auto()  # a key, a name or a table is another than it was a moment ago: once more, then as OPERATION
    OPERATION = auto()  # nothing: the operation itself was wrong


_BY_CODE = {
    sqlite3.SQLITE_BUSY: StoreFault.BUSY,
    sqlite3.SQLITE_LOCKED: StoreFault.BUSY,
    sqlite3.SQLITE_FULL: StoreFault.FULL,
    sqlite3.SQLITE_CORRUPT: StoreFault.BROKEN,
    sqlite3.SQLITE_NOTADB: StoreFault.BROKEN,
    sqlite3.SQLITE_IOERR: StoreFault.AWAY,
    sqlite3.SQLITE_CANTOPEN: StoreFault.AWAY,
    sqlite3.SQLITE_READONLY: StoreFault.AWAY,
    sqlite3.SQLITE_PERM: StoreFault.AWAY,
}
_NO_ROOM_FOR_SHARED_MEMORY = sqlite3.SQLITE_IOERR | (19 << 8)  # SQLITE_IOERR_SHMSIZE


def fault_of(error: BaseException) -> StoreFault:
    """Classify *error*; the two SQLite modules raise unrelated classes, but both carry the result code."""
    if isinstance(error, OSError):
        return StoreFault.FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else StoreFault.AWAY
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return StoreFault.OPERATION
    if code == _NO_ROOM_FOR_SHARED_MEMORY:
        return StoreFault.FULL
    return _BY_CODE.get(code & 0xFF, StoreFault.OPERATION)


def refusal(fault: StoreFault) -> Unavailable:
    """Build the error for a caller."""
    match fault:
        case StoreFault.FULL:
            return StorageFull("the disk is full", retry_after_s=5)
        case StoreFault.BROKEN:
            return StorageBroken("the database is damaged; restore it from a backup", retry_after_s=60)
        case StoreFault.AWAY:
            return StorageBroken("the disk cannot be read or written", retry_after_s=5)
        case StoreFault.LOST:
            return Unavailable("the database does not answer", ErrorCode.STORAGE_AWAY)
        case StoreFault.BUSY | StoreFault.CLASH | StoreFault.TAKEN | StoreFault.OPERATION:
            return Unavailable("the store is busy", ErrorCode.STORAGE_BUSY)

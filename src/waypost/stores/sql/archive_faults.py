"""Files of the archive that were met and are not whole, on SQL.

archive_fault  one row a file of the manifest
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.time import Instant
from waypost.ports.archive import ArchiveFile, Fault
from waypost.ports.clock import Clock
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

FAULT: Final = AddedTable(
    "archive_fault",
    "CREATE TABLE IF NOT EXISTS archive_fault"
    " (path {text} NOT NULL, app {text} NOT NULL, what {text} NOT NULL, since {number} NOT NULL,"
    " PRIMARY KEY (path)){layout}",
)
_MARK: Final = "INSERT INTO archive_fault (path, app, what, since) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_MARKED: Final = "SELECT path, app, what, since FROM archive_fault ORDER BY path"
_IS_MARKED: Final = "SELECT 1 FROM archive_fault WHERE path = ?"
UNMARK: Final = "DELETE FROM archive_fault WHERE path = ?"


class Unwhole(Struct, frozen=True):
    """A file of the manifest that was met and is not whole."""

    path: str
    app: AppId
    fault: Fault
    since: Instant


class SqlArchiveFaults:
    """The files that were met and are not whole."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def mark(self, file: ArchiveFile, fault: Fault) -> bool:
        """Note that a file is not whole; tell whether it was not noted yet."""
        return await self._database.commits.submit(_MARKING, (file.path, file.app, fault.value, self._clock.now()))

    async def unmark(self, path: str) -> None:
        """Note that a file is whole, or that the manifest has it no more."""
        await self._database.commits.submit(_UNMARKING, path)

    async def all(self) -> list[Unwhole]:
        """List them."""
        rows = await self._database.read(lambda connection: connection.execute(_MARKED).fetchall())
        return [Unwhole(path, app, Fault(what), since) for path, app, what, since in rows]


def _mark(transaction: Transaction, marks: Sequence[tuple[str, AppId, str, Instant]]) -> list[bool]:
    return [_mark_one(transaction.connection, mark) for mark in marks]


def _mark_one(connection: Connection, mark: tuple[str, AppId, str, Instant]) -> bool:
    is_new = connection.execute(_IS_MARKED, mark[:1]).fetchone() is None
    connection.execute(_MARK, mark)
    return is_new


def _unmark(transaction: Transaction, paths: Sequence[str]) -> list[None]:
    for path in paths:
        transaction.connection.execute(UNMARK, (path,))
    return [None] * len(paths)


_MARKING: Final = OperationKind("mark_archive_fault", _mark, durable=False, patient=True)
_UNMARKING: Final = OperationKind("unmark_archive_fault", _unmark, durable=False, patient=True)

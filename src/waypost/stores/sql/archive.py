"""The manifest of the archive on SQL, and how rows leave for it.

archive_file   one row a file, by (app, first id); files of an app do not overlap
archive_todo   what is still to be done about a path: a file that may be written in vain, one that was replaced, and one
               whose rows are still in the store
notification   by (app, id)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, NotificationId, UserId, created_at, first_id_at
from waypost.domain.time import Instant, later
from waypost.ports.archive import ArchiveFile
from waypost.ports.clock import Clock
from waypost.ports.views import Marked, NotificationDetail
from waypost.stores.sql.added import AddedTable, names_of_notifications
from waypost.stores.sql.archive_faults import UNMARK, SqlArchiveFaults
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.pages import marks_on
from waypost.stores.sql.reading import Look, records
from waypost.stores.sql.retention import SqlRetention, delete_notifications
from waypost.stores.sql.rows import RECEIPT, receipt_of, select_in
from waypost.stores.sql.transaction import OperationKind, Transaction

FILE: Final = AddedTable(
    "archive_file",
    "CREATE TABLE IF NOT EXISTS archive_file"
    " (app {text} NOT NULL, first_id {blob} NOT NULL, last_id {blob} NOT NULL, path {text} NOT NULL,"
    " n {number} NOT NULL, size {number} NOT NULL, sha256 {blob} NOT NULL, layout {number} NOT NULL,"
    " written_at {number} NOT NULL, users {blob} NOT NULL, PRIMARY KEY (app, first_id), UNIQUE (path))",
)
"""On SQLite its rows do not lie in the key, but beside it: *users* is large, and read where it is asked for alone."""
TODO: Final = AddedTable(
    "archive_todo",
    "CREATE TABLE IF NOT EXISTS archive_todo"
    " (path {text} NOT NULL, app {text} NOT NULL, what {text} NOT NULL, since {number} NOT NULL,"
    " PRIMARY KEY (path)){layout}",
)
HASH: Final = 4
"""Bytes of the hash by which a file knows its users: of two users one in four thousand million has the other's."""
_COLUMNS = "app, first_id, last_id, path, n, size, sha256, layout, written_at"
_PAGE = 500
_FIRST_ID = NotificationId(b"")
_LAST_ID = NotificationId(b"\xff" * 16)

_OLDEST = "SELECT id, app FROM notification WHERE id > ? AND id < ? AND finished_at < ? ORDER BY id LIMIT ?"
_OLD_OF_APP = """\
SELECT id FROM notification INDEXED BY notification_of_app
WHERE app = ? AND id >= ? AND id < ? AND finished_at < ? ORDER BY id LIMIT ?
"""
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id IN ({{keys}})"  # noqa: S608 - a list of columns
_DUPLICATES = "SELECT duplicate_of, id FROM notification WHERE duplicate_of IN ({keys})"
_STANDING = "SELECT id, user_id, round, finished_at FROM notification WHERE id IN ({keys})"
_TO_DROP = "SELECT seq, id, app, lane, status, finished_at FROM notification WHERE id IN ({keys})"
_AT_OR_BELOW = f"SELECT {_COLUMNS} FROM archive_file WHERE app = ? AND first_id <= ? ORDER BY first_id DESC LIMIT 1"  # noqa: S608 - a list of columns
_ABOVE = f"SELECT {_COLUMNS} FROM archive_file WHERE app = ? AND first_id > ? ORDER BY first_id LIMIT 1"  # noqa: S608 - the same
_NEWEST = f"SELECT {_COLUMNS} FROM archive_file WHERE app = ? AND first_id < ? ORDER BY first_id DESC LIMIT ?"  # noqa: S608 - the same
_NEWEST_USERS = "SELECT users FROM archive_file WHERE app = ? AND first_id < ? ORDER BY first_id DESC LIMIT ?"
_SINCE = f"SELECT {_COLUMNS}, users FROM archive_file WHERE app = ? AND written_at >= ?"  # noqa: S608 - the same
_ALL = f"SELECT {_COLUMNS} FROM archive_file WHERE (app, first_id) > (?, ?) ORDER BY app, first_id LIMIT ?"  # noqa: S608 - the same
_BY_PATH = f"SELECT {_COLUMNS} FROM archive_file WHERE path = ?"  # noqa: S608 - the same
_OVERLAPS = "SELECT 1 FROM archive_file WHERE app = ? AND first_id <= ? AND last_id >= ? AND path <> ? LIMIT 1"
_ADD = f"INSERT INTO archive_file ({_COLUMNS}, users) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - the same
_REMOVE = "DELETE FROM archive_file WHERE path = ?"
_NOTE = "INSERT INTO archive_todo (path, app, what, since) VALUES (?, ?, ?, ?)"
_DONE = "DELETE FROM archive_todo WHERE path = ?"
_NOTED = "SELECT path FROM archive_todo WHERE path = ? AND what = ?"
_ANY_NOTE = "SELECT 1 FROM archive_todo WHERE path = ?"
_ABANDONED = "SELECT 1 FROM archive_todo WHERE what = ? AND since < ? LIMIT 1"
_GIVE_UP = "UPDATE archive_todo SET what = ?, since = 0 WHERE what = ? AND since < ?"
_TO_DO = "SELECT path FROM archive_todo WHERE what = ? AND path > ? ORDER BY path LIMIT ?"


class Todo(StrEnum):
    """Something that is still to be done about a path."""

    WRITING = "writing"  # the file may be there, and is in no manifest: it goes once nobody can be writing it
    REPLACED = "replaced"  # the file goes: nobody has it in the manifest, and nobody can
    DROPPING = "dropping"  # the file is in the manifest; its rows leave the store


Standing = Mapping[NotificationId, tuple[str, int, Instant | None]]
"""How rows of the store read: user, round and end."""


class NewFile(Struct, frozen=True):
    """A file that was written and read back."""

    file: ArchiveFile
    users: bytes
    """The hashes of its users (``hashes_of``)."""


class Placing(Struct, frozen=True):
    """The change of the manifest from *replaced*, where there is one, to *new*."""

    new: tuple[NewFile, ...]
    replaced: ArchiveFile | None
    standing: Standing
    """Rows of the store that are in *new*: they must still read so."""
    drops: bool
    """Whether rows of *new* are to leave the store."""
    gone: tuple[str, ...] = ()
    """The paths of files that the manifest lacks and that *new* says better: they are deleted."""


class SqlArchive:
    """The manifest of the archive, and what is to leave for it."""

    def __init__(self, database: Database, clock: Clock, tables: Sequence[AddedTable] = ()) -> None:
        """Create it; *tables* are those of features."""
        self._database = database
        self._clock = clock
        self._beside = names_of_notifications(tables)
        self.retention = SqlArchivedRetention(database, clock, tables)
        """The retention of a store whose old notifications the archive takes."""
        self.faults = SqlArchiveFaults(database, clock)
        """The files that were met and are not whole."""

    async def oldest(
        self, before: Instant, after: NotificationId = _FIRST_ID, n: int = 1
    ) -> list[tuple[NotificationId, AppId]]:
        """List the *n* oldest notifications after an id that were made and finished before *before*."""
        asked = (after, first_id_at(before), before, n)
        rows = await self._database.read(lambda connection: connection.execute(_OLDEST, asked).fetchall())
        return [(row[0], row[1]) for row in rows]

    async def old(
        self, app: AppId, since: NotificationId, until: NotificationId, before: Instant, n: int
    ) -> list[NotificationDetail]:
        """Read at most *n* of an app's from *since* up to *until* that were finished before *before*, oldest first."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: _old(connection, (app, since, until, before, n), look))

    async def at_or_below(self, app: AppId, notification_id: NotificationId) -> ArchiveFile | None:
        """Find the last file that begins at an id or before: no other can have it."""
        return await self._one(_AT_OR_BELOW, app, notification_id)

    async def above(self, app: AppId, notification_id: NotificationId) -> ArchiveFile | None:
        """Find the first file that begins after an id."""
        return await self._one(_ABOVE, app, notification_id)

    async def of_path(self, path: str) -> ArchiveFile | None:
        """Find a file by its path."""
        return await self._one(_BY_PATH, path)

    async def newest(
        self, app: AppId, user_id: UserId | None, before: NotificationId | None, n: int
    ) -> tuple[list[ArchiveFile], NotificationId | None]:
        """Look at *n* files that begin before *before*, newest first: those that can have the user, and where it ended.

        The end is None where there are no more.
        """
        asked = (app, before or _LAST_ID, n)
        return await self._database.read(lambda connection: _newest(connection, asked, user_id))

    async def of_user(self, app: AppId, user_id: UserId, until: Instant) -> list[ArchiveFile]:
        """List all files of an app that can have what the user was told until then."""
        found: list[ArchiveFile] = []
        before: NotificationId | None = first_id_at(later(until, 1))
        while before is not None:
            page, before = await self.newest(app, user_id, before, _PAGE)
            found += page
        return found

    async def written_since(self, app: AppId, user_id: UserId, since: Instant) -> list[ArchiveFile]:
        """List the files of an app written at *since* or later that can have the user."""
        asked, wanted = (app, since), hash_of(user_id)
        rows = await self._database.read(lambda connection: connection.execute(_SINCE, asked).fetchall())
        return [ArchiveFile(*row) for *row, users in rows if _has(users, wanted)]

    async def all(self, after: tuple[str, bytes] = ("", b""), n: int = 500) -> list[ArchiveFile]:
        """List at most *n* files of all apps, those after the one with the key *after*."""
        rows = await self._database.read(lambda connection: connection.execute(_ALL, (*after, n)).fetchall())
        return [ArchiveFile(*row) for row in rows]

    async def give_up(self, since: Instant) -> None:
        """Let files that nobody has placed since go: from now on nobody can."""
        asked = (Todo.WRITING.value, since)
        if await self._database.read(lambda connection: connection.execute(_ABANDONED, asked).fetchone()) is None:
            return
        await self._database.commits.submit(_GIVING_UP, since)

    async def to_do(self, what: Todo, n: int, after: str = "") -> list[str]:
        """List at most *n* paths, behind the path *after*, of which this is to be done."""
        asked = (what.value, after, n)
        rows = await self._database.read(lambda connection: connection.execute(_TO_DO, asked).fetchall())
        return [row[0] for row in rows]

    async def is_noted(self, path: str) -> bool:
        """Tell whether anything is to be done about a path."""
        row = await self._database.read(lambda connection: connection.execute(_ANY_NOTE, (path,)).fetchone())
        return row is not None

    async def still_in_store(self, ids: Sequence[NotificationId]) -> set[NotificationId]:
        """Return those of *ids* that have not left the store."""
        return await self._database.read(lambda connection: {row[0] for row in select_in(connection, _STANDING, ids)})

    async def begin(self, app: AppId, paths: Sequence[str]) -> None:
        """Note that files of these paths are about to be written."""
        now = self._clock.now()
        await self._database.commits.submit(_BEGINNING, [(path, app, Todo.WRITING.value, now) for path in paths])

    async def place(self, placing: Placing) -> bool:
        """Put written files into the manifest; False, and nothing is changed, where rows or files are others by now."""
        return await self._database.commits.submit(_PLACING, (placing, self._clock.now()))

    async def drop(self, ids: Sequence[NotificationId], before: Instant) -> int:
        """Delete notifications that were finished before *before* from the store; how many it was."""
        return await self._database.commits.submit(_DROPPING, (ids, before, self._beside), len(ids))

    async def done(self, path: str) -> None:
        """Note that nothing is to be done about a path any more."""
        await self._database.commits.submit(_ENDING, path)

    async def _one(self, sql: str, *bound: Any) -> ArchiveFile | None:
        row = await self._database.read(lambda connection: connection.execute(sql, bound).fetchone())
        return None if row is None else ArchiveFile(*row)


class SqlArchivedRetention(SqlRetention):
    """The retention of a store with an archive: what is not there yet stays."""

    async def _whole_before(self, before: Instant) -> Instant:
        """Return when the oldest was made that the archive has not taken yet, or *before*."""
        row = await self._database.read(
            lambda connection: connection.execute(_OLDEST, (_FIRST_ID, first_id_at(before), before, 1)).fetchone()
        )
        return before if row is None else created_at(row[0])

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Retention; the archive takes them page by page itself."""
        return 0


def hash_of(user_id: UserId) -> bytes:
    """Hash a user as files know their users."""
    return blake2b(user_id.encode(), digest_size=HASH).digest()


def hashes_of(users: Sequence[UserId]) -> bytes:
    """Join the hashes of users, each once and in order."""
    return b"".join(sorted(set(map(hash_of, users))))


def _has(users: bytes, wanted: bytes) -> bool:
    at = bisect_left(range(len(users) // HASH), wanted, key=lambda n: users[n * HASH : (n + 1) * HASH])
    return users[at * HASH : (at + 1) * HASH] == wanted


def _old(connection: Connection, asked: tuple[Any, ...], look: Look) -> list[NotificationDetail]:
    ids = [row[0] for row in connection.execute(_OLD_OF_APP, asked).fetchall()]
    found, marked = records(connection, ids, look), marks_on(connection, ids)
    receipts: dict[NotificationId, list[Receipt]] = {}
    for receipt in sorted(map(receipt_of, select_in(connection, _RECEIPTS, ids)), key=lambda one: one.n):
        receipts.setdefault(receipt.notification_id, []).append(receipt)
    duplicates: dict[NotificationId, list[NotificationId]] = {}
    for first, duplicate in select_in(connection, _DUPLICATES, ids):
        duplicates.setdefault(first, []).append(duplicate)
    return [
        NotificationDetail(
            found[each],
            tuple(receipts.get(each, ())),
            tuple(sorted(duplicates.get(each, ()))),
            marked.get(each, Marked()),
        )
        for each in ids
        if each in found
    ]


def _newest(
    connection: Connection, asked: tuple[Any, ...], user_id: UserId | None
) -> tuple[list[ArchiveFile], NotificationId | None]:
    files = [ArchiveFile(*row) for row in connection.execute(_NEWEST, asked).fetchall()]
    end = files[-1].first_id if len(files) == asked[2] else None
    if user_id is None:
        return files, end
    wanted = hash_of(user_id)
    users = connection.execute(_NEWEST_USERS, asked).fetchall()
    return [file for file, (hashes,) in zip(files, users, strict=False) if _has(hashes, wanted)], end


def _begin(transaction: Transaction, batches: Sequence[Sequence[tuple[Any, ...]]]) -> list[None]:
    for rows in batches:
        transaction.connection.executemany(_NOTE, rows)
    return [None] * len(batches)


def _place(transaction: Transaction, changes: Sequence[tuple[Placing, Instant]]) -> list[bool]:
    return [_place_one(transaction.connection, placing, now) for placing, now in changes]


def _place_one(connection: Connection, placing: Placing, now: Instant) -> bool:
    if not _is_as_read(connection, placing):
        return False
    old = placing.replaced
    drops = placing.drops
    if old is not None:
        drops = drops or _is_noted(connection, old.path, Todo.DROPPING)
        connection.execute(_REMOVE, (old.path,))
        connection.execute(_DONE, (old.path,))
        connection.execute(UNMARK, (old.path,))
        connection.execute(_NOTE, (old.path, old.app, Todo.REPLACED.value, 0))
    for path in placing.gone:
        connection.execute(_NOTE, (path, "", Todo.REPLACED.value, 0))
    for new in placing.new:
        connection.execute(_ADD, (*_values(new.file), new.users))
        connection.execute(_DONE, (new.file.path,))
        if drops:
            connection.execute(_NOTE, (new.file.path, new.file.app, Todo.DROPPING.value, now))
    return True


def _is_as_read(connection: Connection, placing: Placing) -> bool:
    """Tell whether the rows, the file that is replaced, and the notes are as they were, and nothing would overlap."""
    old = placing.replaced
    if old is not None and connection.execute(_BY_PATH, (old.path,)).fetchone() is None:
        return False
    beside = "" if old is None else old.path
    for new in placing.new:
        file = new.file
        overlaps = connection.execute(_OVERLAPS, (file.app, file.last_id, file.first_id, beside)).fetchone()
        if overlaps is not None or not _is_noted(connection, file.path, Todo.WRITING):
            return False
    standing = {row[0]: tuple(row[1:]) for row in select_in(connection, _STANDING, list(placing.standing))}
    return standing == placing.standing


def _is_noted(connection: Connection, path: str, what: Todo) -> bool:
    return connection.execute(_NOTED, (path, what.value)).fetchone() is not None


def _values(file: ArchiveFile) -> tuple[Any, ...]:
    return (
        file.app,
        file.first_id,
        file.last_id,
        file.path,
        file.n,
        file.size,
        file.sha256,
        file.layout,
        file.written_at,
    )


def _drop(
    transaction: Transaction, orders: Sequence[tuple[Sequence[NotificationId], Instant, Sequence[str]]]
) -> list[int]:
    return [_drop_page(transaction, *order) for order in orders]


def _drop_page(transaction: Transaction, ids: Sequence[NotificationId], before: Instant, beside: Sequence[str]) -> int:
    """Delete what is over still: what was replayed meanwhile stays."""
    rows = select_in(transaction.connection, _TO_DROP, ids)
    over = [row[:-1] for row in rows if row[-1] is not None and row[-1] < before]
    return delete_notifications(transaction, over, beside)


def _give_up(transaction: Transaction, times: Sequence[Instant]) -> list[None]:
    for since in times:
        transaction.connection.execute(_GIVE_UP, (Todo.REPLACED.value, Todo.WRITING.value, since))
    return [None] * len(times)


def _end(transaction: Transaction, paths: Sequence[str]) -> list[None]:
    for path in paths:
        transaction.connection.execute(_DONE, (path,))
    return [None] * len(paths)


_BEGINNING: Final = OperationKind("begin_archive_file", _begin, durable=True, patient=True)
_PLACING: Final = OperationKind("place_archive_file", _place, durable=True, ordered=True, patient=True)
_DROPPING: Final = OperationKind("drop_archived", _drop, durable=False, patient=True)
_GIVING_UP: Final = OperationKind("give_up_archive_files", _give_up, durable=True, patient=True)
_ENDING: Final = OperationKind("end_archive_todo", _end, durable=True, patient=True)

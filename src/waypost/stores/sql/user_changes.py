"""Whose preferences or time zone changed, on SQL: what processes that keep some of it in memory read with each batch.

A change of a user takes the next number, and is a row under it, in the transaction of the change itself; the row of the
last number is taken first, so that numbers are in the order of commits. Whoever has seen a number knows what all users
were like then, and asks who changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection

CHANGES: Final = AddedTable(
    "user_change",
    "CREATE TABLE IF NOT EXISTS user_change"
    " (n {number} NOT NULL PRIMARY KEY, app {text} NOT NULL, user_id {text} NOT NULL){layout}",
)
LAST_CHANGE: Final = AddedTable(
    "user_change_last",
    "CREATE TABLE IF NOT EXISTS user_change_last"
    " (id {number} NOT NULL PRIMARY KEY, n {number} NOT NULL, all_before {number} NOT NULL){layout}",
)
KEPT: Final = 1_000
"""Changes that are listed one by one; who has seen less than that forgets everything."""
_LAST: Final = "SELECT n, all_before FROM user_change_last WHERE id = 1"
_TAKE: Final = """\
INSERT INTO user_change_last (id, n, all_before) VALUES (1, ?, 0)
ON CONFLICT (id) DO UPDATE SET n = user_change_last.n + excluded.n
RETURNING n
"""
_NOTE: Final = "INSERT INTO user_change (n, app, user_id) VALUES (?, ?, ?)"
_DROP: Final = "DELETE FROM user_change WHERE n <= ?"
_SINCE: Final = "SELECT app, user_id FROM user_change WHERE n > ? AND n <= ?"
_FORGET: Final = "UPDATE user_change_last SET all_before = n WHERE id = 1"
_FORGET_USER: Final = "DELETE FROM user_change WHERE app = ? AND user_id = ?"

User = tuple[AppId, UserId]


class Changed(Struct, frozen=True):
    """The number of the last change, and who changed since another one."""

    n: int
    users: Sequence[User] | None = ()
    """The users; None is everybody."""


class SqlUserChanges:
    """The list of who changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def since(self, seen: int) -> Changed:
        """Return who changed after the change number *seen*; two look-ups by keys where anybody did, else one."""
        return await self._database.read_to_lease(lambda connection: _since(connection, seen))


def note_changes(connection: Connection, users: Sequence[User]) -> None:
    """Note that *users* are changed by this transaction; before anything else of theirs is read or written."""
    (last,) = connection.execute(_TAKE, (len(users),)).fetchone()
    rows = [(last - len(users) + n, *user) for n, user in enumerate(users[-KEPT:], start=1 + len(users[:-KEPT]))]
    connection.executemany(_NOTE, rows)
    connection.execute(_DROP, (last - KEPT,))


def lock_changes(connection: Connection) -> None:
    """Have every other transaction that changes users wait for the end of this one; before any of theirs is read."""
    connection.execute(_TAKE, (0,))


def erase_user(connection: Connection, user: User, sql: str, until: Instant) -> None:
    """Delete the row of *user* by *sql*, and take the user off the list.

    Where there was anything to delete, everybody is forgotten, so that nobody has to be told of whom; an erasure that
    is carried out again finds nothing, and costs no process what it knows.
    """
    lock_changes(connection)
    rows = connection.execute(sql, (*user, until)).rowcount
    if rows + connection.execute(_FORGET_USER, user).rowcount:
        connection.execute(_TAKE, (1,))
        connection.execute(_FORGET, ())


def _since(connection: Connection, seen: int) -> Changed:
    row = connection.execute(_LAST, ()).fetchone()
    last, all_before = (0, 0) if row is None else row
    if last == seen:
        return Changed(seen)
    if seen < max(all_before, last - KEPT):
        return Changed(last, None)
    users = connection.execute(_SINCE, (seen, last)).fetchall()
    # Numbers have no gaps; where one is missing, its row went between the two look-ups, each of which sees what is
    # committed by then.
    return Changed(last, users if len(users) == last - seen else None)

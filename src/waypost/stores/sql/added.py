"""Tables that features bring: made where they are missing, beside those of the migrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

_SQLITE: Final = {"blob": "BLOB", "number": "INTEGER", "text": "TEXT", "layout": " WITHOUT ROWID"}
_POSTGRES: Final = {"blob": "bytea", "number": "bigint", "text": 'text COLLATE "C"', "layout": ""}


class AddedTable(Struct, frozen=True):
    """A table of a feature. Once it was made, only a migration changes it."""

    name: str
    sql: str
    """``CREATE TABLE IF NOT EXISTS``; ``{blob}``, ``{number}``, ``{text}`` and ``{layout}`` are the engine's words.

    ``{layout}`` ends a table that has a primary key: on SQLite its rows lie in the order of that.
    """
    of_notification: bool = False
    """Whether its column ``notification_id`` says whose a row is: it is erased, and goes, with that notification."""
    is_to_be_told: bool = False
    """Whether a row says what is still to be told of its notification, which is not deleted as hidden before that."""


def make_missing(
    tables: Sequence[AddedTable], has: Callable[[str], bool], execute: Callable[[str], object], *, is_remote: bool
) -> None:
    """Execute the statements of those *tables* that the database does not have yet."""
    words = _POSTGRES if is_remote else _SQLITE
    for table in tables:
        if not has(table.name):
            execute(table.sql.format(**words))


def names_of_notifications(tables: Sequence[AddedTable]) -> tuple[str, ...]:
    """Name the tables whose rows belong to notifications."""
    return tuple(table.name for table in tables if table.of_notification)


def names_of_what_is_to_be_told(tables: Sequence[AddedTable]) -> tuple[str, ...]:
    """Name the tables whose rows say what is still to be told of notifications."""
    return tuple(table.name for table in tables if table.is_to_be_told)

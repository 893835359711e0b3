"""Tables that are somebody else's: which of their columns means what. Pure, but for what is asked of a server.

A column is known by its name, whatever its case and underscores (``userId``, ``user_id``), or by what the settings say;
what it holds is cast to whatever type it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from psycopg import AsyncConnection, sql

from waypost.domain.errors import ConfigurationError

Names = Mapping[str, tuple[str, ...]]
"""What a column may be called, by what it means."""

TOKEN_NAMES: Final[Names] = {"id": ("id",), "user": ("userid",), "token": ("token",)}
LOG_NAMES: Final[Names] = {
    "id": ("id",),
    "user": ("userid",),
    "status": ("status",),
    "job": ("jobid",),
    "channel": ("channel",),
    "title": ("title",),
    "body": ("body",),
    "data": ("data", "payload"),
    "tokens": ("tokens",),
    "sent": ("sent",),
    "created": ("createdat",),
    "updated": ("updatedat",),
}
_FIND = "SELECT to_regclass($1)::text"
_COLUMNS = """\
SELECT attname, format_type(atttypid, -1), attnotnull, atthasdef OR attidentity <> '' OR attgenerated <> ''
FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


class Column(Struct, frozen=True):
    """A column as it is."""

    name: str
    type: str
    is_needed: bool = False
    """It has no default, and may not be NULL."""

    @property
    def quoted(self) -> str:
        """Its name in a statement."""
        return sql.Identifier(self.name).as_string(None)


class Table(Struct, frozen=True):
    """A table as it is."""

    name: str
    """As a statement has it."""
    columns: Mapping[str, Column]
    """By what they mean."""

    def cast(self, meaning: str, value: str) -> str:
        """Return *value*, a text, as the column's type."""
        return f"{value}::{self.columns[meaning].type}"


async def columns_of(connection: AsyncConnection[Any], table: str) -> tuple[str, list[Column]] | None:
    """Find the table's name as a statement has it, and its columns; None where there is no such table."""
    found = await (await connection.execute(_FIND, (table,))).fetchone()
    if found is None or found[0] is None:
        return None
    rows = await (await connection.execute(_COLUMNS, (table,))).fetchall()
    return found[0], [Column(name, kind, not_null and not has_default) for name, kind, not_null, has_default in rows]


def matched(columns: Sequence[Column], variable: str, known: Names, named: Mapping[str, str]) -> dict[str, Column]:
    """Find the columns that mean something, by what; *variable* is where the settings may *name* others."""
    unknown = named.keys() - known.keys()
    if unknown:
        raise ConfigurationError(variable, f"names {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    by_name = {each.name: each for each in columns}
    plain = {each.name.lower().replace("_", ""): each for each in columns}
    found: dict[str, Column] = {}
    for meaning, candidates in known.items():
        if meaning in named:
            if named[meaning] not in by_name:
                raise ConfigurationError(variable, f"there is no column {named[meaning]}")
            found[meaning] = by_name[named[meaning]]
            continue
        column = next((plain[each] for each in candidates if each in plain), None)
        if column is not None:
            found[meaning] = column
    return found


def table_of(
    found: tuple[str, Sequence[Column]], variable: str, known: Names, named: Mapping[str, str], needed: Sequence[str]
) -> Table:
    """Find the table with what its columns mean; ConfigurationError says which of those *needed* was not found."""
    name, columns = found
    table = Table(name, matched(columns, variable, known, named))
    for meaning in needed:
        if meaning not in table.columns:
            raise ConfigurationError(variable, f"{name} has no column that is its {meaning}; name it: {meaning}=…")
    return table

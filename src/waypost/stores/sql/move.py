"""A move of a SQLite store into an empty PostgreSQL database: one transaction, so that all of it is there or none.

    every table of the store   its rows as they are, by pages, and the tables of dedup keys with them
    journal, reader            positions lowered to 0 and less: what PostgreSQL gives out is above them
    feed_entry, feed_tag       places, which follow from positions, likewise
    counter                    one row for each sum: how they are divided is each engine's own
    sequence                   not moved: PostgreSQL numbers by a clock
    feed_stamp                 not moved: what was kept of feeds has other places
    history_slice              not moved, nor the slices of notifications: PostgreSQL has none

What is leased, who is a member and what was said of arrivals is PostgreSQL's alone, and begins empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import sql

from waypost.domain.errors import ConfigurationError, StorageBroken
from waypost.ports.feed import PLACES_A_ROW
from waypost.stores.sql.connection import SqliteConnection, connect, database_path, run_directory
from waypost.stores.sql.journal import DROPPED
from waypost.stores.sql.migrations import MOVED, NOTED_IN
from waypost.stores.sql.postgres.connection import CONNECT_TIMEOUT_S, of_primary
from waypost.stores.sql.postgres.refusals import named_refusal
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.write_lock import WriteLock

Progress = Callable[[str, int, int], None]
"""Told of a table, how many of its rows were sent, and how many there are."""

PAGE = 1_000
_PATIENCE_S = 30.0
_NOT_MOVED = ("sequence", "feed_stamp", "history_slice", NOTED_IN)
_COLUMN_NOT_MOVED = {"notification": "slice"}
_NUMBERED_BY_THE_SERVER = {"audit": "seq", "bulk_piece": "seq"}
_TYPES = {"BLOB": "bytea", "INTEGER": "int8", "BIGINT": "int8", "TEXT": "text"}
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) != 'sqlite_' ORDER BY name"
_LAST_POSITION = "SELECT coalesce(max(position), 0) FROM {}"
_COUNTERS = "SELECT app, lane, 0 AS hour, status, sum(delta) AS delta FROM counter GROUP BY app, lane, status"
_MAKE_KEYS = (
    "CREATE TABLE {} (key bytea PRIMARY KEY, kind text NOT NULL, id bytea NOT NULL, body_hash bytea NOT NULL,"
    " until bigint NOT NULL)"
)

_Server = psycopg.Connection[tuple[Any, ...]]


class Moved(Struct, frozen=True):
    """The tables that were moved, with the rows of each; counted again on the other side."""

    rows: dict[str, int]


class _Part(Struct, frozen=True):
    """A table as it is read: its columns, their types there, and the statement."""

    table: str
    columns: Sequence[str]
    types: Sequence[str]
    read: str


def move(source: SqlSettings, target: SqlSettings, readers: Sequence[str], on_progress: Progress) -> Moved:
    """Move everything; *readers* of the journal are told afterwards what they had not read. Nobody may serve either.

    Both have today's schema. ConfigurationError where the target is not empty, StorageBroken where the counts differ;
    nothing was moved then. The source is marked: no version serves it any more.
    """
    database = database_path(source.url)
    lock = WriteLock(run_directory(database))
    try:
        with lock.hold(_PATIENCE_S), contextlib.closing(connect(database)) as here:
            here.execute("BEGIN IMMEDIATE")
            here.execute(f"UPDATE {NOTED_IN} SET version_num = ?", (MOVED,))  # noqa: S608 - a name of ours
            with psycopg.connect(of_primary(target.url), connect_timeout=CONNECT_TIMEOUT_S) as there:
                moved = _move_all(here, there, readers, on_progress)
            here.execute("COMMIT")
            return moved
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise named_refusal(error) from error
        raise StorageBroken(f"PostgreSQL refused the rows, nothing was moved: {error.diag.message_primary}") from error
    finally:
        lock.close()


def _move_all(here: SqliteConnection, there: _Server, readers: Sequence[str], on_progress: Progress) -> Moved:
    lowered = _lowered_by(here)
    parts = [_part(here, table, lowered) for (table,) in here.execute(_TABLES).fetchall() if table not in _NOT_MOVED]
    _require_empty(there, [part.table for part in parts if not _is_keys(part.table)])
    rows: dict[str, int] = {}
    for part in parts:
        if _is_keys(part.table):
            there.execute(sql.SQL(_MAKE_KEYS).format(sql.Identifier(part.table)))
        rows[part.table] = _copy(here, there, part, on_progress)
    _check(there, rows)
    for name in (*readers, DROPPED):
        there.execute("INSERT INTO reader VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", (name, -lowered))
    for table, column in _NUMBERED_BY_THE_SERVER.items():
        _go_on_numbering(there, table, column)
    return Moved(rows)


def _lowered_by(here: SqliteConnection) -> int:
    """Find the last position of the journal or of a reader."""
    found: list[int] = [here.execute(_LAST_POSITION.format(table)).fetchone()[0] for table in ("journal", "reader")]
    return max(found)


def _is_keys(table: str) -> bool:
    return table.removeprefix("dedup_").isdigit()


def _part(here: SqliteConnection, table: str, lowered: int) -> _Part:
    declared = here.execute(f"PRAGMA table_info({table})").fetchall()
    known = [column for column in declared if column[1] != _COLUMN_NOT_MOVED.get(table)]
    columns = [name for _, name, *_ in known]
    types = [_TYPES[kind.upper()] for _, _, kind, *_ in known]
    if table == "counter":
        return _Part(table, columns, types, _COUNTERS)
    named = {"position": f"position - {lowered}"}
    if table in ("feed_entry", "feed_tag"):
        named["place"] = f"place - {lowered * PLACES_A_ROW}"
    said = [named.get(name, f'"{name}"') for name in columns]
    return _Part(table, columns, types, f"SELECT {', '.join(said)} FROM {table}")  # noqa: S608 - names of our tables


def _require_empty(there: _Server, tables: Sequence[str]) -> None:
    """Lock *tables* against everybody who writes, and check that there is nothing to lose or to mix with."""
    names = [sql.Identifier(table) for table in tables]
    there.execute(sql.SQL("LOCK TABLE {}, member IN EXCLUSIVE MODE").format(sql.SQL(", ").join(names)))
    if there.execute("SELECT 1 FROM member WHERE until > clock_timestamp()").fetchone():
        raise ConfigurationError("--to", "a waypost serves that database: stop it first")
    for table, name in zip(tables, names, strict=True):
        if table != "reader" and there.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(name)).fetchone():
            raise ConfigurationError("--to", f"that database is not empty: {table} has rows")
    for table in ("reader", "tail"):  # where a worker stood that found nothing there
        there.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


def _copy(here: SqliteConnection, there: _Server, part: _Part, on_progress: Progress) -> int:
    """Send the rows page by page; return how many there were."""
    total = here.execute(f"SELECT count(*) FROM ({part.read})").fetchone()[0]  # noqa: S608 - as in _part
    columns = sql.SQL(", ").join(map(sql.Identifier, part.columns))
    into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(part.table), columns)
    sent = 0
    with there.cursor() as cursor, cursor.copy(into) as copy:
        copy.set_types(part.types)
        for page in _pages(here, part.read):
            for row in page:
                copy.write_row(row)
            sent += len(page)
            on_progress(part.table, sent, total)
    return sent


def _pages(here: SqliteConnection, read: str) -> Iterator[list[Any]]:
    cursor = here.execute(read)
    while page := cursor.fetchmany(PAGE):
        yield page


def _check(there: _Server, rows: dict[str, int]) -> None:
    """Count what is there before it is committed."""
    for table, sent in rows.items():
        ((found,),) = there.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchall()
        if found != sent:
            raise StorageBroken(f"{table} has {found} rows there and {sent} here: nothing was moved")


def _go_on_numbering(there: _Server, table: str, column: str) -> None:
    last = sql.SQL("SELECT setval(pg_get_serial_sequence({}, {}), max({})) FROM {} HAVING max({}) IS NOT NULL")
    name = sql.Identifier(column)
    there.execute(last.format(sql.Literal(table), sql.Literal(column), name, sql.Identifier(table), name))

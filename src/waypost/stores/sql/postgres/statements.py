"""Translation of statements as SQLite has them, for PostgreSQL.

Both engines read the same SQL but for a few words: marks are numbered, hints for SQLite's planner go, a table needs no
``WITHOUT ROWID``, ``INSERT OR REPLACE`` names its key, and a user's history has no slices. What differs in more than
words is in the dialect.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from msgspec import Struct
from sqlalchemy import BLOB, Integer

from waypost.stores.sql.driver import Dialect, Row
from waypost.stores.sql.history import SLICES
from waypost.stores.sql.schema import metadata

DIALECT = Dialect(
    row_key="id",
    locked=" ORDER BY id FOR UPDATE",
    snapshot="BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    texts="SELECT json_array_elements_text(CAST(? AS json))",
    # OFFSET 0 keeps it apart: joined freely, a table that is small or not analysed yet is read from end to end.
    devices_of_users=(
        "(SELECT place - 1 AS place, pair ->> 0 AS app, pair ->> 1 AS user_id"
        " FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS pairs (pair, place)) AS asked"
        " CROSS JOIN LATERAL"
        " (SELECT * FROM device WHERE app = asked.app AND user_id = asked.user_id OFFSET 0) AS device"
    ),
    # From a clock, so that the bounds of a month are known before it begins: partitions of ``content`` are cut by it.
    # A millisecond has 1,024 blocks, so that none is given twice, and nobody waits for whoever has the one before.
    next_numbers=(
        "SELECT (CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) << 20)"
        " | ((nextval('number_block') & 1023) << 10) FROM generate_series(1, ?)"
    ),
    numbers_a_block=1024,
    blob="bytea",
    has_jsonb=True,
    cuts_history=False,
    has_other_writers=True,
)
MS_IN_NUMBER = 1 << 20
"""Numbers of rows in one millisecond of the sequence."""

_BY_SLICE = re.compile(r"ORDER BY first( DESC)?, id")
_HINT = re.compile(r" INDEXED BY \w+")
_UNPLANNED = re.compile(r"\+shard\b")
_FORCED_ORDER = re.compile(r"CROSS JOIN (\w+) ON")
_WITHOUT_ROW_ID = re.compile(r"\) WITHOUT ROWID")
_REPLACE = re.compile(r"INSERT OR REPLACE INTO (\w+) \(([^)]*)\)")
_MARK = re.compile(r"\?(\d*)")
_INSERT = re.compile(r"INSERT (?:OR REPLACE )?INTO (\w+) \(([^)]*)\) VALUES ")

_DEDUP_KEY = ("key",)
_DEDUP_TYPES = {"key": "bytea", "kind": "text", "id": "bytea", "body_hash": "bytea", "until": "int8"}


@lru_cache(4096)
def translated(sql: str) -> bytes:
    """Translate *sql* for PostgreSQL."""
    text = _BY_SLICE.sub("ORDER BY id", sql.replace(SLICES, "notification"))
    text = _WITHOUT_ROW_ID.sub(")", _FORCED_ORDER.sub(r"JOIN \1 ON", _UNPLANNED.sub("shard", _HINT.sub("", text))))
    replaced = _REPLACE.search(text)
    if replaced is not None:
        text = text.replace("INSERT OR REPLACE", "INSERT") + _on_conflict(replaced[1], _columns(replaced[2]))
    numbers = itertools.count(1)
    return _MARK.sub(lambda mark: f"${mark[1] or next(numbers)}", text).encode()


@lru_cache(256)
def over_list(sql: str) -> str:
    """Put one bound list in the place of ``{keys}`` in *sql*."""
    return sql.replace(" IN ({keys})", " = ANY({keys})").format(keys="?")


class Copy(Struct, frozen=True):
    """An insert of rows that are new for certain: they travel as COPY, which costs a third of anything else."""

    sql: bytes
    types: tuple[str, ...]
    row: Callable[[Row], Row]
    """Builds a row with its constants in their places."""
    in_pipeline: bytes
    """The same as one statement with a list for each bound column: a pipeline takes no COPY."""
    bound_types: tuple[str, ...]


class Upsert(Struct, frozen=True):
    """An insert of rows that may replace others: one statement with a list for each column."""

    sql: bytes
    types: tuple[str, ...]
    key: Callable[[Row], Any]


@lru_cache(64)
def insertion(insert: str, values: str) -> Copy | Upsert:
    """Build the insert of rows that SQLite takes as *insert* and *values*."""
    parsed = _INSERT.fullmatch(insert)
    assert parsed is not None, "an insert ends with VALUES"
    table, columns = parsed[1], _columns(parsed[2])
    given = [_constant(each.strip()) for each in values.strip("()").split(",")]
    if insert.startswith("INSERT OR REPLACE"):
        types = tuple(_type(table, column) for column in columns)
        sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM {_lists(types)}"  # noqa: S608 - names of ours
        key = itemgetter(*(columns.index(name) for name in _key(table)))
        return Upsert((sql + _on_conflict(table, columns)).encode(), types, key)
    named = [(column, value) for column, value in zip(columns, given, strict=True) if value is not None]
    width = sum(value is _BOUND for _, value in named)
    constants = tuple(value for _, value in named if value is not _BOUND)
    bound, fixed = itertools.count(), itertools.count(width)
    places = [next(bound) if value is _BOUND else next(fixed) for _, value in named]
    pick = itemgetter(*places)
    row: Callable[[Row], Row] = (lambda given: pick(given + constants)) if constants else tuple
    names = [column for column, _ in named]
    sql = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    types = tuple(_type(table, name) for name in names)
    return Copy(sql.encode(), types, row, *_in_pipeline(table, named))


def _in_pipeline(table: str, named: Sequence[tuple[str, Any]]) -> tuple[bytes, tuple[str, ...]]:
    """Build the statement that inserts rows from lists of what they bind, and the types of the lists."""
    bound = [column for column, value in named if value is _BOUND]
    said = {column: value for column, value in named if value is not _BOUND}
    types = tuple(_type(table, column) for column in bound)
    values = "".join(f", {value!r}" for value in said.values())
    sql = f"INSERT INTO {table} ({', '.join([*bound, *said])}) SELECT given.*{values} FROM {_lists(types)} AS given"  # noqa: S608 - names of ours
    return sql.encode(), types


def claim(table: str, columns: str) -> tuple[bytes, tuple[str, ...]]:
    """Build the statement that inserts keys, or replaces those that are over, and the types of what it binds."""
    types = tuple(_type(table, column) for column in _columns(columns))
    over = f" WHERE {table}.until <= ${len(types) + 1}"
    sql = f"INSERT INTO {table} ({columns}) SELECT * FROM {_lists(types)}{_on_conflict(table, _columns(columns))}{over}"  # noqa: S608 - names of ours
    return sql.encode(), types


@lru_cache(64)
def changing(table: str, columns: Sequence[str], key: Sequence[str]) -> tuple[bytes, tuple[str, ...]]:
    """Build the statement that sets *columns* of the rows with the given keys, and the types of what it binds."""
    named = (*columns, *key)
    types = tuple(_type(table, name) for name in named)
    change = ", ".join(f"{name} = given.{name}" for name in columns)
    which = " AND ".join(f"{table}.{name} = given.{name}" for name in key)
    sql = f"UPDATE {table} SET {change} FROM {_lists(types)} AS given ({', '.join(named)}) WHERE {which}"  # noqa: S608 - names of ours
    return sql.encode(), types


def _lists(types: Sequence[str]) -> str:
    return f"unnest({', '.join(f'${n}::{kind}[]' for n, kind in enumerate(types, start=1))})"


_BOUND = object()


def _constant(text: str) -> Any:
    if text == "?":
        return _BOUND
    if text == "NULL":
        return None
    return text.strip("'") if text.startswith("'") else int(text)


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _on_conflict(table: str, columns: Sequence[str]) -> str:
    key = _key(table)
    rest = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {rest}"


def _key(table: str) -> tuple[str, ...]:
    return _DEDUP_KEY if _is_dedup_partition(table) else tuple(metadata.tables[table].primary_key.columns.keys())


def _type(table: str, column: str) -> str:
    if _is_dedup_partition(table):
        return _DEDUP_TYPES[column]
    of = metadata.tables[table].columns[column].type
    return "bytea" if isinstance(of, BLOB) else "int8" if isinstance(of, Integer) else "text"


def _is_dedup_partition(table: str) -> bool:
    return table.removeprefix("dedup_").isdigit()

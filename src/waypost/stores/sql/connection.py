"""Connections to the SQLite database: how each is opened.

One SQLite library opens it: ``pysqlite3``, since libraries before 3.51.3 can corrupt a write-ahead log that two
connections reset at once. Where no wheel fits, the system's library serves a single worker.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import itertools
import os
import pwd
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from waypost.domain.content import Kind, Urgency
from waypost.domain.dedup import ClaimKind
from waypost.domain.delivery import FailureClass
from waypost.domain.errors import ConfigurationError
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import HOUR_MS, Instant
from waypost.stores.sql.driver import Answer, Dialect, Row

try:
    from pysqlite3 import dbapi2 as dbapi
except ImportError:
    import sqlite3 as dbapi

_CONFIG_MULTITHREAD = 2
_CONFIG_MEMSTATUS = 9


def _lock_less() -> None:
    """Tell the library that no connection serves two threads at once, and that nobody asks how much memory it has.

    Otherwise it takes a lock for each value that is bound, and one of all threads for each allocation: a twentieth of a
    worker's time (sqlite.org, "Using SQLite In Multi-Threaded Applications" and "sqlite3_config"). So a cursor must end
    in the thread that made it: none is kept under a name that an exception could carry to another.
    """
    library = ctypes.CDLL(importlib.import_module(f"{dbapi.__package__}._sqlite3").__file__)
    library.sqlite3_shutdown()  # no connection is open yet; it is only configured before it is initialised
    library.sqlite3_config(_CONFIG_MULTITHREAD)
    library.sqlite3_config(_CONFIG_MEMSTATUS, 0)
    library.sqlite3_initialize()


if dbapi.__name__.startswith("pysqlite3"):
    _lock_less()

# Without an adapter of its own the module searches one for every value that is no plain str or int: 1 µs each time.
dbapi.register_adapter(bytes, bytearray)
dbapi.register_adapter(type(None), lambda nothing: nothing)
for _words in (Lane, Kind, Urgency, Guarantee, NotificationStatus, DeliveryStatus, FailureClass, ClaimKind):
    dbapi.register_adapter(_words, str.__str__)

__all__ = [
    "SAFE_WITH_MANY_WORKERS",
    "SqliteConnection",
    "connect",
    "database_path",
    "dbapi",
    "refuse_root",
    "run_directory",
]

DIALECT = Dialect(
    row_key="seq",
    locked="",
    snapshot="BEGIN",
    texts="SELECT value FROM json_each(?)",
    devices_of_users=(
        "(SELECT key AS place, value ->> 0 AS app, value ->> 1 AS user_id FROM json_each(?)) AS asked"
        " CROSS JOIN device ON device.app = asked.app AND device.user_id = asked.user_id"
    ),
    next_numbers="UPDATE sequence SET value = value + ? WHERE name = 'notification' RETURNING value",
    numbers_a_block=0,
    blob="BLOB",
    has_jsonb=False,
    cuts_history=True,
    has_other_writers=False,
)
_EVER = (1 << 63) - 1
_LIST_SIZES = (1, 8, 64, 512)
_ROWS_AT_ONCE = (256, 64, 16, 4)
"""The rows of one statement: a row then costs a third less than in a statement of its own."""
_NUMBERED_BINDS_FAST = dbapi.__name__.startswith("pysqlite3") or sys.version_info < (3, 12)
"""Whether places may have numbers: later the standard library looks each one up among all of them."""


class SqliteConnection(dbapi.Connection):  # type: ignore[misc]  # one of two modules
    """A connection with the few words that are SQLite's own (fulfils engine.Connection).

    The library plans by the value of a bound LIMIT, and so compiles such a statement anew each time, for longer than
    most of them run: what is asked all the time says ``LIMIT 0 + ?``, by whose value it does not plan.
    """

    dialect = DIALECT

    def lists(self, sql: str, keys: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
        """See Connection: lists of four sizes, filled up with their last key, so that few statements serve all."""
        for chunk in _chunks(keys):
            yield sql.format(keys=",".join("?" * len(chunk))), chunk

    def ask(self, sql: str, keys: Sequence[Any]) -> Answer:
        """See Connection: it is here at once."""
        rows = [row for said, chunk in self.lists(sql, keys) for row in self.execute(said, chunk).fetchall()]
        return lambda: rows

    def ask_in(self, tables: Sequence[str], columns: str, keys: Sequence[bytes]) -> Answer:
        """See Connection: the keys are rows to join with, bound once; a list in IN is sorted anew for each table."""
        rows: list[Row] = []
        each = " UNION ALL ".join(
            f"SELECT {columns.format(table=table)} FROM asked CROSS JOIN {table} ON {table}.key = asked.its"  # noqa: S608 - names of ours
            for table in tables
        )
        for chunk in _chunks(keys if tables else ()):
            asked = ",".join(["(?)"] * len(chunk))
            rows += self.execute(f"WITH asked (its) AS MATERIALIZED (VALUES {asked}) {each}", chunk).fetchall()
        return lambda: rows

    def insert_all(self, insert: str, values: str, rows: Sequence[Row], alike: tuple[int, ...] = ()) -> None:
        """See Connection: what is alike is bound once for a statement."""
        start = 0
        for count in _ROWS_AT_ONCE:
            while len(rows) - start >= count:
                self.execute(*_insertion(insert, values, rows[start : start + count], alike))
                start += count
        if start < len(rows):
            self.executemany(insert + values, rows[start:])

    def update_all(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Row]) -> None:
        """See Connection."""
        if rows:
            which = " AND ".join(f"{name} = ?" for name in key)
            change = ", ".join(f"{name} = ?" for name in columns)
            self.executemany(f"UPDATE {table} SET {change} WHERE {which}", rows)  # noqa: S608 - names of ours

    def whole_before(self) -> int:
        """See Connection: rows come in the order of their positions."""
        return _EVER

    def counter_part(self, now: Instant) -> int:
        """See Connection: a row for each hour."""
        return now // HOUR_MS

    def commit_so_far(self) -> None:
        """See Connection: nobody else writes."""

    def claim_all(self, table: str, columns: str, rows: Sequence[Row], now: Instant) -> None:
        """See Connection: nobody else writes meanwhile."""
        marks = ", ".join("?" * len(rows[0]))
        self.insert_all(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ", f"({marks})", rows)  # noqa: S608 - names of ours


def _insertion(insert: str, values: str, rows: Sequence[Row], alike: tuple[int, ...]) -> tuple[str, list[Any]]:
    """Return the statement that inserts all of *rows*, and what it binds."""
    columns = list(zip(*rows, strict=True)) if alike and _NUMBERED_BINDS_FAST else []
    if not columns or any(columns[n].count(columns[n][0]) < len(rows) for n in alike):
        return _statement(insert, values, len(rows), ()), list(chain.from_iterable(rows))
    others = [column for n, column in enumerate(columns) if n not in alike]
    bound = [columns[n][0] for n in alike]
    bound += chain.from_iterable(zip(*others, strict=True))
    return _statement(insert, values, len(rows), alike), bound


@lru_cache(maxsize=128)
def _statement(insert: str, values: str, count: int, alike: tuple[int, ...]) -> str:
    """Write the statement for *count* rows; the places that are *alike* come first in what it binds, once."""
    if not alike:
        return insert + ",".join([values] * count)
    first, *parts = values.split("?")
    numbers = itertools.count(len(alike) + 1)
    each = [
        first + "".join(f"?{alike.index(n) + 1 if n in alike else next(numbers)}{part}" for n, part in enumerate(parts))
        for _ in range(count)
    ]
    return insert + ",".join(each)


def _chunks(keys: Sequence[Any]) -> Iterator[list[Any]]:
    """Split *keys* into lists of few sizes, each filled up with its last key."""
    for start in range(0, len(keys), _LIST_SIZES[-1]):
        chunk = list(keys[start : start + _LIST_SIZES[-1]])
        size = next(size for size in _LIST_SIZES if len(chunk) <= size)
        yield chunk + [chunk[-1]] * (size - len(chunk))


SAFE_WITH_MANY_WORKERS: bool = dbapi.sqlite_version_info >= (3, 51, 3)
"""Whether this library may serve more than one process."""

_FILE = re.compile(r"sqlite:///([^?]+)")

_WRITER_CACHE_KIB = 16 * 1024
"""The pages that the largest commit changes fit: beyond it they are written before the commit, and then again."""
_READER_CACHE_KIB = 2 * 1024
"""A connection forgets all pages once another has committed: more would be filled anew each time."""
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA mmap_size = 0",
    "PRAGMA secure_delete = ON",  # what is deleted is overwritten (decision 0060)
)


def database_path(url: str) -> Path:
    """Return the file that *url* names; ConfigurationError where it names no SQLite file."""
    named = _FILE.fullmatch(url)
    if named is None or named[1] == ":memory:":
        raise ConfigurationError("store", "must be sqlite:///<path of a file> or postgresql://<user>@<host>/<database>")
    return Path(named[1]).resolve()


def run_directory(database: Path) -> Path:
    """Return the folder beside the database that holds locks and the reserve; made if it is not there.

    ConfigurationError where it cannot be: the database's own folder is missing, or is not ours to write.
    """
    refuse_root(database)
    return made_folder(database.with_name(database.name + ".run"))


def refuse_root(database: Path) -> None:
    """Refuse root where the store is another user's (ConfigurationError): they could not open what root makes there.

    A store that there is belongs to who has its file, one that is yet to be made to who has its folder.
    """
    if os.geteuid() != 0:
        return
    kept = database if database.exists() else database.parent
    if kept.exists() and (owner := kept.stat().st_uid) != 0:
        raise ConfigurationError("store", f"{kept} belongs to {_name_of(owner)}, not to root: run this as that user")


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the user {user}"


def made_folder(folder: Path, setting: str = "store") -> Path:
    """Return *folder*, made if it is not there; ConfigurationError, which names *setting*, where it cannot be."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as refused:
        raise ConfigurationError(setting, f"cannot write into {folder.parent}: {refused.strerror}") from refused
    return folder


def check_folder(folder: Path, setting: str = "store") -> None:
    """Refuse what ``made_folder`` would refuse, with the same ConfigurationError, and make nothing."""
    there = folder if folder.exists() else folder.parent
    if not there.is_dir():
        why = os.strerror(errno.ENOTDIR if there.exists() else errno.ENOENT)
    elif not os.access(there, os.W_OK | os.X_OK):
        why = os.strerror(errno.EACCES)
    else:
        return
    raise ConfigurationError(setting, f"cannot write into {there}: {why}")


def connect_to_look(database: Path) -> SqliteConnection:
    """Open a connection that makes and changes no file.

    A file that nobody has open is read as it is: a log beside it could not be read without making an index for it
    (sqlite.org, "Write-Ahead Logging", "Read-Only Databases").
    """
    is_open = database.with_name(database.name + "-shm").exists()
    how = "mode=ro" if is_open else "mode=ro&immutable=1"
    connection: SqliteConnection = dbapi.connect(
        f"{database.as_uri()}?{how}", uri=True, check_same_thread=False, factory=SqliteConnection
    )
    return connection


def connect(database: Path, *, busy_timeout_s: float = 0.05, read_only: bool = False) -> SqliteConnection:
    """Open a connection without implicit transactions; usable by one thread at a time, not bound to one."""
    connection: SqliteConnection = dbapi.connect(
        str(database),
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=SqliteConnection,
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB if read_only else _WRITER_CACHE_KIB}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection

"""Copies of a SQLite store: made while it is in use, looked at, and put in its place."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from waypost.domain.errors import ConfigurationError, StorageBroken
from waypost.domain.notification import Guarantee
from waypost.domain.time import Instant
from waypost.stores.sql.connection import (
    SqliteConnection,
    connect,
    connect_to_look,
    database_path,
    dbapi,
    run_directory,
)
from waypost.stores.sql.erased_again import carry_over, orders_in
from waypost.stores.sql.migrations import NOTED_IN
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.write_lock import WriteLock

Progress = Callable[[int, int], None]
"""Told how many pages of how many are copied."""

PAGES = 4_096
_PATIENCE_S = 30.0
_OPEN = "SELECT count(*) FROM notification WHERE finished_at IS NULL"
_HELD = ("notification", "device", "api_key", "bulk_job", "opt_out", "audit")
"""Tables of which one has a row wherever somebody has used the store."""
_END_WHAT_MAY_BE_SENT = (
    "UPDATE notification SET expires_at = min(expires_at, ?1)"
    " WHERE finished_at IS NULL AND guarantee = ?2 AND coalesce(scheduled_at, 0) <= ?1"
)


class Inside(Struct, frozen=True):
    """The content of a copy that was found sound."""

    revision: str
    open: int
    """Notifications that are not finished."""
    bytes: int


class Restored(Struct, frozen=True):
    """The content of the store after a copy was put in its place."""

    inside: Inside
    ended: int
    """Open ``at_most_once`` notifications that end `expired`, since they may have been sent after the copy was made."""
    erased_again: int | None
    """Users who were erased after the copy was made, and are again; None where nobody knows who they are."""


def back_up(settings: SqlSettings, file: Path, on_progress: Progress) -> Inside:
    """Copy the store as it is at one moment into *file*, readable for its user alone; nobody waits for it.

    What was committed is in it, also what is still in the log beside the database. StorageBroken where it is damaged.
    """
    database = _existing(settings)
    with _in_place_of(file) as copy, contextlib.closing(connect(database, read_only=True)) as source:
        _copy(source, copy, on_progress)
        return look_into(copy)


def restore(settings: SqlSettings, file: Path, now: Instant, on_progress: Progress, *, force: bool) -> Restored:
    """Put the copy *file* in the place of the store, which nobody may serve meanwhile.

    StorageBroken where it is no sound copy, or of a newer version; ConfigurationError where the store is not empty,
    unless *force*. Erasures that the store knows and the copy does not are carried over.
    """
    database = database_path(settings.url)
    _refuse_log(file)
    look_into(file)
    lock = WriteLock(run_directory(database))
    try:
        with lock.hold(_PATIENCE_S):
            is_used = _is_used(database)
            if not force and is_used:
                raise ConfigurationError("store", f"{database} is not empty: --force replaces it")
            orders = orders_in(database) if is_used else None
            with _in_place_of(database) as copy:
                with contextlib.closing(connect_to_look(file)) as source:
                    _copy(source, copy, on_progress)
                ended = _end_what_may_be_sent(copy, now)
                erased = None if orders is None else carry_over(orders, copy)
                inside = look_into(copy)
                _end_log(database)
            return Restored(inside, ended, erased)
    finally:
        lock.close()


def look_into(file: Path) -> Inside:
    """Check a copy from end to end, and that this version can open it; StorageBroken says what is wrong."""
    from waypost.stores.sql.migrate import check_revision, engine_to_look  # noqa: PLC0415 - a third of a start

    try:
        with contextlib.closing(connect_to_look(file)) as connection:
            ((found, *_), *_) = connection.execute("PRAGMA integrity_check(1)").fetchall()
            if found != "ok":
                raise StorageBroken(f"{file} is damaged: {found.splitlines()[-1]}")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (NOTED_IN,)).fetchall():
                raise StorageBroken(f"{file} is no database of Waypost")
            check_revision(engine_to_look(file))
            ((revision,),) = connection.execute(f"SELECT version_num FROM {NOTED_IN}").fetchall()  # noqa: S608 - ours
            ((still_open,),) = connection.execute(_OPEN).fetchall()
    except dbapi.Error as error:
        raise StorageBroken(f"{file} is no sound database: {error}") from error
    return Inside(str(revision), still_open, file.stat().st_size)


def _existing(settings: SqlSettings) -> Path:
    database = database_path(settings.url)
    if not database.exists():
        raise ConfigurationError("store", f"there is no {database}")
    return database


@contextmanager
def _in_place_of(file: Path) -> Iterator[Path]:
    """Yield a new file for its user alone, which takes the place of *file* at once if all goes well."""
    copy = file.with_name(f".{file.name}.{os.getpid()}")
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        yield copy
        os.replace(copy, file)
    except BaseException:
        copy.unlink()
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy(source: SqliteConnection, file: Path, on_progress: Progress) -> None:
    """Copy all that *source* sees at one moment; the copy is one file, without a log.

    A read that is open keeps that moment, whoever commits meanwhile: without it, each commit would begin the copy anew
    (sqlite.org, "Online Backup API").
    """
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_master").fetchall()
    with contextlib.closing(dbapi.connect(str(file))) as target:
        source.backup(target, pages=PAGES, progress=lambda _, left, all_: on_progress(all_ - left, all_))
        target.execute("PRAGMA journal_mode = DELETE").fetchall()
    source.execute("ROLLBACK")


def _refuse_log(file: Path) -> None:
    log = file.with_name(file.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StorageBroken(
            f"{file} is a database with a log beside it, and no backup: `waypost backup` makes one of it"
        )


def _is_used(database: Path) -> bool:
    """Tell whether there is anything to lose; what cannot be read counts as such."""
    if not database.exists() or not database.stat().st_size:
        return False
    try:
        with contextlib.closing(connect(database, read_only=True)) as connection:
            named = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
            asked = [f"SELECT 1 FROM {table} LIMIT 1" for table in _HELD if table in named]  # noqa: S608 - our names
            return any(connection.execute(sql).fetchall() for sql in asked)
    except dbapi.Error:
        return True


def _end_what_may_be_sent(copy: Path, now: Instant) -> int:
    with contextlib.closing(dbapi.connect(str(copy), isolation_level=None)) as connection:
        cursor = connection.execute(_END_WHAT_MAY_BE_SENT, (now, str(Guarantee.AT_MOST_ONCE)))
        return int(cursor.rowcount)


def _end_log(database: Path) -> None:
    """Bring what is in the log into the database that is replaced, and take it away: it belongs to no other.

    Whatever ends this before the copy is in its place leaves the old one whole.
    """
    if database.exists():
        with contextlib.suppress(dbapi.Error), contextlib.closing(connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)

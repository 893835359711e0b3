"""SQLite as the engine: a file, Waypost's own lock around each write, and room kept on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial

from waypost.domain.errors import ConfigurationError, StorageBroken
from waypost.domain.time import Instant
from waypost.ports.peers import Peers
from waypost.stores.sql.added import AddedTable, make_missing
from waypost.stores.sql.checkpoint import Ahead, Checkpoint
from waypost.stores.sql.checkup import Checkup, check_up_file
from waypost.stores.sql.connection import (
    SAFE_WITH_MANY_WORKERS,
    SqliteConnection,
    connect,
    connect_to_look,
    database_path,
    dbapi,
    run_directory,
)
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.engine import Busy, Joined, Months
from waypost.stores.sql.faults import StoreFault, fault_of, refusal
from waypost.stores.sql.lease import FreshTail
from waypost.stores.sql.migrations import NOTED_IN, latest
from waypost.stores.sql.ownership import Shards
from waypost.stores.sql.reserve import Reserve
from waypost.stores.sql.settings import Durability, SqlSettings
from waypost.stores.sql.write_lock import LockTimeout, WriteLock

_MIGRATION_PATIENCE_S = 30.0
_NAME = f"SQLite {dbapi.sqlite_version}"
_SWITCH_HURRIED_S = 0.000_05
"""Seconds for which another thread keeps the interpreter from whoever writes, while somebody is hurried."""
_SHORTENED = threading.Lock()
"""The lock of the one writer that has shortened them: they are the whole interpreter's."""


class SqliteWriter:
    """The connection that writes (fulfils engine.Writer)."""

    def __init__(self, settings: SqlSettings, reserve: Reserve) -> None:
        path = database_path(settings.url)
        self.connection: SqliteConnection = connect(path, busy_timeout_s=settings.lock_timeout_s)
        self.lock = WriteLock(run_directory(path))
        self._reserve = reserve
        self._ahead = Ahead(partial(connect, path)) if SAFE_WITH_MANY_WORKERS else None
        self._checkpoint = Checkpoint(self.connection, settings.checkpoint_bytes, self._ahead)
        self._survives_power = settings.durability is Durability.POWER
        self._synchronous: str | None = None

    @contextmanager
    def turn(self, patience_s: float, *, urgent: Callable[[], bool] | None = None) -> Iterator[None]:
        """See Writer: the write lock; whoever holds it sees to the log."""
        try:
            with self.lock.hold(patience_s, urgent=urgent), _interpreter_soon(hurried=self.is_hurried()):
                yield
                self._checkpoint.run_if_due(hurried=self.is_hurried(), urgent=self.lock.was_urgent())
        except LockTimeout:
            raise Busy from None

    def is_hurried(self) -> bool:
        """See Writer."""
        return self.lock.is_hurried()

    def begin(self, *, durable: bool, ordered: bool, pipelined: bool = False) -> None:
        """See Writer; under the write lock every transaction is alone, and there are no round trips."""
        wanted = "FULL" if durable and self._survives_power else "NORMAL"
        if wanted != self._synchronous:
            self.connection.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """See Writer."""
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        """See Writer."""
        if self.connection.in_transaction:
            with contextlib.suppress(Exception):  # the first error is the one to tell
                self.connection.execute("ROLLBACK")

    def was_committed(self, batch: int) -> bool:
        """Refuse: nothing is ever in doubt, since the log is a file."""
        raise NotImplementedError(batch)

    def is_well(self) -> bool:
        """See Writer."""
        return self._reserve.keep()

    def use_reserve(self) -> None:
        """See Writer."""
        self._reserve.drop()

    def fault_of(self, error: BaseException) -> StoreFault:
        """See Writer; SQLite does not always say that the disk was full."""
        fault = fault_of(error)
        return StoreFault.FULL if fault is StoreFault.AWAY and self._reserve.is_disk_full() else fault

    def close(self) -> None:
        """See Writer."""
        if self._ahead is not None:
            self._ahead.close()
        self.connection.close()
        self.lock.close()


@contextmanager
def _interpreter_soon(*, hurried: bool) -> Iterator[None]:
    """While somebody is *hurried*, let this thread have the interpreter back soon after each statement gave it away."""
    if not (hurried and _SHORTENED.acquire(blocking=False)):
        yield
        return
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_HURRIED_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)
        _SHORTENED.release()


class DataVersion(int):
    """The number that SQLite changes with each commit of another connection (fulfils engine.Mark)."""

    __slots__ = ()

    def has_news(self, before: int) -> bool:
        """See Mark."""
        return self != before


class SqliteEngine:
    """A store in one SQLite file (fulfils engine.Engine)."""

    is_remote = False

    def __init__(self, settings: SqlSettings) -> None:
        self._settings = settings
        self.path = database_path(settings.url)

    @cached_property
    def _reserve(self) -> Reserve:
        """The room kept on the disk; its folder is made when something is to be written."""
        settings = self._settings
        return Reserve(run_directory(self.path), settings.reserve_bytes, settings.checkpoint_bytes)

    def refuse_workers(self, workers: int) -> None:
        """See Engine."""
        if workers > 1 and not SAFE_WITH_MANY_WORKERS:
            raise ConfigurationError("workers", f"{_NAME} can corrupt a log that several processes share; set it to 1")

    def look(self) -> str:
        """See Engine."""
        if not self.path.exists():
            return _NAME
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise ConfigurationError("store", f"cannot write {self.path}: {os.strerror(errno.EACCES)}")
        try:
            with contextlib.closing(connect_to_look(self.path)) as connection:
                found = _revision(connection)
            if found != latest():
                from waypost.stores.sql.migrate import check_revision, engine_to_look  # noqa: PLC0415 - as in _migrate

                check_revision(engine_to_look(self.path))
        except Exception as error:
            raise self._refusal_of(error) from error
        return _NAME

    def check_up(self, tables: Sequence[AddedTable] = ()) -> Checkup | None:
        """See Engine."""
        try:
            return check_up_file(self.path, tables)
        except Exception as error:
            raise self._refusal_of(error) from error

    def prepare(self, now: Instant, tables: Sequence[AddedTable] = ()) -> tuple[str | None, str]:
        """See Engine; under the write lock.

        A full disk gives up its reserve, so that the store opens and can finish what was accepted. StorageBroken where
        the file is no sound database or was made by a newer version.
        """
        try:
            return self._prepare(tables)
        except StorageBroken as broken:
            if not self._reserve.is_disk_full():
                raise
            self._reserve.drop()
            if self._reserve.is_disk_full():
                raise refusal(StoreFault.FULL) from broken
        return self._prepare(tables)

    def _prepare(self, tables: Sequence[AddedTable]) -> tuple[str | None, str]:
        lock = WriteLock(run_directory(self.path))
        try:
            with lock.hold(_MIGRATION_PATIENCE_S):
                made = self._migrate()
                self._make(tables)
                return made
        except LockTimeout as timeout:
            raise refusal(StoreFault.BUSY) from timeout
        except Exception as error:
            raise self._refusal_of(error) from error
        finally:
            lock.close()

    def _refusal_of(self, error: Exception) -> Exception:
        """Convert what a migration raised; return it as it is where it says nothing of the store."""
        fault = fault_of(getattr(error, "orig", None) or error)
        return error if fault is StoreFault.OPERATION else refusal(fault)

    def keep_up(self, now: Instant, before: Instant) -> Months:
        """Do nothing: nothing is made ahead, nothing lies apart."""
        return Months()

    def by_pages(self, before: Instant) -> Instant:
        """See Engine: all of it."""
        return before

    def _migrate(self) -> tuple[str | None, str]:
        with contextlib.closing(connect(self.path)) as connection:
            found = _revision(connection)
        if found == latest():
            return found, found
        from waypost.stores.sql.migrate import migrate, sqlite_engine  # noqa: PLC0415 - a third of a process's start

        return migrate(sqlite_engine(self.path))

    def _make(self, tables: Sequence[AddedTable]) -> None:
        if not tables:
            return
        with contextlib.closing(connect(self.path)) as connection:
            named = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
            make_missing(tables, named.__contains__, connection.execute, is_remote=False)

    def open_writer(self) -> SqliteWriter:
        """See Engine."""
        return SqliteWriter(self._settings, self._reserve)

    def tail(self) -> FreshTail:
        """See Engine."""
        return FreshTail()

    def mark(self, connection: Connection) -> DataVersion:
        """See Engine."""
        return DataVersion(connection.execute("PRAGMA data_version").fetchone()[0])

    def open_reader(self) -> SqliteConnection:
        """See Engine."""
        return connect(self.path, read_only=True)

    def fault_of(self, error: BaseException) -> StoreFault:
        """See Engine."""
        return fault_of(error)

    async def join(self, peers: Peers | None, report: Callable[[StoreFault], None]) -> Joined:
        """See Engine; everybody is on this machine, and a lock is lost with its process alone."""
        return Joined(Shards(run_directory(self.path)), peers, lambda _: None)


def _revision(connection: SqliteConnection) -> str | None:
    """Read what Alembic noted in the database; None for a new one."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (NOTED_IN,)).fetchall():
        return None
    ((revision,),) = connection.execute(f"SELECT version_num FROM {NOTED_IN}").fetchall()  # noqa: S608 - ours
    return str(revision)

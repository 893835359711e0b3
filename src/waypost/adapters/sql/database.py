"""The database of one process: its writer, its readers and its folder of locks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from waypost.adapters.sql.connection import connect, database_path, run_directory
from waypost.adapters.sql.faults import Fault, fault_of, refusal
from waypost.adapters.sql.group_commit import GroupCommit
from waypost.adapters.sql.migrate import migrate
from waypost.adapters.sql.reserve import Reserve
from waypost.adapters.sql.settings import SqlSettings
from waypost.adapters.sql.state import StoreState
from waypost.adapters.sql.write_lock import LockTimeout, WriteLock
from waypost.domain.errors import StorageBroken
from waypost.ports.clock import Clock
from waypost.telemetry.sink import Telemetry

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")

_READERS = 2
_MIGRATION_PATIENCE_S = 30.0


class Database:
    """Writes go through ``commits``; reads through ``read``, each one statement or a page of a walk."""

    def __init__(self, settings: SqlSettings, *, clock: Clock, telemetry: Telemetry) -> None:
        self.settings = settings
        self.path: Path = database_path(settings.url)
        self.run_dir: Path = run_directory(self.path)
        self._lock = WriteLock(self.run_dir)
        self._writer = connect(self.path, busy_timeout_s=settings.lock_timeout_s)
        self.loop_reader: Connection = connect(self.path, read_only=True)
        """For reads on the event loop that are proven short."""
        reserve = reserve_of(settings)
        self.commits = GroupCommit(self._writer, self._lock, reserve, settings, clock=clock, telemetry=telemetry)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="waypost-reader")
        self._router = ThreadPoolExecutor(1, thread_name_prefix="waypost-router")
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._closed = False

    @property
    def state(self) -> StoreState:
        """What the store can do."""
        return self.commits.state

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run *query* in a reader thread; it must leave no cursor open."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, query)

    async def read_to_route(self, query: Callable[[Connection], T]) -> T:
        """Run *query* in the thread that reads for deliveries alone: nobody's search makes them wait."""
        return await asyncio.get_running_loop().run_in_executor(self._router, self._read, query)

    def read_here(self, query: Callable[[Connection], T]) -> T:
        """Run *query* on the event loop: for reads that are proven short."""
        return self._guarded(query, self.loop_reader)

    def _read(self, query: Callable[[Connection], T]) -> T:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self.path, read_only=True)
            self._opened.append(connection)
        return self._guarded(query, connection)

    def _guarded(self, query: Callable[[Connection], T], connection: Connection) -> T:
        """Turn what the disk raises into the error tree."""
        try:
            return query(connection)
        except Exception as error:
            fault = fault_of(error)
            if fault is Fault.OPERATION:
                raise
            if fault is Fault.BROKEN:
                self.commits.report_broken()
            raise refusal(fault) from error

    async def close(self) -> None:
        """Write what is queued and close every connection; once more is harmless."""
        if self._closed:
            return
        self._closed = True
        await self.commits.stop()
        await asyncio.to_thread(self._readers.shutdown)
        await asyncio.to_thread(self._router.shutdown)
        for connection in (*self._opened, self.loop_reader, self._writer):
            connection.close()
        self._lock.close()


def prepare(settings: SqlSettings) -> tuple[str | None, str]:
    """Make the database have today's schema, and name the revisions before and after; blocking, under the write lock.

    A full disk gives up its reserve, so that the store opens and can finish what was accepted. StorageBroken where the
    file is no sound database or was made by a newer version.
    """
    reserve = reserve_of(settings)
    try:
        return _prepare(settings)
    except StorageBroken as broken:
        if not reserve.is_disk_full():
            raise
        reserve.drop()
        if reserve.is_disk_full():
            raise refusal(Fault.FULL) from broken
    return _prepare(settings)


def reserve_of(settings: SqlSettings) -> Reserve:
    """The reserve of the store that *settings* name."""
    run_dir = run_directory(database_path(settings.url))
    return Reserve(run_dir, settings.reserve_bytes, settings.checkpoint_bytes)


def _prepare(settings: SqlSettings) -> tuple[str | None, str]:
    path = database_path(settings.url)
    lock = WriteLock(run_directory(path))
    try:
        with lock.hold(_MIGRATION_PATIENCE_S):
            return migrate(path)
    except LockTimeout as timeout:
        raise refusal(Fault.BUSY) from timeout
    except Exception as error:
        fault = fault_of(getattr(error, "orig", None) or error)
        if fault is Fault.OPERATION:
            raise
        raise refusal(fault) from error
    finally:
        lock.close()

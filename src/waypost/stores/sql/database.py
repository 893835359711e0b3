"""The database of one process: its writer and its readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.changes import StoreChanges
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.engine import Engine, Mark
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.faults import StoreFault, refusal
from waypost.stores.sql.group_commit import GroupCommit
from waypost.stores.sql.read_pool import ReadPool, name_of
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.state import StoreState
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Telemetry

T = TypeVar("T")

_READERS = 2
_QUICK_S = 0.01
"""The longest that a look-up may take on the event loop: beyond it, its pages are on a disk."""
_THREADED_S = 1.0
"""Seconds for which look-ups go to a thread after one that took longer."""


class Database:
    """The database: writes go through ``commits``; reads through ``read``, each one statement or a page of a walk."""

    _threaded_until_s = 0.0
    """The time until which look-ups go to a thread."""

    def __init__(
        self,
        engine: Engine,
        settings: SqlSettings,
        *,
        clock: Clock,
        telemetry: Telemetry,
        looks_every_s: float = 0.0,
    ) -> None:
        """Open it; where a look for what others wrote is a round trip, there is one in *looks_every_s* at most."""
        self.engine = engine
        self.settings = settings
        self.telemetry = telemetry
        self._writer = engine.open_writer()
        self.loop_reader: Connection | None = None if engine.is_remote else engine.open_reader()
        """The reader on the event loop, for reads proven short, where a read is no round trip."""
        self.clock = clock
        self.commits = GroupCommit(self._writer, settings, clock=clock, telemetry=telemetry)
        self.changes = StoreChanges(self._mark, looks_every_s if engine.is_remote else 0.0)
        self.commits.on_commit = self.changes.note
        self.commits.on_state_change(self.changes.store_changed)
        self._readers = ReadPool("reader", _READERS, self._read, telemetry)
        self._router = ReadPool("router", 1, self._read, telemetry)
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._closed = False

    @property
    def state(self) -> StoreState:
        """The state of the store: what it can do."""
        return self.commits.state

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run *query* in a reader thread; it must leave no cursor open."""
        return await self._readers.run(query)

    async def read_to_route(self, query: Callable[[Connection], T]) -> T:
        """Run *query* in the thread that reads for deliveries alone: nobody's search makes them wait."""
        return await self._router.run(query)

    async def look_up(self, query: Callable[[Connection], T]) -> T:
        """Run *query*, a few rows by their keys, on the event loop, or as ``read_to_route`` while that is not quick.

        A thread costs more than a quick look-up, which would have it wait for the interpreter anyway. Once one takes
        long, as on a disk, the next go to the thread, for a second after the last that took long there.
        """
        is_here = self.loop_reader is not None and time.monotonic() >= self._threaded_until_s
        found, seconds = self._read_here(query) if is_here else await self._router.timed(query)
        if seconds > _QUICK_S:
            self._threaded_until_s = time.monotonic() + _THREADED_S
        return found

    async def read_to_lease(self, query: Callable[[Connection], T]) -> T:
        """Run *query* on the event loop, without a pause, or in a thread where that would be a round trip.

        What is leased or let go of may change during such a pause: ``Holdings.watching`` tells.
        """
        if self.loop_reader is None:
            return await self.read_to_route(query)
        found, _ = self._read_here(query)
        return found

    def _read_here(self, query: Callable[[Connection], T]) -> tuple[T, float]:
        """Run *query* on the event loop; return what it found and the seconds that it took."""
        assert self.loop_reader is not None
        started_s = time.monotonic()
        try:
            found = query(self.loop_reader)
        except Exception as error:
            raise self._refusal_of(error) from error
        seconds = time.monotonic() - started_s
        self.telemetry.observe(Metric.STORE_SECONDS, seconds, query=name_of(query))
        return found, seconds

    async def _mark(self) -> Mark:
        if self.loop_reader is None:
            return await self.read_to_route(self.engine.mark)
        try:  # not measured as a query: that would cost more than it does
            return self.engine.mark(self.loop_reader)
        except Exception as error:
            raise self._refusal_of(error) from error

    def measure(self) -> None:
        """Tell how busy the connections are that read."""
        self._readers.measure()
        self._router.measure()

    def _read(self, query: Callable[[Connection], T]) -> T:
        if self.state is StoreState.AWAY:
            raise refusal(StoreFault.LOST)
        try:
            return query(self._connection())
        except Exception as error:
            if self.engine.fault_of(error) is not StoreFault.LOST:
                raise self._refusal_of(error) from error
            self._forget_connection()
        try:  # the server may have been started again since the last read: a read can be repeated
            return query(self._connection())
        except Exception as error:
            self._forget_connection()
            raise self._refusal_of(error) from error

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.engine.open_reader()
            self._opened.append(connection)
        return connection

    def _forget_connection(self) -> None:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            self._opened.remove(connection)
            connection.close()

    def _refusal_of(self, error: Exception) -> Exception:
        """Convert an error to the error tree; return it as it is where it says nothing of the store."""
        fault = self.engine.fault_of(error)
        if fault is StoreFault.OPERATION:
            return error
        self.commits.report(fault)
        return refusal(fault)

    async def close(self) -> None:
        """Write what is queued and close every connection; once more is harmless."""
        if self._closed:
            return
        self._closed = True
        await self.commits.stop()
        await self._readers.close()
        await self._router.close()
        for connection in self._opened:
            connection.close()
        if self.loop_reader is not None:
            self.loop_reader.close()
        self._writer.close()


def prepare(settings: SqlSettings, now: Instant, tables: Sequence[AddedTable] = ()) -> tuple[str | None, str]:
    """Make the database have today's schema and *tables*, and name the revisions before and after; blocking.

    StorageBroken where it is no sound database or was made by a newer version.
    """
    return engine_of(settings).prepare(now, tables)

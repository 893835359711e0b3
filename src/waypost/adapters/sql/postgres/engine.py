"""PostgreSQL as the engine: one database, any number of machines."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
from psycopg import sql
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from waypost.adapters.sql.engine import Joined
from waypost.adapters.sql.faults import Fault, refusal
from waypost.adapters.sql.migrate import migrate
from waypost.adapters.sql.postgres import partitions
from waypost.adapters.sql.postgres.connection import CONNECT_TIMEOUT_S, PostgresConnection, connect, fault_of
from waypost.adapters.sql.postgres.membership import Membership
from waypost.adapters.sql.postgres.months import drop_months
from waypost.adapters.sql.postgres.peers import NotifyPeers
from waypost.adapters.sql.postgres.tail import ArrivalTail
from waypost.adapters.sql.postgres.writer import PostgresWriter
from waypost.adapters.sql.settings import SqlSettings
from waypost.domain.time import Instant
from waypost.ports.peers import Peers

MIGRATION_LOCK = 0x5759_7002
"""The advisory lock of whoever changes the schema."""
MIGRATION_LOCK_TIMEOUT_MS = 1_000
MIGRATION_PATIENCE_S = 30.0
_TURN = sql.SQL("SELECT pg_try_advisory_lock({})").format(MIGRATION_LOCK)
_AGAIN_S = 0.1


class PostgresEngine:
    """See engine.Engine."""

    is_remote = True

    def __init__(self, settings: SqlSettings) -> None:
        self._settings = settings
        self._to_prepare: Instant | None = None
        """When it should have been prepared, but was away."""

    def prepare(self, now: Instant) -> tuple[str | None, str]:
        """See Engine; of several processes that start together one changes the schema and the others wait."""
        self._to_prepare = now
        try:
            return self._prepare(now)
        except Exception as error:
            fault = fault_of(getattr(error, "orig", None) or error)
            if fault is Fault.OPERATION:
                raise
            raise refusal(fault) from error

    def version(self) -> str:
        """The server's, such as 15.18; Unavailable where it does not answer."""
        try:
            with psycopg.connect(self._settings.url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
                return connection.info.parameter_status("server_version") or "of unknown version"
        except psycopg.Error as error:
            raise refusal(fault_of(error)) from error

    def keep_up(self, now: Instant, before: Instant) -> None:
        """See Engine: months ahead, and months that are over."""
        try:
            with psycopg.connect(self._settings.url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
                partitions.ensure(connection, now)
                drop_months(connection, before)
        except psycopg.Error as error:
            raise refusal(fault_of(error)) from error

    def by_pages(self, before: Instant) -> Instant:
        """See Engine: of the month that is under way nothing goes yet."""
        return partitions.month_of(before)

    def open_writer(self) -> PostgresWriter:
        """See Engine."""
        return PostgresWriter(self._settings, self._catch_up)

    def tail(self) -> ArrivalTail:
        """See Engine."""
        return ArrivalTail()

    def open_reader(self) -> PostgresConnection:
        """See Engine."""
        return connect(self._settings.url, read_only=True)

    def fault_of(self, error: BaseException) -> Fault:
        """See Engine."""
        return fault_of(error)

    async def join(self, peers: Peers | None, report: Callable[[Fault], None]) -> Joined:
        """See Engine."""
        membership = Membership(self._settings.url, report)
        notifying = NotifyPeers(self._settings.url, peers, report)
        await notifying.start()
        membership.on_close = notifying.stop
        return Joined(membership, notifying, membership.fence, membership.member)

    def _catch_up(self) -> None:
        """Nothing is written before the schema is today's, also where the server was away at the start."""
        if self._to_prepare is not None:
            self._prepare(self._to_prepare)

    def _prepare(self, now: Instant) -> tuple[str | None, str]:
        with psycopg.connect(self._settings.url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
            _wait_for_turn(connection)
            made = migrate(create_engine("postgresql+psycopg://", creator=self._connect, poolclass=NullPool))
            partitions.ensure(connection, now)
        self._to_prepare = None
        return made

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """For migrations, which wait for no lock for long: whoever comes after them waits for it, too."""
        return psycopg.connect(
            self._settings.url,
            connect_timeout=CONNECT_TIMEOUT_S,
            options=f"-c lock_timeout={MIGRATION_LOCK_TIMEOUT_MS}",
        )


def _wait_for_turn(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Get the lock of migrations, asking again and again.

    A statement that waits for it would be a transaction that is open, and an index that is made concurrently waits for
    all of those (PostgreSQL, CREATE INDEX, "Building Indexes Concurrently").
    """
    until_s = time.monotonic() + MIGRATION_PATIENCE_S
    while connection.execute(_TURN).fetchone() != (True,):
        if time.monotonic() >= until_s:
            raise psycopg.errors.LockNotAvailable("another process changes the schema")
        time.sleep(_AGAIN_S)  # nothing tells when the lock is free but a statement that waits for it

"""PostgreSQL as the engine: one database, any number of machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import psycopg
from psycopg import sql
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from waypost.domain.time import Instant
from waypost.ports.peers import PROCESS_ENDED, Peers
from waypost.stores.sql.added import AddedTable, make_missing
from waypost.stores.sql.checkup import Checkup
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.engine import Joined, Months
from waypost.stores.sql.faults import StoreFault, refusal
from waypost.stores.sql.migrations import NOTED_IN, is_known
from waypost.stores.sql.postgres import partitions
from waypost.stores.sql.postgres.checkup import check_up
from waypost.stores.sql.postgres.connection import (
    CONNECT_TIMEOUT_S,
    PostgresConnection,
    connect,
    fault_of,
    of_primary,
)
from waypost.stores.sql.postgres.mark import ServerMark, mark_of
from waypost.stores.sql.postgres.membership import Membership
from waypost.stores.sql.postgres.months import drop_months
from waypost.stores.sql.postgres.peers import NotifyPeers
from waypost.stores.sql.postgres.refusals import named_refusal, not_allowed
from waypost.stores.sql.postgres.tail import ArrivalTail
from waypost.stores.sql.postgres.writer import PostgresWriter
from waypost.stores.sql.settings import SqlSettings

MIGRATION_LOCK = 0x5759_7002
"""The advisory lock of whoever changes the schema."""
MIGRATION_LOCK_TIMEOUT_MS = 1_000
MIGRATION_PATIENCE_S = 30.0
_TURN = sql.SQL("SELECT pg_try_advisory_lock({})").format(MIGRATION_LOCK)
_AGAIN_S = 0.1
_FOUND = sql.SQL("SELECT version_num FROM {}").format(sql.Identifier(NOTED_IN))
_NOT_ALLOWED = """\
SELECT CASE WHEN owner IS NULL THEN 'permission denied for schema ' || coalesce(current_schema(), 'none')
    ELSE 'must be owner of table notification' END
FROM (SELECT (SELECT relowner FROM pg_class WHERE oid = to_regclass('notification')) AS owner) AS found
WHERE NOT coalesce(
    CASE WHEN owner IS NULL THEN has_schema_privilege(current_schema(), 'CREATE')
    ELSE pg_has_role(owner, 'USAGE') END, false)
"""
"""What it would be refused where it may not make the tables, or the partitions of those that there are."""
_FORGOTTEN = "DELETE FROM writer WHERE at < clock_timestamp() - interval '7 days'"
"""The statement that deletes writers whose process ended, or was away for longer than any outage."""

_Plain = psycopg.Connection[tuple[object, ...]]


class PostgresEngine:
    """The engine of PostgreSQL: see engine.Engine."""

    is_remote = True

    def __init__(self, settings: SqlSettings) -> None:
        self._settings = settings
        self._url = of_primary(settings.url)
        self._to_prepare: tuple[Instant, Sequence[AddedTable]] | None = None
        """The time at which it should have been prepared, but was away."""

    def prepare(self, now: Instant, tables: Sequence[AddedTable] = ()) -> tuple[str | None, str]:
        """See Engine; of several processes that start together one changes the schema and the others wait.

        Whoever finds today's schema waits for nobody: it may come back while another version changes it.
        """
        self._to_prepare = now, tables
        try:
            return self._prepare(now, tables)
        except Exception as error:
            raise self._refusal_of(error) from error

    def refuse_workers(self, workers: int) -> None:
        """See Engine: any number."""

    def look(self) -> str:
        """See Engine; such as PostgreSQL 15.18."""
        try:
            with psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
                version = connection.info.parameter_status("server_version") or "of unknown version"
                found = _revision(connection)
                if (why := connection.execute(_NOT_ALLOWED).fetchone()) is not None:
                    raise not_allowed(self._url, str(why[0]))
            if found is None or not is_known(found):
                self._check_revision()
        except Exception as error:
            raise self._refusal_of(error) from error
        return f"PostgreSQL {version}"

    def check_up(self, tables: Sequence[AddedTable] = ()) -> Checkup:
        """See Engine."""
        try:
            with psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
                missing = tuple(table.name for table in tables if not _has(connection, table.name))
                return check_up(connection, _revision(connection), missing)
        except Exception as error:
            raise self._refusal_of(error) from error

    def _refusal_of(self, error: Exception) -> Exception:
        """Convert what opening it raised, with the server's own reason; return it where it is another fault."""
        driver = _of_driver(error)
        if isinstance(driver, psycopg.errors.InsufficientPrivilege):
            return not_allowed(self._url, driver.diag.message_primary or "permission denied")
        if not isinstance(driver, psycopg.Error) or fault_of(driver) is StoreFault.OPERATION:
            return error
        return named_refusal(driver)

    def keep_up(self, now: Instant, before: Instant) -> Months:
        """See Engine: months ahead, and months that are over; notes of writers that are gone."""
        try:
            with psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
                partitions.ensure(connection, now)
                undropped = drop_months(connection, before).undropped
                connection.execute(_FORGOTTEN)
                return Months(partitions.missing(connection, now), undropped)
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

    def mark(self, connection: Connection) -> ServerMark:
        """See Engine."""
        return mark_of(connection)

    def open_reader(self) -> PostgresConnection:
        """See Engine."""
        return connect(self._settings.url, read_only=True)

    def fault_of(self, error: BaseException) -> StoreFault:
        """See Engine."""
        return fault_of(error)

    async def join(self, peers: Peers | None, report: Callable[[StoreFault], None]) -> Joined:
        """See Engine."""
        membership = Membership(self._settings.url, report)
        if peers is not None:
            peers.on(PROCESS_ENDED, membership.ended)
        notifying = NotifyPeers(self._settings.url, peers, report)
        await notifying.start()
        membership.on_close = notifying.stop
        return Joined(membership, notifying, membership.fence, membership.member)

    def _catch_up(self) -> None:
        """Bring the schema up to date before anything is written, also where the server was away at the start."""
        if self._to_prepare is not None:
            self._prepare(*self._to_prepare)

    def _prepare(self, now: Instant, tables: Sequence[AddedTable]) -> tuple[str | None, str]:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
            found = _revision(connection)
            made = (found, found) if found is not None and is_known(found) else self._migrate(connection)
            partitions.ensure(connection, now)
            if missing := [table for table in tables if not _has(connection, table.name)]:
                _wait_for_turn(connection)
                make_missing(
                    missing, partial(_has, connection), lambda it: connection.execute(it.encode()), is_remote=True
                )
        self._to_prepare = None
        return made

    def _migrate(self, connection: _Plain) -> tuple[str | None, str]:
        _wait_for_turn(connection)
        from waypost.stores.sql.migrate import migrate  # noqa: PLC0415 - a third of a process's start

        return migrate(create_engine("postgresql+psycopg://", creator=self._connect, poolclass=NullPool))

    def _check_revision(self) -> None:
        from waypost.stores.sql.migrate import check_revision  # noqa: PLC0415 - as in _migrate

        check_revision(create_engine("postgresql+psycopg://", creator=self._connect, poolclass=NullPool))

    def _connect(self) -> _Plain:
        """Connect for migrations, which wait for no lock for long: whoever comes after them waits for it, too."""
        return psycopg.connect(
            self._url,
            connect_timeout=CONNECT_TIMEOUT_S,
            options=f"-c lock_timeout={MIGRATION_LOCK_TIMEOUT_MS}",
        )


def _of_driver(error: Exception) -> BaseException:
    """Find the driver's error, also where it is behind one that a migration met as it ended its transaction."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, psycopg.Error):
        found = getattr(found, "orig", None) or found.__context__
    return found or error


def _has(connection: _Plain, table: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def _revision(connection: _Plain) -> str | None:
    """Read what Alembic noted in the database; None for a new one."""
    try:
        row = connection.execute(_FOUND).fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    return None if row is None else str(row[0])


def _wait_for_turn(connection: _Plain) -> None:
    """Get the lock of migrations, asking again and again.

    A statement that waits for it would be a transaction that is open, and an index that is made concurrently waits for
    all of those (PostgreSQL, CREATE INDEX, "Building Indexes Concurrently").
    """
    until_s = time.monotonic() + MIGRATION_PATIENCE_S
    while connection.execute(_TURN).fetchone() != (True,):
        if time.monotonic() >= until_s:
            raise psycopg.errors.LockNotAvailable("another process changes the schema")
        time.sleep(_AGAIN_S)  # nothing tells when the lock is free but a statement that waits for it

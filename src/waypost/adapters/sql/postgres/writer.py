"""The connection that writes to PostgreSQL: opened again when it was lost, and never in doubt for long."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from waypost.adapters.sql.engine import InDoubt
from waypost.adapters.sql.faults import Fault
from waypost.adapters.sql.postgres.connection import TAKEN, WRITING, PostgresConnection, connect, fault_of
from waypost.adapters.sql.settings import Durability, SqlSettings

ORDERED_LOCK = 0x5759_7001
"""The advisory lock of transactions that give out numbers or claim keys."""
_COMMITTED = "SELECT pg_xact_status(CAST(CAST(? AS text) AS xid8))"
_TRANSACTION = "SELECT CAST(pg_current_xact_id_if_assigned() AS text)"
_MEANS_IT = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"


class PostgresWriter:
    """See engine.Writer."""

    def __init__(self, settings: SqlSettings, prepare: Callable[[], None] = lambda: None) -> None:
        """*prepare* is called each time before the server is connected to, which is not done here."""
        self._settings = settings
        self._prepare = prepare
        self._survives_power = settings.durability is Durability.POWER
        self._connection: PostgresConnection | None = None
        self._pipeline = contextlib.ExitStack()
        """The one that the transaction is in, if any."""

    @property
    def connection(self) -> PostgresConnection:
        """See Writer; there is one within a turn."""
        assert self._connection is not None, "a turn opens it"
        return self._connection

    @contextmanager
    def turn(self, patience_s: float) -> Iterator[None]:
        """See Writer: nothing to wait for, except that a lost connection is opened again."""
        self._open()
        yield

    def begin(self, *, durable: bool, ordered: bool, pipelined: bool = False) -> None:
        """See Writer; one round trip, or none. What waited in vain for the lock is given up here."""
        statements = ["BEGIN"]
        if not (durable and self._survives_power):
            statements.append("SET LOCAL synchronous_commit = off")
        statements.append(f"SELECT pg_advisory_xact_lock_shared({WRITING})")
        if ordered:
            statements.append(f"SELECT pg_advisory_xact_lock({ORDERED_LOCK})")
        self.connection.forget_claims()
        try:
            if pipelined:
                self._pipeline.enter_context(self.connection.pipelined())
                for statement in statements:
                    self.connection.execute(statement)
            else:
                self.connection.raw.execute("; ".join(statements).encode())
        except psycopg.Error:
            self.rollback()
            raise

    def commit(self) -> None:
        """See Writer; the server is asked for the transaction's number first, by which it can be asked again."""
        (transaction,) = self.connection.execute(_TRANSACTION).fetchone()
        self.connection.require_claims()
        try:
            self.connection.execute("COMMIT")
            self._pipeline.close()
        except psycopg.Error as error:
            if fault_of(error) is not Fault.LOST or transaction is None:
                raise
            self.connection.close()
            raise InDoubt(transaction) from error

    def rollback(self) -> None:
        """See Writer; a connection that cannot is given up, and with it the server gives up what it did."""
        try:
            self._leave_pipeline()
            self.connection.raw.execute(b"ROLLBACK")
        except psycopg.Error:
            self.close()

    def was_committed(self, transaction: str) -> bool | None:
        """See Writer."""
        (status,) = self.connection.execute(_COMMITTED, (transaction,)).fetchone()
        return None if status == "in progress" else status == "committed"

    def is_well(self) -> bool:
        """See Writer."""
        self._open()
        self.connection.execute("SELECT 1")
        return True

    def use_reserve(self) -> None:
        """The room on its disk is the server's to keep."""

    def fault_of(self, error: BaseException) -> Fault:
        """See Writer; after a fault of the connection it is opened again."""
        if isinstance(error, psycopg.Error) and error.sqlstate in TAKEN:
            return Fault.TAKEN
        fault = fault_of(error)
        if fault is Fault.LOST:
            self.close()
        return fault

    def close(self) -> None:
        """See Writer."""
        if self._connection is not None:
            self._connection.close()

    def _leave_pipeline(self) -> None:
        """What failed in it was said already."""
        with contextlib.suppress(psycopg.Error):
            self._pipeline.close()

    def _open(self) -> None:
        if self._connection is None or self._connection.raw.closed:
            self._prepare()
            self._connection = self._connect()

    def _connect(self) -> PostgresConnection:
        connection = connect(self._settings.url, lock_timeout_s=self._settings.lock_timeout_s)
        with contextlib.ExitStack() as undo:
            undo.callback(connection.close)
            connection.execute(_MEANS_IT)  # what is answered is durable, whatever the server's own default is
            undo.pop_all()
        return connection

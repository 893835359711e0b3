"""The connection that writes to PostgreSQL: opened again when it was lost, and never in doubt for long."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
from psycopg.pq import TransactionStatus

from waypost.stores.sql.engine import InDoubt
from waypost.stores.sql.faults import StoreFault
from waypost.stores.sql.postgres.connection import TAKEN, WRITING, PostgresConnection, connect, fault_of
from waypost.stores.sql.settings import Durability, SqlSettings

ORDERED_LOCK = 0x5759_7001
"""The advisory lock of transactions that give out numbers or claim keys."""
_NOTE = (
    "INSERT INTO writer (nonce, batch, at) VALUES ('{nonce}', {batch}, clock_timestamp())"
    " ON CONFLICT (nonce) DO UPDATE SET batch = {kept}, at = excluded.at"
)
"""Held until its transaction ends: what comes after a lost connection waits here for what that one had begun."""
_MEANS_IT = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
)


class PostgresWriter:
    """The writer of PostgreSQL: see engine.Writer."""

    def __init__(self, settings: SqlSettings, prepare: Callable[[], None] = lambda: None) -> None:
        """Create the writer; *prepare* is called each time before it connects to the server, which is not done here."""
        self._settings = settings
        self._prepare = prepare
        self._survives_power = settings.durability is Durability.POWER
        self._connection: PostgresConnection | None = None
        self._nonce = uuid.uuid4()
        self._batch = 0
        self._pipeline = contextlib.ExitStack()
        """The pipeline that the transaction is in, if any."""

    @property
    def connection(self) -> PostgresConnection:
        """The connection: see Writer; there is one within a turn."""
        assert self._connection is not None, "a turn opens it"
        return self._connection

    @contextmanager
    def turn(self, patience_s: float, *, urgent: Callable[[], bool] | None = None) -> Iterator[None]:
        """See Writer: nothing to wait for, except that a lost connection is opened again."""
        self._open()
        yield

    def begin(self, *, durable: bool, ordered: bool, pipelined: bool = False) -> None:
        """See Writer; one round trip, or none. What has begun and then waited in vain for a lock is given up here.

        Whether it was committed stands in the database itself, and so does on whichever server takes over: the number
        of a transaction is given again by a standby that was promoted (PostgreSQL, "pg_xact_status").
        """
        self.connection.forget_claims()
        self.connection.begin_again = partial(self._begin_again, durable=durable, ordered=ordered)
        statements = ["BEGIN", *self._beginning(durable=durable, ordered=ordered)]
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

    def _begin_again(self, *, durable: bool, ordered: bool) -> None:
        """Begin again: what was committed so far has its number, and is not asked for as a lost commit."""
        for statement in self._beginning(durable=durable, ordered=ordered):
            self.connection.execute(statement)

    def _beginning(self, *, durable: bool, ordered: bool) -> list[str]:
        self._batch += 1
        statements: list[str] = []
        if not (durable and self._survives_power):
            statements.append("SET LOCAL synchronous_commit = off")
        statements.append(f"SELECT pg_advisory_xact_lock_shared({WRITING})")
        if ordered:
            statements.append(f"SELECT pg_advisory_xact_lock({ORDERED_LOCK})")
        statements.append(_NOTE.format(nonce=self._nonce, batch=self._batch, kept="excluded.batch"))
        return statements

    def commit(self) -> None:
        """See Writer; what was claimed is looked at before."""
        self.connection.await_answers()
        self.connection.require_claims()
        try:
            self.connection.execute("COMMIT")
            self._pipeline.close()
        except psycopg.Error as error:
            if fault_of(error) is not StoreFault.LOST:
                raise
            self._leave_pipeline()
            self.connection.close()
            raise InDoubt(self._batch) from error

    def rollback(self) -> None:
        """See Writer; a connection that cannot is given up, and with it the server gives up what it did.

        One on which a statement of a pipeline failed is replaced: psycopg believes that the server has prepared what
        it passed over since then.
        """
        was_pipelined = self.connection.is_pipelined
        try:
            self._leave_pipeline()
            if was_pipelined and self.connection.raw.info.transaction_status is TransactionStatus.INERROR:
                self.close()
                self._open()
            else:
                self.connection.raw.execute(b"ROLLBACK")
        except psycopg.Error:
            self.close()

    def was_committed(self, batch: int) -> bool:
        """See Writer."""
        note = _NOTE.format(nonce=self._nonce, batch=0, kept="writer.batch")
        (committed,) = self.connection.execute(f"{note} RETURNING batch").fetchone()
        return bool(committed == batch)

    def is_hurried(self) -> bool:
        """See Writer: nobody waits for the transactions of others."""
        return False

    def is_well(self) -> bool:
        """See Writer: it answers, and whoever reads gets a connection, too."""
        self._open()
        self.connection.execute("SELECT 1")
        connect(self._settings.url, read_only=True).close()
        return True

    def use_reserve(self) -> None:
        """Do nothing: the room on its disk is the server's to keep."""

    def fault_of(self, error: BaseException) -> StoreFault:
        """See Writer; after a fault of the connection it is opened again."""
        if isinstance(error, psycopg.Error) and error.sqlstate in TAKEN:
            return StoreFault.TAKEN
        fault = fault_of(error)
        if fault is StoreFault.LOST:
            self.close()
        return fault

    def close(self) -> None:
        """See Writer."""
        if self._connection is not None:
            self._connection.close()

    def _leave_pipeline(self) -> None:
        """Leave the pipeline; what failed in it was said already."""
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

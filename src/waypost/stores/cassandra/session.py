"""Connections to a cluster, in four calls: prepare, execute, batch, close.

The driver (acsylla, over the C++ driver) is known here alone. Its traps: ``bind_list`` takes a list; a text is bound up
to its first NUL, so that NULs are written as two other characters; an LWT that times out may have happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import acsylla
from acsylla.errors import CassException
from msgspec import Struct

from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.stores.cassandra.settings import CassandraSettings, Consistency

CONNECT_TIMEOUT_S = 2.0
DDL_TIMEOUT_S = 30.0
"""Seconds for a change of the schema, which waits for every node that is up."""
RECONNECT_MS = 1_000
"""Milliseconds after which a node that is down is tried again."""

Value = Any
"""A value of CQL: text, int, bytes, bool, None, or a list of these."""
Row = tuple[Any, ...]


class Statement(Struct, frozen=True):
    """A prepared statement; *tries* is 2 where it may be repeated without knowing what became of the first one."""

    prepared: Any
    consistency: Any
    tries: int


class CassandraCluster:
    """The cluster's nodes, for the event loop that is running. One a process: the loop never lets go of it."""

    def __init__(self, settings: CassandraSettings) -> None:
        self._settings = settings
        self._driver = acsylla.create_cluster(
            list(settings.hosts),
            port=settings.port,
            username=settings.username,
            password=settings.password,
            connect_timeout=CONNECT_TIMEOUT_S,
            request_timeout=settings.request_timeout_s,
            constant_reconnect_delay_ms=RECONNECT_MS,
            load_balance_dc_aware=settings.data_center,
            log_level="disabled",
            ssl_enabled=settings.tls,
            ssl_trusted_cert=_authorities(settings) if settings.tls else None,
            ssl_verify_flags=acsylla.SSLVerifyFlags.PEER_IDENTITY,
        )

    async def connect(self) -> Session:
        """Connect to those of the nodes that answer; Unavailable where none does."""
        try:
            return Session(await self._driver.create_session(), self._settings)
        except CassException as away:
            raise _unavailable(away) from None


class Session:
    """The open connections; errors of the nodes and of the way to them are Unavailable."""

    def __init__(self, session: Any, settings: CassandraSettings) -> None:
        self._session = session
        self._timeout_s = settings.request_timeout_s
        self._serial = _level("LOCAL_SERIAL" if settings.write_consistency.is_local else "SERIAL")
        self._write = _level(settings.write_consistency)

    async def prepare(self, cql: str, consistency: Consistency | None = None, *, repeatable: bool = False) -> Statement:
        """Have *cql* parsed once; without a *consistency* it is one of the writes'."""
        level = self._write if consistency is None else _level(consistency)
        try:
            return Statement(await self._session.create_prepared(cql), level, 2 if repeatable else 1)
        except CassException as away:
            raise _unavailable(away) from None

    async def execute(self, statement: Statement | str, *values: Value) -> list[Row]:
        """Execute a statement and return its rows; a text is not worth preparing, such as a change of the schema."""
        if isinstance(statement, str):
            return await self._rows(self._session.execute(acsylla.create_statement(statement, timeout=DDL_TIMEOUT_S)))
        bound = self._bound(statement, values)
        for _ in range(statement.tries - 1):
            try:
                return await self._rows(self._session.execute(bound))
            except Unavailable:
                continue  # such as a node that died with the request: another one has the row too
        return await self._rows(self._session.execute(bound))

    async def batch(self, *parts: tuple[Statement, Sequence[Value]]) -> bool:
        """Execute all of *parts*, of one partition, or nothing: False where a condition in them did not hold.

        After Unavailable it may have happened all the same, now or until the next batch on that partition.
        """
        batch = acsylla.create_batch_unlogged(self._timeout_s)  # one partition: a log would add nothing
        batch.set_consistency(self._write)
        batch.set_serial_consistency(self._serial)
        for statement, values in parts:
            batch.add_statement(self._bound(statement, values))
        rows = await self._rows(self._session.execute_batch(batch))
        return bool(rows[0][0]) if rows else True

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    def _bound(self, statement: Statement, values: Sequence[Value]) -> Any:
        bound = statement.prepared.bind()
        bound.bind_list([_without_nul(value) for value in values])
        bound.set_consistency(statement.consistency)
        bound.set_serial_consistency(self._serial)
        return bound

    async def _rows(self, answer: Any) -> list[Row]:
        try:
            result = await answer
        except CassException as away:
            raise _unavailable(away) from None
        return [tuple(map(_with_nul, row.as_tuple())) for row in result]


def _level(name: str) -> Any:
    return acsylla.Consistency[name]


def _authorities(settings: CassandraSettings) -> str:
    if settings.ca_file is None:
        raise ConfigurationError("cassandra.ca_file", "tls needs the authorities that sign the nodes' certificates")
    try:
        return Path(settings.ca_file).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError("cassandra.ca_file", "cannot be read as certificates in PEM") from None


def _unavailable(away: Exception) -> Unavailable:
    return Unavailable(f"Cassandra is away ({type(away).__name__})")


def _without_nul(value: Value) -> Value:
    """Write NUL as \\1\\1 and \\1 as \\1\\2: one to one, and in the same order."""
    if isinstance(value, str) and ("\0" in value or "\1" in value):
        return value.replace("\1", "\1\2").replace("\0", "\1\1")
    return [_without_nul(each) for each in value] if isinstance(value, list) else value


def _with_nul(value: Value) -> Value:
    if isinstance(value, str) and "\1" in value:
        return value.replace("\1\1", "\0").replace("\1\2", "\1")
    return value

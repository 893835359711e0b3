"""A closer look at a database of PostgreSQL, for ``waypost doctor``; blocking, over one connection."""

from __future__ import annotations

import time
from typing import Final

import psycopg

from waypost.stores.sql.checkup import Checkup
from waypost.stores.sql.postgres.connection import CONNECT_TIMEOUT_S, of_primary

_NOW: Final = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)"
_SIZE: Final = "SELECT pg_database_size(current_database())"
_KEPT: Final = """\
SELECT CAST(coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0) AS int8) FROM pg_replication_slots
"""
"""Bytes of its log that the slowest standby, or one that is gone, makes it keep."""
_OLDEST: Final = """\
SELECT CAST(coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0) AS float8) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def check_up(url: str, revision: str | None) -> Checkup:
    """Ask the server for what it knows of itself; *revision* is that of the schema. psycopg.Error."""
    with psycopg.connect(of_primary(url), autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
        before_s = time.time()
        (server_s,) = _row(connection, _NOW)
        ours_s = (before_s + time.time()) / 2
        return Checkup(
            revision=revision,
            size_bytes=int(_row(connection, _SIZE)[0]),
            log_bytes=int(_row(connection, _KEPT)[0]),
            clock_ahead_s=server_s - ours_s,
            oldest_transaction_s=_row(connection, _OLDEST)[0],
        )


def _row(connection: psycopg.Connection[tuple[float, ...]], statement: str) -> tuple[float, ...]:
    return connection.execute(statement.encode()).fetchone() or (0.0,)

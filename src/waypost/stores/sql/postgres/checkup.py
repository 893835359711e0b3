"""A closer look at a database of PostgreSQL, for ``waypost doctor``; blocking, over a connection that is there."""

from __future__ import annotations

import time
from typing import Final

import psycopg

from waypost.stores.sql.checkup import Checkup

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


def check_up(
    connection: psycopg.Connection[tuple[object, ...]], revision: str | None, missing: tuple[str, ...]
) -> Checkup:
    """Ask the server for what it knows of itself; *revision* is that of the schema. psycopg.Error."""
    before_s = time.time()
    server_s = _figure(connection, _NOW)
    ours_s = (before_s + time.time()) / 2
    return Checkup(
        revision=revision,
        size_bytes=int(_figure(connection, _SIZE)),
        log_bytes=int(_figure(connection, _KEPT)),
        missing=missing,
        clock_ahead_s=server_s - ours_s,
        oldest_transaction_s=_figure(connection, _OLDEST),
    )


def _figure(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> float:
    ((figure,),) = connection.execute(statement.encode()).fetchall()
    assert isinstance(figure, int | float)
    return figure

"""The check of a PostgreSQL, by what it says of itself, for ``check-config``."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from msgspec import Struct

from waypost.stores.sql.postgres.connection import CONNECT_TIMEOUT_S, of_primary
from waypost.stores.sql.postgres.refusals import named_refusal

OLDEST = 15_00_00
"""The oldest version that the tests run on, as in server_version_num."""
CONNECTIONS = 7
"""The connections of each worker."""

_SETTINGS = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
_NAMES = [
    "server_version",
    "server_version_num",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
]
_LIMITS = """\
SELECT CAST(current_setting('max_connections') AS int) - CAST(current_setting('superuser_reserved_connections') AS int),
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database()),
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)
"""
_STANDBYS = """\
SELECT greatest((SELECT count(*) FROM pg_stat_replication),
    (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical'))
"""
_WEAKER = ("off", "local", "remote_write")
"""The defaults of synchronous_commit that are turned up."""
_PID = "SELECT pg_backend_pid()"


class PostgresFindings(Struct, frozen=True):
    """The findings on what runs there, and what speaks against it."""

    version: str
    number: int
    """As in server_version_num."""
    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    """The server's own default."""
    connections: int
    """The most connections in this database by this user."""
    keeps_sessions: bool
    """Whether there is no pooler that gives a connection's next transaction to another session."""
    standbys: int = 0
    """The number of standbys that are sent all that is written."""
    waits_for_standbys: bool = False
    """Whether some standby has what was answered (synchronous_standby_names)."""

    def problems(self, workers: int) -> Iterator[str]:
        """Yield why it cannot be used, or not without losing what was answered."""
        if self.number < OLDEST:
            yield f"PostgreSQL {self.version} is older than {OLDEST // 10_000}"
        if not self.fsync:
            yield "fsync is off: a crash of the machine loses what was answered, or the whole database"
        if not self.full_page_writes:
            yield "full_page_writes is off: a crash of the machine may damage the database"
        if not self.keeps_sessions:
            yield "a pooler in transaction mode: LISTEN and session settings need session mode, or none between"
        if workers * CONNECTIONS > self.connections:
            yield f"{self.connections} connections are too few: {workers} workers need {workers * CONNECTIONS}"

    def notes(self) -> Iterator[str]:
        """Yield what is otherwise than one might think, and does no harm."""
        if self.synchronous_commit in _WEAKER:
            yield f"synchronous_commit is {self.synchronous_commit} by default: turned on for what is answered"
        if self.standbys and not self.waits_for_standbys:
            yield (
                f"{self.standbys} standby(s), and synchronous_standby_names is empty:"
                " a failover loses what was answered in the moments before"
            )


def look(url: str) -> PostgresFindings:
    """Ask the server, over connections without settings of ours; Unavailable where it does not answer. Blocking."""
    url = of_primary(url)
    try:
        with (
            psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as one,
            psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S) as other,
        ):
            said: dict[str, str] = dict(one.execute(_SETTINGS, (_NAMES,)).fetchall())
            limits = one.execute(_LIMITS).fetchone() or ()
            return PostgresFindings(
                said["server_version"].split()[0],
                int(said["server_version_num"]),
                said["fsync"] == "on",
                said["full_page_writes"] == "on",
                said["synchronous_commit"],
                min(limit for limit in limits if limit >= 0),
                _keeps_sessions(one, other),
                (one.execute(_STANDBYS).fetchone() or (0,))[0],
                said["synchronous_standby_names"] != "",
            )
    except psycopg.Error as error:
        raise named_refusal(error) from error


def _keeps_sessions(one: psycopg.Connection, other: psycopg.Connection) -> bool:
    """Tell whether one is still served by the same process when another has begun a transaction between."""
    before = one.execute(_PID).fetchone()
    theirs = other.execute(_PID).fetchone()  # its transaction stays open
    return theirs != before and one.execute(_PID).fetchone() == before

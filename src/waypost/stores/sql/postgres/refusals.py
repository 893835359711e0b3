"""The words in which a PostgreSQL that cannot be used is refused."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.stores.sql.faults import refusal
from waypost.stores.sql.postgres.connection import fault_of


def named_refusal(error: psycopg.Error) -> Unavailable:
    """Build the refusal, with libpq's reason where no connection was made: host and port, a role, a certificate.

    libpq names the host, the port, the role and the database, and never the password (PostgreSQL, libpq,
    PQerrorMessage).
    """
    refused = refusal(fault_of(error))
    if error.sqlstate is not None or not isinstance(error, psycopg.OperationalError):
        return refused
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if "failed: " in line), lines[-1] if lines else "no reason given")
    return Unavailable(f"{refused}: {reason}", refused.code)


def not_allowed(url: str, why: str) -> ConfigurationError:
    """Build the refusal for a role that may not do what Waypost does; *why* is as the server says it."""
    said = conninfo_to_dict(url)
    where = f'server at "{said.get("host", "")}", port {said.get("port", 5432)}'
    return ConfigurationError("store", f"{where}: {why}: make the role the owner of the database")

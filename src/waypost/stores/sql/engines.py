"""The choice of an engine by its URL."""

from __future__ import annotations

from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.stores.sql.engine import Engine
from waypost.stores.sql.settings import SqlSettings, is_postgres
from waypost.stores.sql.sqlite import SqliteEngine


def engine_of(settings: SqlSettings) -> Engine:
    """Build the engine of the store that *settings* name; ConfigurationError where it cannot be used here."""
    if not is_postgres(settings.url):
        return SqliteEngine(settings)
    try:
        from waypost.stores.sql.postgres.engine import PostgresEngine  # noqa: PLC0415 - an optional client
    except ImportError:
        raise ConfigurationError("store", f"PostgreSQL needs its client: {how_to_install('postgres')}") from None
    return PostgresEngine(settings)

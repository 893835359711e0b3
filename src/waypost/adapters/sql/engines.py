"""Which engine a URL names."""

from __future__ import annotations

from waypost.adapters.sql.engine import Engine
from waypost.adapters.sql.settings import SqlSettings, is_postgres
from waypost.adapters.sql.sqlite import SqliteEngine
from waypost.domain.errors import ConfigurationError


def engine_of(settings: SqlSettings) -> Engine:
    """The engine of the store that *settings* name; ConfigurationError where it cannot be used here."""
    if not is_postgres(settings.url):
        return SqliteEngine(settings)
    try:
        from waypost.adapters.sql.postgres.engine import PostgresEngine  # noqa: PLC0415 - an optional client
    except ImportError:
        raise ConfigurationError("store", "PostgreSQL needs its client: pip install 'waypost[postgres]'") from None
    return PostgresEngine(settings)

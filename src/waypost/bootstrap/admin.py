"""The store as the command line uses it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waypost.bootstrap import features
from waypost.bootstrap.paths import log_of
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.pipeline.keys import Record
from waypost.ports.audit import Ordered
from waypost.runtime.clock import SystemClock
from waypost.stores.sql.connection import SAFE_WITH_MANY_WORKERS, database_path, dbapi
from waypost.stores.sql.database import prepare
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.settings import is_postgres
from waypost.stores.sql.store import Store, open_store


@asynccontextmanager
async def open_admin_store(config: Config) -> AsyncIterator[Store]:
    """Open the store as the command line uses it: same adapter and write lock, no shard owned, no tables made."""
    store = await open_store(config.store, clock=SystemClock(), peers=None, telemetry=log_of(config))
    try:
        yield store
    finally:
        await store.close()


def recording(store: Store) -> Record:
    """Return a recorder of the orders that are given on this machine."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have them
        who = str(os.getuid())
    by, origin, clock = f"cli:{who}", socket.gethostname(), SystemClock()
    return lambda act, key: store.audit.record([Ordered(clock.now(), key.app, by, origin, act, key.prefix)])


def migrate_store(config: Config) -> tuple[str | None, str]:
    """Bring the store to today's schema; its revisions before and after. StorageBroken where it is a newer one."""
    return prepare(config.store, SystemClock().now(), features.tables())


def store_engine(config: Config) -> str:
    """Name the library that opens the store; ConfigurationError where it cannot serve what is configured."""
    if is_postgres(config.store.url):
        engine_of(config.store)  # its client is an extra: a ConfigurationError says how to get it
        from waypost.stores.sql.postgres.engine import PostgresEngine  # noqa: PLC0415 - as above

        return f"PostgreSQL {PostgresEngine(config.store).version()}"
    database_path(config.store.url)
    engine = f"SQLite {dbapi.sqlite_version}"
    if config.workers > 1 and not SAFE_WITH_MANY_WORKERS:
        raise ConfigurationError("workers", f"{engine} can corrupt a log that several processes share; set it to 1")
    return engine

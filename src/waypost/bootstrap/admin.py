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
from waypost.pipeline.keys import Record
from waypost.ports.audit import Ordered
from waypost.runtime.clock import SystemClock
from waypost.stores.sql.database import prepare
from waypost.stores.sql.store import Store, open_store


@asynccontextmanager
async def open_admin_store(config: Config) -> AsyncIterator[Store]:
    """Open the store as the command line uses it: same adapter and write lock, no shard owned, no tables made."""
    store = await open_store(config.store, clock=SystemClock(), peers=None, telemetry=log_of(config))
    try:
        yield store
    finally:
        await store.close()


def here() -> tuple[str, str]:
    """Name who gives orders on this machine, and the machine, as the record of them does."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have them
        who = str(os.getuid())
    return f"cli:{who}", socket.gethostname()


def recording(store: Store) -> Record:
    """Return a recorder of the orders that are given on this machine."""
    (by, origin), clock = here(), SystemClock()
    return lambda act, key: store.audit.record([Ordered(clock.now(), key.app, by, origin, act, key.prefix)])


def migrate_store(config: Config) -> tuple[str | None, str]:
    """Bring the store to today's schema; its revisions before and after. StorageBroken where it is a newer one."""
    return prepare(config.store, SystemClock().now(), features.tables())

"""The move of an installation from SQLite to PostgreSQL, as the command line asks for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from waypost.bootstrap import features
from waypost.bootstrap.paths import run_dir_of
from waypost.config import Config, Stack
from waypost.config.loading import resolve_text
from waypost.domain.errors import ConfigurationError
from waypost.pipeline.report import READER
from waypost.runtime.clock import SystemClock
from waypost.runtime.instance_lock import ServeLock
from waypost.runtime.supervisor import bury_predecessors
from waypost.stores.sql.connection import database_path
from waypost.stores.sql.database import prepare
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.settings import is_postgres

if TYPE_CHECKING:
    from waypost.stores.sql.move import Moved, Progress

TO = "--to"


def move_to(config: Config, url: str, on_progress: Progress) -> Moved:
    """Move the SQLite store of *config* into the empty PostgreSQL of *url*, whose ``${NAME}`` are of the environment.

    ConfigurationError where one of them cannot be used, Unavailable where the server cannot.
    """
    target = replace(config.store, url=resolve_text(url, TO, os.environ, Path()))
    if is_postgres(config.store.url) or not is_postgres(target.url):
        raise ConfigurationError(TO, "a SQLite store moves to postgresql://<user>@<host>/<database>, nothing else does")
    if config.stack is not Stack.EMBEDDED:
        raise ConfigurationError("stack", "a ledger cannot be moved: accepted work is in Kafka, and counted by its log")
    if not database_path(config.store.url).exists():
        raise ConfigurationError("store", f"there is no {database_path(config.store.url)}")
    engine_of(target)  # whether its client is installed
    from waypost.stores.sql.move import move  # noqa: PLC0415 - its client is an optional extra

    run_dir, now, tables = run_dir_of(config), SystemClock().now(), features.tables()
    with ServeLock(run_dir / "serve.lock"):
        bury_predecessors(run_dir / "worker_slots")
        prepare(config.store, now, tables)
        prepare(target, now, tables)
        return move(config.store, target, [READER, *features.readers()], on_progress)

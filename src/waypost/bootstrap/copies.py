"""Backup and restore of the store, as the command line asks for them."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from waypost.bootstrap.paths import run_dir_of
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.runtime.clock import SystemClock
from waypost.runtime.instance_lock import ServeLock
from waypost.runtime.supervisor import bury_predecessors
from waypost.stores.sql.copies import Inside, Progress, Restored
from waypost.stores.sql.copies import back_up as copy_out
from waypost.stores.sql.copies import restore as copy_in
from waypost.stores.sql.settings import is_postgres


def back_up(config: Config, file: Path, on_progress: Progress) -> Inside:
    """Copy the store into *file* while it is in use; ConfigurationError for PostgreSQL, which has its own tools."""
    if is_postgres(config.store.url):
        command = ["pg_dump", "--format=custom", f"--file={file}", without_password(config.store.url)]
        raise ConfigurationError("store", f"PostgreSQL makes its own backups: {shlex.join(command)}")
    return copy_out(config.store, file, on_progress)


def restore(config: Config, file: Path, on_progress: Progress, *, force: bool) -> Restored:
    """Put *file* in the place of the store; ConfigurationError while somebody serves it, and for PostgreSQL."""
    if is_postgres(config.store.url):
        command = ["pg_restore", "--exit-on-error", f"--dbname={without_password(config.store.url)}", str(file)]
        does_not_know = "it does not know who was erased since: erase them again"
        raise ConfigurationError(
            "store", f"PostgreSQL restores its own backups, {shlex.join(command)}; {does_not_know}"
        )
    run_dir = run_dir_of(config)
    with ServeLock(run_dir / "serve.lock"):
        bury_predecessors(run_dir / "worker_slots")
        return copy_in(config.store, file, SystemClock().now(), on_progress, force=force)


def without_password(url: str) -> str:
    """Return the URL of a database as others may read it."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name != "password"])
    return parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query).geturl()

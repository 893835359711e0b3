"""The services that a stack needs: settings for waypost.yaml, and the store as the bench reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waypost.stores.sql import connection as sqlite
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.settings import is_postgres

FILE = "waypost.db"


@dataclass(frozen=True)
class Base:
    """The services that a stack needs, running."""

    settings: dict[str, Any]
    """Sections of waypost.yaml."""
    servers: dict[str, str] = field(default_factory=dict)
    """The URL of each."""
    cpu_s: Callable[[], dict[str, float]] = dict
    """CPU seconds so far of each server, its children included."""
    app: dict[str, Any] = field(default_factory=dict)
    """Sections of each app, beside those of its providers."""

    @property
    def url(self) -> str:
        """The URL of the store."""
        url: str = self.settings["store"]["url"]
        return url


Stands = Callable[[Path, ExitStack], Base]
"""Makes a base in a folder; the servers end with the stack of exits."""


def embedded(folder: Path, _: ExitStack) -> Base:
    """Build a stack on SQLite alone."""
    return Base({"store": {"url": f"sqlite:///{folder / FILE}"}})


@contextmanager
def connected(url: str, *, read_only: bool = False) -> Iterator[Connection]:
    """Open a connection to the store of that URL."""
    connection: Any
    if is_postgres(url):
        from waypost.stores.sql.postgres.connection import connect  # noqa: PLC0415 - its client is an extra

        connection = connect(url, read_only=read_only)
    else:
        connection = sqlite.connect(Path(url.removeprefix("sqlite:///")), busy_timeout_s=5, read_only=read_only)
    try:
        yield connection
    finally:
        connection.close()

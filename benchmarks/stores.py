"""What a stack stands on: settings for waypost.yaml, the store as the bench reads it, and the servers' own CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.programs import MissingProgram, cpu_s
from scripts.services import processes
from scripts.services.kafka import Kafka
from scripts.services.postgres import Postgres
from scripts.services.redis import Redis
from scripts.services.service import Missing, Service
from waypost.adapters.sql import connection as sqlite
from waypost.adapters.sql.engine import Connection
from waypost.adapters.sql.settings import is_postgres

FILE = "waypost.db"


@dataclass(frozen=True)
class Base:
    """What a stack stands on, running."""

    settings: dict[str, Any]
    """Of waypost.yaml."""
    servers: dict[str, Service] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Of the store."""
        url: str = self.settings["store"]["url"]
        return url

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far of each server, its children included."""
        return {name: spent_s(server) for name, server in self.servers.items()}


Stands = Callable[[Path, ExitStack], Base]
"""Makes a base in a folder; the servers end with the stack of exits."""


def embedded(folder: Path, _: ExitStack) -> Base:
    """SQLite alone."""
    return Base({"store": {"url": f"sqlite:///{folder / FILE}"}})


def on_postgres(folder: Path, exits: ExitStack) -> Base:
    """PostgreSQL, with fsync."""
    server = exits.enter_context(up(Postgres, folder / "postgres"))
    store = {"url": server.url, "run_dir": str(folder / "run")}
    return Base({"store": store}, {"postgres": server})


def on_postgres_and_redis(folder: Path, exits: ExitStack) -> Base:
    """The same, with the cache of devices."""
    base = on_postgres(folder, exits)
    server = exits.enter_context(up(Redis, folder / "redis"))
    cached = {"redis": {"url": server.url}, "cache": "redis"}
    return Base(base.settings | cached, base.servers | {"redis": server})


def on_the_log(folder: Path, exits: ExitStack) -> Base:
    """One broker of Kafka, which flushes when the system does; keys in Redis, the ledger in SQLite."""
    broker = exits.enter_context(up(Kafka, folder / "kafka"))
    server = exits.enter_context(up(Redis, folder / "redis"))
    kafka = {"bootstrap": broker.url, "replication": 1, "trial": True, "partitions": 8}
    settings = {"stack": "log", "kafka": kafka, "redis": {"url": server.url}, "dedup": "redis"}
    return Base(embedded(folder, exits).settings | settings, {"kafka": broker, "redis": server})


@contextmanager
def up(kind: Callable[..., Service], folder: Path) -> Iterator[Service]:
    """A server of its own; MissingProgram where it cannot run here."""
    server = kind(folder, durable=True)
    try:
        server.up()
    except Missing as missing:
        raise MissingProgram(str(missing)) from None
    try:
        yield server
    finally:
        server.down()


@contextmanager
def connected(url: str, *, read_only: bool = False) -> Iterator[Connection]:
    """A connection to the store of that URL."""
    connection: Any
    if is_postgres(url):
        from waypost.adapters.sql.postgres.connection import connect  # noqa: PLC0415 - its client is an extra

        connection = connect(url, read_only=read_only)
    else:
        connection = sqlite.connect(Path(url.removeprefix("sqlite:///")), busy_timeout_s=5, read_only=read_only)
    try:
        yield connection
    finally:
        connection.close()


def spent_s(server: Service) -> float:
    """CPU seconds so far of all processes of a server."""
    pids = [pid for node in server.nodes if node.pid is not None for pid in processes.tree(node.pid)]
    return sum(map(_spent_s, pids))


def _spent_s(pid: int) -> float:
    try:
        return cpu_s(pid)
    except OSError:
        return 0.0  # a connection that has just ended

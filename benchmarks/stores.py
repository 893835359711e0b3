"""What a stack stands on beyond SQLite: settings for waypost.yaml, and the servers' own CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.programs import MissingProgram
from scripts.services import processes
from scripts.services.kafka import Kafka
from scripts.services.postgres import Postgres
from scripts.services.redis import Redis
from scripts.services.service import Missing, Service
from waypost.bench.programs import cpu_s
from waypost.bench.stores import Base, embedded


def on_postgres(folder: Path, exits: ExitStack) -> Base:
    """PostgreSQL, with fsync."""
    server = exits.enter_context(up(Postgres, folder / "postgres"))
    return _base({"store": _store(server, folder)}, postgres=server)


def on_postgres_and_redis(folder: Path, exits: ExitStack) -> Base:
    """The same, with the cache of devices."""
    postgres = exits.enter_context(up(Postgres, folder / "postgres"))
    server = exits.enter_context(up(Redis, folder / "redis"))
    settings = {"store": _store(postgres, folder), "redis": {"url": server.url}, "cache": "redis"}
    return _base(settings, postgres=postgres, redis=server)


def published(folder: Path, exits: ExitStack) -> Base:
    """PostgreSQL, whose outbox is published to Redis."""
    postgres = exits.enter_context(up(Postgres, folder / "postgres"))
    server = exits.enter_context(up(Redis, folder / "redis"))
    settings = {"store": _store(postgres, folder), "redis": {"url": server.url}, "outbox": {"to": "redis"}}
    return _base(settings, postgres=postgres, redis=server)


def on_the_log(folder: Path, exits: ExitStack) -> Base:
    """One broker of Kafka, which flushes when the system does; keys in Redis, the ledger in SQLite."""
    broker = exits.enter_context(up(Kafka, folder / "kafka"))
    server = exits.enter_context(up(Redis, folder / "redis"))
    kafka = {"bootstrap": broker.url, "replication": 1, "trial": True, "partitions": 8}
    settings = {"stack": "log", "kafka": kafka, "redis": {"url": server.url}, "dedup": "redis"}
    return _base(embedded(folder, exits).settings | settings, kafka=broker, redis=server)


def _store(server: Service, folder: Path) -> dict[str, str]:
    return {"url": server.url, "run_dir": str(folder / "run")}


def _base(settings: dict[str, Any], **servers: Service) -> Base:
    urls = {name: server.url for name, server in servers.items()}
    return Base(settings, urls, lambda: {name: spent_s(server) for name, server in servers.items()})


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


def spent_s(server: Service) -> float:
    """CPU seconds so far of all processes of a server."""
    pids = [pid for node in server.nodes if node.pid is not None for pid in processes.tree(node.pid)]
    return sum(map(_spent_s, pids))


def _spent_s(pid: int) -> float:
    try:
        return cpu_s(pid)
    except OSError:
        return 0.0  # a connection that has just ended

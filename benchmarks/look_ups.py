"""How many users a second the registry tells the devices of: each engine, without a cache and behind Redis."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from benchmarks.stores import on_postgres, spent_s, up
from scripts.services.cassandra import Cassandra
from scripts.services.redis import Redis
from waypost.bench.registry import APP, devices, register
from waypost.bench.rows import Row, row
from waypost.bench.stores import Stands, connected, embedded
from waypost.domain.device import Device
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, UserId
from waypost.ports.devices import Devices
from waypost.runtime.clock import SystemClock
from waypost.stores.cassandra.devices import CassandraDevices
from waypost.stores.cassandra.partition import put
from waypost.stores.cassandra.schema import migrate
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.redis.devices import CachedDevices
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.stores.sql.devices import DEVICE, device_of
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.store import open_store
from waypost.telemetry import Silent

USERS = int(os.environ.get("USERS", "10000"))
BATCH = 500
BATCHES = 60
WARM_UP = 30
AT_ONCE = 2
WANTED = 10_000
"""Requirements S1-114."""
_FILLING = 8
Kept = tuple[Devices, Callable[[], float]]
"""The devices, and the CPU seconds so far of what keeps them."""


def run() -> list[Row]:
    """The rows of the bench ``registry``."""
    with TemporaryDirectory(prefix="waypost-bench-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as a user of its own
        return uvloop.run(_run(Path(folder)))


async def _run(folder: Path) -> list[Row]:
    rows: list[Row] = []
    with up(Redis, folder / "redis") as redis:
        for name, opened in KEPT.items():
            async with opened(folder) as (kept, served_s):
                rows += await _measured(name, kept, served_s)
                settings = RedisSettings(url=redis.url, prefix=f"{name}:")
                wire = SinglePrimary(settings, Silent())
                await wire.start()
                cache = CachedDevices(kept, wire, settings, Silent())
                for batch in _batches(USERS // BATCH, every=True):
                    await cache.warm(batch)
                rows += await _measured(f"{name} behind Redis", cache, partial(spent_s, redis))
                await wire.stop()
    return rows


async def _measured(name: str, kept: Devices, served_s: Callable[[], float]) -> list[Row]:
    for batch in _batches(WARM_UP):
        with suppress(Unavailable):  # a server that just started on a busy machine takes its time
            await kept.for_users(batch)
    batches = iter(_batches(BATCHES))
    before_s = served_s()
    started_s, cpu_s = time.monotonic(), time.process_time()

    async def ask() -> None:
        for batch in batches:
            assert all(await kept.for_users(batch)), "every user has a device"

    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
    count = BATCH * BATCHES
    took_s, own_s = time.monotonic() - started_s, time.process_time() - cpu_s
    server_s = served_s() - before_s
    rate = count / took_s
    return [
        row("registry", f"{name}: users looked up a second", rate, "/s", "wanted", rate / WANTED),
        row("registry", f"{name}: CPU of a look-up in Waypost", own_s / count * 1e6, "µs"),
        row("registry", f"{name}: CPU of a look-up in the server", server_s / count * 1e6, "µs"),
    ]


def _batches(count: int, *, every: bool = False) -> list[list[tuple[AppId, UserId]]]:
    """So many batches, of any users or of *every* one in turn."""
    chance = random.Random(1)
    users = list(range(USERS))
    picked = [users[n * BATCH : (n + 1) * BATCH] if every else chance.sample(users, BATCH) for n in range(count)]
    return [[(AppId(APP), UserId(f"user-{user}")) for user in batch] for batch in picked]


@asynccontextmanager
async def _stored(stands: Stands, folder: Path) -> AsyncIterator[Kept]:
    with ExitStack() as exits:
        base = stands(folder, exits)
        store = await open_store(
            SqlSettings(**base.settings["store"]), clock=SystemClock(), peers=None, telemetry=Silent()
        )
        with connected(base.url) as connection:
            register(connection, devices("", USERS, web=False))
        yield store.devices, lambda: sum(base.cpu_s().values())
        await store.close()


@asynccontextmanager
async def _cassandra(folder: Path) -> AsyncIterator[Kept]:
    with up(Cassandra, folder / "cassandra") as server:
        host, port = server.url.split(":")
        settings = CassandraSettings(hosts=(host,), port=int(port), replication_factor=1, request_timeout_s=20)
        await migrate(settings)
        kept = CassandraDevices(settings)
        await _fill(kept)
        yield kept, partial(spent_s, server)
        await kept.close()


async def _fill(kept: CassandraDevices) -> None:
    """Write the rows alone: registering would be a bench of its own."""
    session, statements = await kept._link.made()
    rows = (_device(each) for each in devices("", USERS, web=False))

    async def write() -> None:
        for device in rows:
            await session.execute(*_flat(put(statements, device, b"filled by a bench")))

    await asyncio.gather(*(write() for _ in range(_FILLING)))


def _device(columns: dict[str, Any]) -> Device:
    return device_of([columns[name.strip().removeprefix("device.")] for name in DEVICE.split(",")])


def _flat(part: tuple[Any, Any]) -> tuple[Any, ...]:
    return part[0], *part[1]


KEPT: dict[str, Callable[[Path], AbstractAsyncContextManager[Kept]]] = {
    "SQLite": partial(_stored, embedded),
    "PostgreSQL": partial(_stored, on_postgres),
    "Cassandra": _cassandra,
}

"""The engines that every suite runs on."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.bench import Bench
from tests.contract.log import LogUnderTest, settings_of
from tests.contract.log_suites import ON_LOG
from tests.contract.registries import Keyspace, RegistryUnderTest, cached_under_test, cassandra_under_test
from tests.contract.sqlite import SqliteUnderTest
from tests.contract.stores import MemoryUnderTest, StoreUnderTest
from waypost.adapters.kafka.topics import Topics, prepare


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with today's schema and nothing in it: copied, it saves each test the migration."""
    database = tmp_path_factory.mktemp("schema") / "waypost.db"

    async def create() -> None:
        store = SqliteUnderTest(database)
        await store.open()
        await store.close()

    asyncio.run(create())
    return database


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each suite on every engine, those of Work also on the log, but for what differs there."""
    if "store" in metafunc.fixturenames:
        engines: list[Any] = ["memory", "sqlite"]
        if metafunc.function.__name__ in ON_LOG:
            engines.append(pytest.param("log", marks=pytest.mark.engines))
        metafunc.parametrize("store", engines, indirect=True)


@pytest.fixture(scope="session")
def log_prefix(kafka_bootstrap: str) -> str:
    """Topics of this process for all tests of the log: each begins where the one before ended."""
    prefix = f"contract-{uuid.uuid4().hex[:12]}."
    settings = settings_of(kafka_bootstrap, prefix, prefix)
    prepare(settings, Topics(settings))
    return prefix


@pytest_asyncio.fixture
async def store(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[StoreUnderTest]:
    """An empty store of each engine."""
    if request.param == "log":
        database = Path(shutil.copy(empty_database, tmp_path / "waypost.db"))
        under_test = LogUnderTest(
            database, request.getfixturevalue("kafka_bootstrap"), request.getfixturevalue("log_prefix")
        )
        await under_test.open()
        yield under_test
        await under_test.close()
        return
    async with empty_store(request.param, tmp_path, empty_database) as opened:
        yield opened


@asynccontextmanager
async def empty_store(kind: str, folder: Path, empty_database: Path) -> AsyncIterator[StoreUnderTest]:
    """A store of that engine."""
    if kind == "memory":
        yield MemoryUnderTest()
        return
    opened = SqliteUnderTest(Path(shutil.copy(empty_database, folder / "waypost.db")))
    await opened.open()
    yield opened
    await opened.close()


@pytest_asyncio.fixture(
    params=[
        "memory",
        "sqlite",
        *(pytest.param(name, marks=pytest.mark.engines) for name in ("cassandra", "memory+redis", "sqlite+redis")),
    ]
)
async def registry(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path
) -> AsyncIterator[RegistryUnderTest]:
    """An empty registry of devices of each engine."""
    if request.param == "cassandra":
        async with cassandra_under_test(request.getfixturevalue("cassandra_tables")) as opened:
            yield opened
        return
    engine, _, cache = request.param.partition("+")
    async with empty_store(engine, tmp_path, empty_database) as store:
        if not cache:
            yield store
            return
        async with cached_under_test(store, request.getfixturevalue("redis_url")) as opened:
            yield opened


@pytest.fixture(scope="session")
def cassandra_tables(cassandra_hosts: tuple[str, ...]) -> Keyspace:
    """A keyspace of this process for the tables of the registry."""
    return Keyspace(cassandra_hosts)


@pytest.fixture
def timed_store() -> StoreUnderTest:
    """A store of each engine whose leases end by time, so that a frozen worker may be overtaken and come back.

    Where ownership is the lease, a worker that is silent for too long is killed instead.
    """
    return MemoryUnderTest()


@pytest_asyncio.fixture
async def bench(store: StoreUnderTest) -> Bench:
    """One worker on an empty store."""
    return Bench(store, (await store.open_workers(1))[0])

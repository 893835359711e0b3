"""The engines that every suite runs on."""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from msgspec.structs import replace
from psycopg import sql

from scripts.services.postgres import Postgres
from scripts.services.shared import Shared
from tests.contract.balanced import check_balance
from tests.contract.bench import APP, Bench, begin_ids
from tests.contract.bulk_bench import registered
from tests.contract.campaign_bench import USERS, CampaignBench
from tests.contract.claims import ClaimsUnderTest
from tests.contract.clock import START
from tests.contract.copied import copied_under_test
from tests.contract.log import LogUnderTest, opened_log
from tests.contract.log import settings_of as log_settings_of
from tests.contract.log_clients import LogTopics
from tests.contract.promised import APART, ENGINES, FEEDS, IN_MEMORY_OR_FILE, STORES, needed_by
from tests.contract.registries import Keyspace, RegistryUnderTest, cached_under_test, cassandra_under_test
from tests.contract.sql import SqlUnderTest, settings_of
from tests.contract.stores import MemoryUnderTest, StoreUnderTest
from tests.engines import BuildSchema, beside, postgres_template, run_sql
from waypost.bootstrap.features import tables
from waypost.config import AppSettings, Config
from waypost.ports.promises import Promise
from waypost.stores.sql.database import prepare


@pytest.fixture(autouse=True)
def own_ids() -> None:
    """Ids of each test's own time, which the clocks of tests before it did not move on."""
    begin_ids()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with today's schema and nothing in it: copied, it saves each test the migration."""
    database = tmp_path_factory.mktemp("schema") / "waypost.db"

    async def create() -> None:
        store = SqlUnderTest(f"sqlite:///{database}")
        await store.open()
        await store.close()

    asyncio.run(create())
    return database


_EMPTY = """\
DO $$
DECLARE slice record;
BEGIN
    FOR slice IN SELECT relname FROM pg_class WHERE relname ~ '^dedup_[0-9]+$' LOOP
        EXECUTE format('DROP TABLE %I', slice.relname);
    END LOOP;
    FOR slice IN SELECT relname FROM pg_class WHERE relname = ANY(string_to_array({of_features}, ' ')) LOOP
        EXECUTE format('DELETE FROM %I', slice.relname);
    END LOOP;
    DELETE FROM notification; DELETE FROM content; DELETE FROM receipt; DELETE FROM dedup_slice; DELETE FROM journal;
    DELETE FROM reader; DELETE FROM counter; DELETE FROM device; DELETE FROM api_key; DELETE FROM bulk_job;
    DELETE FROM key_terms; DELETE FROM bulk_recipient; DELETE FROM bulk_piece; DELETE FROM bulk_count;
    DELETE FROM opt_out; DELETE FROM outbox; DELETE FROM feed_entry;
    DELETE FROM notification_reads; DELETE FROM erasure; DELETE FROM audit;
    DELETE FROM member; DELETE FROM arrival; DELETE FROM tail;
    DELETE FROM claim; DELETE FROM ownership WHERE shard IS NULL;
END $$
"""


def _with_partitions(url: str) -> None:
    """Today's schema, with the months in which tests live."""
    prepare(settings_of(url), START, tables())


@pytest.fixture(scope="session")
def postgres_schema() -> BuildSchema:
    """What is in each new database."""
    return _with_partitions


@pytest.fixture(scope="session")
def postgres_database(servers: Shared, postgres: Postgres, postgres_schema: BuildSchema) -> Iterator[str]:
    """A database of this process of the session."""
    name = f"contract_{os.getpid()}"
    template = postgres_template(servers, postgres, postgres_schema)
    run_sql(postgres.url, f"DROP DATABASE IF EXISTS {name}", f'CREATE DATABASE {name} TEMPLATE "{template}"')
    yield beside(postgres.url, name)
    run_sql(postgres.url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_postgres(postgres_database: str) -> Callable[[], None]:
    """Empties it: ten times faster than a database for each test."""

    def empty() -> None:
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(sql.SQL(_EMPTY).format(of_features=sql.Literal(" ".join(it.name for it in tables()))))

    return empty


@pytest.fixture
def emptied_postgres(postgres_database: str, empty_postgres: Callable[[], None]) -> str:
    """The same database, empty again."""
    empty_postgres()
    return postgres_database


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of ``Work`` on every engine; where one lacks what the test needs, it must fail there.

    The suites of other ports run on every store; with routing apart from sending they are tried where there is time.
    """
    if "store" in metafunc.fixturenames:
        needed = needed_by(metafunc)
        engines = list(ENGINES if needed else STORES)
        if metafunc.module.__name__.endswith(".test_feed"):
            engines += FEEDS
        metafunc.parametrize("store", [_on(engine, needed) for engine in engines], indirect=True)


def _on(engine: str, needed: frozenset[Promise]) -> Any:
    """One engine for a test, with what is to be known of it."""
    marks: list[pytest.MarkDecorator] = [] if engine in IN_MEMORY_OR_FILE else [pytest.mark.engines]
    if not needed and engine in APART:
        marks.append(pytest.mark.long)
    if lacked := needed - ENGINES.get(engine, needed):
        marks.append(pytest.mark.xfail(reason=f"lacks {', '.join(sorted(lacked))}", raises=AssertionError))
    return pytest.param(engine, marks=marks)


@pytest.fixture(scope="session")
def log_topics(kafka_bootstrap: str) -> Iterator[LogTopics]:
    """Topics of this process for all tests of the log."""
    prefix = f"contract-{uuid.uuid4().hex[:12]}."
    topics = LogTopics(log_settings_of(kafka_bootstrap, prefix, prefix))
    yield topics
    topics.close()


@pytest_asyncio.fixture
async def store(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[StoreUnderTest]:
    """An empty store of each engine."""
    if request.param == "log":
        async with empty_log(tmp_path, empty_database, request.getfixturevalue("log_topics")) as under_test:
            yield under_test
        return
    async with empty_store(request.param, tmp_path, request, empty_database) as opened:
        yield opened


@pytest_asyncio.fixture
async def log_store(tmp_path: Path, empty_database: Path, log_topics: LogTopics) -> AsyncIterator[LogUnderTest]:
    """An empty log, for what is its alone."""
    async with empty_log(tmp_path, empty_database, log_topics) as under_test:
        yield under_test


@pytest_asyncio.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engines)])
async def ledger_store(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path
) -> AsyncIterator[StoreUnderTest]:
    """An empty store that can be the ledger of a log."""
    kind = "ledger on postgres" if request.param == "postgres" else request.param
    async with empty_store(kind, tmp_path, request, empty_database) as opened:
        yield opened


@asynccontextmanager
async def empty_log(folder: Path, empty_database: Path, topics: LogTopics) -> AsyncIterator[LogUnderTest]:
    """A group that begins at the end of the topics, and an empty ledger."""
    async with opened_log(f"sqlite:///{shutil.copy(empty_database, folder / 'waypost.db')}", topics) as under_test:
        yield under_test


@asynccontextmanager
async def empty_store(
    kind: str, folder: Path, request: pytest.FixtureRequest, empty_database: Path, *, adds_up: bool = True
) -> AsyncIterator[StoreUnderTest]:
    """A store of that engine, whose balance *adds_up* in the end, unless a test writes behind its back."""
    if kind == "memory":
        in_memory = MemoryUnderTest()
        yield in_memory
        await check_balance(in_memory)
        return
    if kind == "copied":
        url = f"sqlite:///{shutil.copy(empty_database, folder / 'waypost.db')}"
        async with copied_under_test(url, request.getfixturevalue("cassandra_tables")) as copied:
            await copied.open()
            yield copied
            await copied.close()
        return
    opened: SqlUnderTest
    if kind == "sqlite":
        opened = SqlUnderTest(f"sqlite:///{shutil.copy(empty_database, folder / 'waypost.db')}")
    elif kind == "ledger on postgres":
        opened = SqlUnderTest(request.getfixturevalue("emptied_postgres"))
    else:
        opened = ClaimsUnderTest(request.getfixturevalue("emptied_postgres"), apart=kind == "handed over")
    await opened.open()
    yield opened
    if adds_up:
        await check_balance(opened)
    await opened.close()


@pytest_asyncio.fixture(
    params=[
        "memory",
        "sqlite",
        *(
            pytest.param(name, marks=pytest.mark.engines)
            for name in ("postgres", "cassandra", "memory+redis", "sqlite+redis")
        ),
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
    async with empty_store(engine, tmp_path, request, empty_database) as store:
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


@pytest_asyncio.fixture
async def campaign_bench(ledger_store: SqlUnderTest) -> CampaignBench:
    """An empty store with devices of all users."""
    (worker,) = await ledger_store.open_workers(1)
    made = CampaignBench(ledger_store, worker)
    made.ground = replace(ledger_store.ground_of(worker), config=Config(apps={APP: AppSettings()}))
    await asyncio.gather(*(registered(made, user) for user in USERS))
    return made

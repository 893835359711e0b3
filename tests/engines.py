"""Fixtures on real PostgreSQL, Redis, Kafka and Cassandra: each starts once a session, when the first test needs it.

A session is one run of pytest with all its workers, or all the runs that share the folder that WAYPOST_SERVICES names.
Each test has something of its own in them. A test that harms a server takes it from an `…_alone` fixture instead.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from scripts.services.cassandra import Cassandra
from scripts.services.kafka import Kafka
from scripts.services.postgres import Postgres, PostgresPair
from scripts.services.redis import Redis, RedisCluster, RedisSentinel
from scripts.services.s3 import S3
from scripts.services.service import Missing, Service
from scripts.services.shared import BASE, Shared, kept

DATABASES: Final = 1023
BuildSchema = Callable[[str], None]
"""Makes the tables in the empty database of that URL."""
Kind = TypeVar("Kind", bound=Service)
START_S: Final = 300
"""How long a test may take that is the first to need a server, on a machine that has much else to do."""
SESSION: Final = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """Whoever comes first owns the servers that will be started, and ends them."""
    if BASE not in os.environ:
        stack = config.stash[SESSION] = ExitStack()
        os.environ[BASE] = str(stack.enter_context(kept()))
        stack.callback(os.environ.pop, BASE)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what was started."""
    if SESSION in config.stash:
        config.stash[SESSION].close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what plainly uses a server; a parameter that asks for one by name carries the mark itself."""
    for item in items:
        if "servers" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.engines)
        if item.get_closest_marker("engines") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(START_S))


@pytest.fixture(scope="session")
def servers() -> Shared:
    """All servers of the session."""
    return Shared(Path(os.environ[BASE]))


def _started(servers: Shared, name: str, kind: type[Kind]) -> Kind:
    """The servers of that name; without them tests are skipped, under CI they fail."""
    try:
        service = servers.need(name)
    except Missing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))
    assert isinstance(service, kind)
    return service


def _shared(name: str, kind: type[Kind]) -> Any:
    """A fixture: the servers of that name, for all tests of the session."""

    @pytest.fixture(scope="session")
    def shared(servers: Shared) -> Kind:
        return _started(servers, name, kind)

    return shared


def _alone(name: str, kind: type[Kind]) -> Any:
    """A fixture: servers for one test at a time, to kill, freeze and stop, whatever the one before did to them."""

    @pytest.fixture
    def alone(servers: Shared) -> Iterator[Kind]:
        with servers.alone(f"use of {name}"):
            service = _started(servers, name, kind)
            yield service
            for node in service.nodes:
                node.thaw()

    return alone


postgres = _shared("postgres", Postgres)  # tests use postgres_url
redis_server = _shared("redis", Redis)  # redis_url
kafka = _shared("kafka", Kafka)  # kafka_bootstrap and kafka_prefix
cassandra = _shared("cassandra", Cassandra)  # cassandra_hosts and cassandra_keyspace
postgres_alone = _alone("postgres+alone", Postgres)
postgres_pair_alone = _alone("postgres-pair", PostgresPair)  # tests use postgres_pair
redis_alone = _alone("redis+alone", Redis)
kafka_alone = _alone("kafka+alone", Kafka)
cassandra_alone = _alone("cassandra+alone", Cassandra)
redis_cluster = _alone("redis-cluster", RedisCluster)
redis_sentinel = _alone("redis-sentinel", RedisSentinel)
kafka_three = _alone("kafka-three", Kafka)
cassandra_three = _alone("cassandra-three", Cassandra)
s3 = _alone("s3", S3)
cassandra_joined = _alone("cassandra-three+joined", Cassandra)  # three that a fourth joins


@pytest.fixture
def postgres_pair(postgres_pair_alone: PostgresPair) -> PostgresPair:
    """A primary with a standby, both new: one test's failover is not the next one's beginning."""
    if postgres_pair_alone.was_changed:
        postgres_pair_alone.anew()
    return postgres_pair_alone


@pytest.fixture(scope="session")
def postgres_schema() -> BuildSchema | None:
    """What is in each new database: nothing, unless a conftest.py overrides this."""
    return None


@pytest.fixture
def postgres_url(servers: Shared, postgres: Postgres, postgres_schema: BuildSchema | None) -> Iterator[str]:
    """A database of this test's own."""
    name = f"test_{uuid.uuid4().hex}"
    run_sql(postgres.url, f'CREATE DATABASE {name} TEMPLATE "{postgres_template(servers, postgres, postgres_schema)}"')
    yield beside(postgres.url, name)
    run_sql(postgres.url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url(redis_server: Redis) -> str:
    """An empty numbered database of this test's own; channels of pub/sub, though, are everybody's."""
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        number = 1 + int(client.incr("databases given to tests")) % DATABASES
    url = f"{redis_server.url.removesuffix('/0')}/{number}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka: Kafka) -> str:
    """`bootstrap.servers`; topics and groups of tests begin with `kafka_prefix`."""
    return kafka.url


@pytest.fixture
def kafka_prefix(kafka_bootstrap: str) -> Iterator[str]:
    """How this test's topics, groups and transactional ids begin; the topics are deleted after it."""
    from confluent_kafka.admin import AdminClient

    prefix = f"test-{uuid.uuid4().hex[:12]}."
    yield prefix
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    topics = [name for name in admin.list_topics(timeout=30).topics if name.startswith(prefix)]
    for deleted in admin.delete_topics(topics).values() if topics else ():
        deleted.result(timeout=30)


@pytest.fixture(scope="session")
def cassandra_hosts(cassandra: Cassandra) -> tuple[str, ...]:
    """`address:port` of each node."""
    return tuple(cassandra.url.split(","))


@pytest.fixture
def cassandra_keyspace(cassandra: Cassandra) -> Iterator[str]:
    """An empty keyspace of this test's own."""
    name = f"test_{uuid.uuid4().hex}"
    cassandra.cql(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    yield name
    cassandra.cql(f"DROP KEYSPACE {name}")


def postgres_template(servers: Shared, postgres: Postgres, build: BuildSchema | None) -> str:
    """The database that those of tests with this schema are copies of, built once a session."""
    if build is None:
        return "template1"
    name = f"template_{build.__module__}_{build.__qualname__}".replace(".", "_").lower()
    built = servers.base / name
    with servers.alone(name):
        if not built.exists():
            run_sql(postgres.url, f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"')
            build(beside(postgres.url, name))
            built.touch()
    return name


def run_sql(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def beside(url: str, database: str) -> str:
    """The URL of another database of the same server."""
    return f"{url.rpartition('/')[0]}/{database}"

"""What every test on a real server relies on: something of its own, and levers that do what they say."""

from __future__ import annotations

import time

import psycopg
import pytest
import redis
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scripts.services.cassandra import Cassandra
from scripts.services.service import Service
from tests.levers import comes_back, stands_still

ALONE = ["postgres_alone", "redis_alone"]  # those on Java take half a minute to come back: tests/faults


@pytest.fixture(params=ALONE)
def alone(request: pytest.FixtureRequest, servers: object) -> Service:
    """A server of each kind that this test may harm."""
    service = request.getfixturevalue(request.param)
    assert isinstance(service, Service)
    return service


@pytest.mark.parametrize("_time", [1, 2])
def test_each_test_has_a_database_of_its_own(postgres_url: str, _time: int) -> None:
    """What one test creates, no other sees."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE made_by_one_test (n integer)")


def test_each_test_has_an_empty_redis(redis_url: str) -> None:
    """Numbered databases are handed out in turn, emptied."""
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("key", "value")


def test_topics_of_a_test_are_its_own(kafka_bootstrap: str, kafka_prefix: str) -> None:
    """A topic under the test's prefix can be made, as a real client sees it."""
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.create_topics([NewTopic(f"{kafka_prefix}topic", 2)])[f"{kafka_prefix}topic"].result(timeout=30)
    while not (made := admin.list_topics(f"{kafka_prefix}topic", timeout=30).topics[f"{kafka_prefix}topic"].partitions):
        time.sleep(0.05)  # the broker that is asked has not heard of it yet
    assert len(made) == 2


def test_each_test_has_an_empty_keyspace(cassandra: Cassandra, cassandra_keyspace: str) -> None:
    """A table made there holds what is written to it."""
    cassandra.cql(f"CREATE TABLE {cassandra_keyspace}.t (k text PRIMARY KEY, v text)")
    assert cassandra.cql(f"SELECT k FROM {cassandra_keyspace}.t") == []  # noqa: S608 - names of our own


def test_a_killed_server_comes_back_with_its_data_and_an_ended_one_too(alone: Service) -> None:
    """After SIGKILL nothing of it is left; it starts again where it was, as it does after a clean end."""
    comes_back(alone, 1)


def test_a_frozen_server_stands_still_with_all_its_processes_until_it_is_thawed(alone: Service) -> None:
    """Its connections stay open meanwhile, nothing answers."""
    stands_still(alone, 1)

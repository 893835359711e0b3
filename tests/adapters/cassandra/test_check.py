"""What ``check-config --connect`` is told of a cluster."""

from __future__ import annotations

import uuid

import pytest

from scripts.services.cassandra import Cassandra
from tests.contract.registries import Keyspace, wake_ups_closed
from waypost.domain.errors import Unavailable
from waypost.stores.cassandra.check import CassandraFindings, look
from waypost.stores.cassandra.schema import REVISION

pytestmark = pytest.mark.engines


@pytest.mark.asyncio
async def test_a_cluster_says_its_version_its_copies_and_what_is_unsafe(cassandra_hosts: tuple[str, ...]) -> None:
    keyspace = Keyspace(cassandra_hosts)
    with wake_ups_closed():
        before = await look(keyspace.settings)
        assert (before.copies, before.revision) == (None, 0)
        assert list(before.unsafe()) == ["tables are missing: waypost migrate"]
        found = await look(await keyspace.empty())
    assert found.version.startswith("5.")
    assert (found.nodes, found.away, found.copies, found.is_simple, found.revision) == (1, (), 1, False, REVISION)
    (said,) = found.unsafe()
    assert "1 of each row" in said


@pytest.mark.asyncio
async def test_a_keyspace_that_somebody_else_made_is_taken_as_it_is(
    cassandra: Cassandra, cassandra_keyspace: str
) -> None:
    keyspace = Keyspace(cassandra.url.split(","), cassandra_keyspace)
    with wake_ups_closed():
        found = await look(await keyspace.empty())
    assert found.is_simple
    assert found.revision == REVISION


def test_nodes_that_are_away_and_too_few_copies_are_unsafe() -> None:
    found = CassandraFindings("5.0.9", 3, ("127.0.0.3:9042",), 2, is_simple=True, revision=REVISION)
    assert [each.split(":")[0] for each in found.unsafe()] == ["away", "2 of each row", "SimpleStrategy"]


@pytest.mark.asyncio
async def test_a_cluster_that_is_not_there_is_away() -> None:
    nowhere = Keyspace(["127.0.0.1:1"], f"k{uuid.uuid4().hex[:8]}")
    with wake_ups_closed(), pytest.raises(Unavailable):
        await look(nowhere.settings)

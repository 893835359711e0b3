"""Who is away is told when it changes, and is a metric that an alert stands on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, cast

import pytest

from scripts.observability.alerts import ALERTS
from tests.contract.registries import Keyspace, wake_ups_closed
from tests.shows import shows
from tests.unit.adapters.noted import Noted
from waypost.domain.errors import Unavailable
from waypost.stores.cassandra.devices import CassandraDevices
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.cassandra.nodes import NodeWatch
from waypost.telemetry import Event, Metric


class Link:
    """A link to nodes that are listed as the cluster lists them, or to nobody."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.rows: list[list[tuple[str, int]]] | None = [
            [("127.0.0.1", ports[0])],
            [("127.0.0.1", it) for it in ports[1:]],
        ]

    async def made(self) -> Any:
        """See CassandraLink."""
        if self.rows is None:
            raise Unavailable("nobody answers")
        answers = itertools.cycle(self.rows)

        class Session:
            """A session that is asked for itself, then for its peers."""

            async def execute(self, statement: str) -> list[tuple[str, int]]:
                return next(answers)

        return Session(), None


@shows("S1-124")
@pytest.mark.asyncio
async def test_nodes_that_take_no_connection_are_told_of_when_that_changes() -> None:
    """Two of three, then all of them, of whom it still knows; then one is back."""
    nodes = [await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0) for _ in range(3)]
    ports = [node.sockets[0].getsockname()[1] for node in nodes]
    link, told = Link(ports), Noted()
    watch = NodeWatch(cast(CassandraLink, link), told)
    await watch.look()
    assert (told.gauges, told.events) == ({Metric.REGISTRY_NODES_AWAY: 0}, [])
    for node in nodes[1:]:
        node.close()
    for _ in range(2):
        await watch.look()
    named = " ".join(f"127.0.0.1:{port}" for port in sorted(ports[1:]))
    assert told.events == [(Event.REGISTRY_NODES, {"away": named, "count": 2, "nodes": 3})]
    assert told.gauges == {Metric.REGISTRY_NODES_AWAY: 2}
    nodes[0].close()
    link.rows = None
    await watch.look()
    assert told.gauges == {Metric.REGISTRY_NODES_AWAY: 3}
    back = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", ports[2])
    await watch.look()
    assert told.gauges == {Metric.REGISTRY_NODES_AWAY: 2}
    assert [fields["count"] for _, fields in told.events] == [2, 3, 2]
    back.close()


@pytest.mark.engines
@pytest.mark.asyncio
async def test_a_real_cluster_lists_its_nodes(cassandra_hosts: tuple[str, ...]) -> None:
    told = Noted()
    with wake_ups_closed():
        devices = CassandraDevices(await Keyspace(cassandra_hosts).empty(), telemetry=told)
        await devices.nodes.look()
        await devices.close()
    assert (told.gauges, len(devices.nodes._known)) == ({Metric.REGISTRY_NODES_AWAY: 0}, len(cassandra_hosts))


@shows("S1-124")
def test_an_alert_stands_on_two() -> None:
    (alert,) = [alert for alert in ALERTS if Metric.REGISTRY_NODES_AWAY.label in alert.expression]
    assert (alert.expression, alert.severity) == (f"{Metric.REGISTRY_NODES_AWAY.label} >= 2", "critical")

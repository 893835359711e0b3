"""The registry goes under load and comes back: notifications wait for it, and none fails for it."""

from __future__ import annotations

import asyncio
import random
import uuid
from pathlib import Path
from typing import Any

import pytest

from scripts.services.cassandra import Cassandra
from tests.journeys.balance import listed
from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.engines, pytest.mark.timeout(240)]

BACK_S = 120.0


def on(nodes: Cassandra, keyspace: str, copies: int = 1) -> dict[str, Any]:
    """The settings of a service that keeps its devices there."""
    hosts = [nodes.address(node) for node in nodes.nodes]
    section = {"hosts": hosts, "port": nodes.ports[0], "keyspace": keyspace, "replication_factor": copies}
    return {"devices": "cassandra", "cassandra": section}


@shows("S1-124")
@pytest.mark.timeout(600)
@pytest.mark.survives(
    "every node killed", on="cassandra", so="notifications wait and none fails, intake goes on, a registration 503"
)
async def test_with_every_node_down_notifications_wait_and_intake_goes_on(
    tmp_path: Path, cassandra_alone: Cassandra, survived: Survived
) -> None:
    """Those of a bulk list, too; a registration is refused, and asked to come again."""
    rng = random.Random(7)
    async with running(tmp_path, workers=2, **on(cassandra_alone, f"away_{uuid.uuid4().hex[:16]}")) as service:
        audience = Audience(service)
        await audience.register(8)
        load = Load(service, audience, rng)
        await load.run(4, limit=60)
        submitting = asyncio.create_task(load.run(4, limit=400, pause_s=0.02))
        await load.grown(by=20)
        cassandra_alone.kill()
        await until(lambda: _said(service, "registry.away"), "it says that the registry is away")
        await load.grown(by=60)
        waiting = await _open(service)
        assert waiting > 0, "they wait"
        device = {"platform": "ios", "token": "ab" * 32}
        status, answer = await service.ask("PUT", "/v1/devices/late/phone", device, once=True)
        assert (status, answer["code"]) == (503, "storage_busy")
        job = {"notification": {"title": "All"}, "recipients": list(load.users)}
        status, made = await service.ask("POST", "/v1/bulk", job)
        assert status in (201, 202), made
        cassandra_alone.start()
        await submitting
        await until(lambda: _said(service, "registry.back"), "it says that the registry is back", BACK_S)
        await until(lambda: _finished(service, made["id"]), "the list is sent to", BACK_S)
        told = await _bulk_counts(service, made["id"])
        assert told == {"sent": len(load.users)}
        await until(lambda: _registered(service, device), "devices are registered again", BACK_S)
        survived(waited=waiting, sent_to_a_list=told["sent"])


async def test_a_registry_elsewhere_is_not_walked_for_a_bulk_job(
    tmp_path: Path, cassandra: Cassandra, cassandra_keyspace: str
) -> None:
    async with running(tmp_path, workers=1, **on(cassandra, cassandra_keyspace)) as service:
        status, answer = await service.ask("POST", "/v1/bulk", {"notification": {"title": "All"}, "registry": {}})
        assert status == 400, answer
        assert answer["faults"][0]["path"] == "registry"


async def _registered(service: Service, device: dict[str, str]) -> bool:
    status, answer = await service.ask("PUT", "/v1/devices/late/phone", device, once=True)
    assert status in {200, 201, 503}, answer
    return status != 503


async def _said(service: Service, event: str) -> bool:
    return bool(service.log(event))


async def _open(service: Service) -> int:
    details = await listed(service)
    return sum(each["status"] in ("pending", "processing") for each in details.values())


async def _finished(service: Service, job: str) -> bool:
    status, found = await service.ask("GET", f"/v1/bulk/{job}")
    return status == 200 and found["state"] == "finished"


async def _bulk_counts(service: Service, job: str) -> dict[str, int]:
    _, found = await service.ask("GET", f"/v1/bulk/{job}")
    return {status: n for status, n in found["counts"].items() if n}

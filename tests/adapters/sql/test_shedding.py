"""The door before a store that is slower than its callers: who would wait too long is told so at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from tests.adapters.rest.service import Service, shown
from tests.adapters.sql.conftest import OpenStore
from tests.journeys.harness import until
from tests.shows import shows
from waypost.entrypoints.rest.app import build_app
from waypost.stores.sql.store import Store
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.telemetry import Metric

pytestmark = pytest.mark.asyncio

JSON = {"content-type": "application/json"}


class SlowStore:
    """A store in the middle of a commit that ends when it is told to."""

    def __init__(self, store: Store) -> None:
        self.end = threading.Event()
        self.store = store
        began = threading.Event()

        def hang(_: Transaction, ops: Sequence[None]) -> Sequence[None]:
            began.set()
            self.end.wait()
            return ops

        commit: OperationKind[None, None] = OperationKind("hang", hang, durable=False, patient=True)
        self.hanging = store.database.commits.submit(commit, None)
        began.wait()

    async def until_share(self, share: float) -> None:
        """Return when so large a part of what may be waited has been."""

        async def is_reached() -> bool:
            return self.store.database.commits.pressure().share >= share

        await until(is_reached, f"a pressure of {share}")


@pytest_asyncio.fixture
async def slow(open_at: OpenStore, tmp_path: Path) -> AsyncIterator[SlowStore]:
    """A store that writes nothing yet; it goes on after the test at the latest."""
    slow = SlowStore(await open_at(tmp_path / "a.db", lock_timeout_s=0.5))
    try:
        yield slow
    finally:
        slow.end.set()


async def _service(slow: SlowStore) -> Service:
    service = Service()
    await service.add_keys()
    commits = slow.store.database.commits
    intake = msgspec.structs.replace(service.api.intake, work=slow.store.work, pressure=commits.pressure)
    service.app = build_app(msgspec.structs.replace(service.api, intake=intake))
    return service


async def _taken(client: httpx.AsyncClient, said: dict[str, Any]) -> int:
    """Submit until nobody says that the store is busy, or away: on a slow disk one accept may take more than may be."""
    while (answer := await client.post("/v1/notifications", json=said)).status_code == 503:
        assert answer.json()["code"] in ("storage_busy", "storage_away")
    return answer.status_code


@shows("S3-104")
async def test_who_would_wait_too_long_is_refused_at_once_and_taken_later(slow: SlowStore) -> None:
    """Before its body is decoded; so is who waits already when its time is over, and the next is taken as ever."""
    service = await _service(slow)
    async with service.client() as client, asyncio.timeout(60):
        waiting = asyncio.create_task(client.post("/v1/notifications", json=shown("first")))
        await slow.until_share(1.0)
        for path in ("/v1/notifications", "/v1/notifications/batch"):
            refused = await client.post(path, content=b"never looked at", headers=JSON)
            problem = refused.json()
            assert (refused.status_code, problem["code"]) == (503, "storage_busy")
            assert 1 <= int(refused.headers["retry-after"]) <= 4
        assert (Metric.SHED, {"app": "demo", "cause": "accepts"}) in service.telemetry.counts
        slow.end.set()
        assert ((await waiting).status_code, (await waiting).json()["code"]) == (503, "storage_busy")
        await slow.hanging
        said = shown("second", idempotency_key="order-7")
        assert await _taken(client, said) in (200, 202)
        assert await _taken(client, said) == 200


async def test_outcomes_that_wait_shed_submissions(slow: SlowStore) -> None:
    """Or deliveries would starve behind what is accepted."""
    service = await _service(slow)
    outcome: OperationKind[None, None] = OperationKind("outcome", lambda _, ops: ops, durable=False, patient=True)
    future = slow.store.database.commits.submit(outcome, None)
    async with service.client() as client, asyncio.timeout(60):
        await slow.until_share(1.0)
        assert (await client.post("/v1/notifications", json=shown())).status_code == 503
        assert (Metric.SHED, {"app": "demo", "cause": "outcomes"}) in service.telemetry.counts
        slow.end.set()
        await future
        assert await _taken(client, shown()) in (200, 202)

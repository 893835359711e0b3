"""The log stack while the PostgreSQL of its ledger is away: what is accepted is recorded when it is back."""

from __future__ import annotations

import asyncio
import random
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.journeys.balance import balance
from tests.journeys.harness import Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.journeys.test_log_stack import log_stack
from tests.shows import shows
from tests.tables import AddRow

KEYED = {"user_id": "user-0", "title": "Once", "idempotency_key": "k"}


@shows("S1-63", "S1-126")
@pytest.mark.engines
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_requests_keep_their_202_while_the_ledger_is_away(
    postgres_alone: Postgres,
    tmp_path: Path,
    rng: random.Random,
    kafka_bootstrap: str,
    kafka_prefix: str,
    table: AddRow,
) -> None:
    """Killed under load; the service itself is started again meanwhile, and knows its callers from a file."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS ledger WITH (FORCE)", "CREATE DATABASE ledger")
    store = {"url": beside(postgres_alone.url, "ledger"), "run_dir": str(tmp_path / "run")}
    async with running(tmp_path, workers=1, store=store, **await log_stack(kafka_bootstrap, kafka_prefix)) as service:
        audience = Audience(service)
        await audience.register(10)
        load = Load(service, audience, rng, idempotency_key=None, scheduled_at=None)
        callers = asyncio.create_task(load.run(6, limit=150, pause_s=0.02))
        await load.grown(40)
        began = time.time()
        await asyncio.to_thread(postgres_alone.kill)
        await callers
        before = await _while_away(service)

        await service.kill(service.pid)
        await service.start()
        await load.run(6, limit=200)
        assert await _while_away(service) >= before
        accepted_away = len(load.ledger.entries) - 40

        await asyncio.to_thread(postgres_alone.start)
        await load.run(6, limit=250)

        async def reads_again() -> bool:
            return bool((await service.ask("GET", "/v1/notifications?limit=1"))[0] == 200)

        await until(reads_again, "reads are answered")
        ended = Kill(began, time.time())
        result = await balance(service, load.ledger, kills=[ended])
        _, ready = await service.ask("GET", "/health/ready")
        assert ready["checks"]["ledger"] == "ok" and "identity" not in ready["checks"]
        table("the ledger away", stack="log", accepted_away=accepted_away, **result.row())


async def _while_away(service: Service) -> float:
    """What is answered and what is not; the age of the snapshot in seconds."""

    async def noticed() -> bool:
        return bool((await service.ask("GET", "/v1/notifications?limit=1"))[0] == 503)

    await until(noticed, "reads are refused")
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for method, path, body in (
        ("POST", "/v1/notifications", {"user_id": "user-0", "title": "Later", "scheduled_at": soon}),
        ("POST", "/v1/notifications", KEYED),
        ("POST", "/v1/bulk", {"notification": {"title": "All"}, "recipients": ["user-0"]}),
        ("PUT", "/v1/devices/user-0/ios", {"platform": "ios", "token": "ab" * 32}),
    ):
        status, answer = await service.ask(method, path, body)
        assert (status, answer["code"]) == (503, "storage_away"), path
    status, ready = await service.ask("GET", "/health/ready")
    assert (status, ready["checks"]["ledger"]) == (200, "away"), ready
    identity = service.directory / "run" / "identity.json"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    assert service.key.encode() not in identity.read_bytes()
    snapshot, _, age = ready["checks"]["identity"].partition(", ")
    assert snapshot == "snapshot"
    return float(age.split()[0])

"""Drills of the runbook: the trouble is caused for real, Prometheus raises the alert, the page's commands end it."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journeys.harness import Service, running, until
from tests.journeys.watching import Watch

pytestmark = [pytest.mark.asyncio, pytest.mark.long]  # `make drill` runs them: each waits for a patient alert

USERS = 200


@asynccontextmanager
async def watched(folder: Path, **settings: Any) -> AsyncIterator[tuple[Service, Watch]]:
    """Run a service that Prometheus watches."""
    async with running(folder, workers=1, **settings) as service, Watch(service) as watch:
        yield service, watch


async def runbook(service: Service, *command: str, status: int = 0) -> str:
    """Run a command of the page as an operator does."""
    environ = os.environ | {"WAYPOST_URL": service.url, "WAYPOST_API_KEY": service.key}
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "waypost.cli", *command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, errors = await run.communicate()
    assert run.returncode == status, said.decode() + errors.decode()
    return said.decode()


async def register(service: Service) -> None:
    """Give each user an Android device."""
    made = await service.lab.ask("POST", "/tokens", {"platform": "android", "count": USERS})
    for n, token in enumerate(made["tokens"]):
        status, said = await service.ask("PUT", f"/v1/devices/u{n}/phone", {"platform": "android", "token": token})
        assert status == 201, said


async def send(service: Service, title: str) -> None:
    """Send something to every user."""
    items = [{"user_id": f"u{n}", "title": title} for n in range(USERS)]
    status, said = await service.ask("POST", "/v1/notifications/batch", {"notifications": items})
    assert status < 300, said


async def sending(service: Service) -> None:
    """Send again and again, until cancelled."""
    for n in range(10_000):
        await send(service, f"number {n}")
        await asyncio.sleep(1)  # the pace of callers, not a wait for something


async def test_delivery_failing(tmp_path: Path) -> None:
    """The provider refuses every message; mended, what failed is replayed."""
    async with watched(tmp_path) as (service, watch):
        await register(service)
        await service.lab.script({"where": "fcm", "do": {"answer": {"status": 400, "reason": "INVALID_ARGUMENT"}}})
        callers = asyncio.create_task(sending(service))
        assert await watch.is_raised("WaypostDeliveryFailing")
        assert "INVALID_ARGUMENT" in await runbook(service, "dead", "list")
        assert float(await watch.value('waypost:failures:ratio10m{code="INVALID_ARGUMENT"}') or 0) > 0.9
        await service.lab.heal()
        assert await watch.is_over("WaypostDeliveryFailing")
        callers.cancel()
        await runbook(service, "dead", "replay", "--code", "INVALID_ARGUMENT")
        await until(lambda: _none_dead(service), "the end of the dead letters")


async def _none_dead(service: Service) -> bool:
    return not json.loads(await runbook(service, "dead", "list", "--json"))["items"]


async def test_provider_stopped(tmp_path: Path) -> None:
    """The provider is away: the breaker opens, and closes by itself once it is back."""
    async with watched(tmp_path) as (service, watch):
        await register(service)
        await service.lab.script({"where": "fcm", "do": {"answer": {"status": 503, "reason": "UNAVAILABLE"}}})
        await send(service, "waits")
        assert await watch.is_raised("WaypostProviderStopped")
        (opened, *_) = service.log("breaker.opened")
        assert opened["credential"] == "demo/fcm"
        _, ready = await service.ask("GET", "/health/ready")
        assert "waits" in ready["checks"]["provider demo/fcm"]
        await service.lab.heal()
        assert await watch.is_over("WaypostProviderStopped")
        await until(lambda: _closed(service), "the closed breaker")


async def _closed(service: Service) -> bool:
    return bool(service.log("breaker.closed"))


async def test_outcomes_held(tmp_path: Path) -> None:
    """Somebody else holds the store's file while providers answer; given back, all is written, and sent once."""
    async with watched(tmp_path) as (service, watch):
        await register(service)
        await service.lab.script({"where": "fcm", "do": {"latency_ms": 8_000}})
        await send(service, "written late")
        await until(service.lab.copies, "deliveries that are taken and not yet answered")
        with closing(sqlite3.connect(service.store_path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await watch.is_raised("WaypostOutcomesHeld")
            assert service.log("outcomes.held")
            other.execute("ROLLBACK")
        assert await watch.is_over("WaypostOutcomesHeld")
        assert service.log("outcomes.resumed")
        await service.lab.heal()
        await until(lambda: _all_sent(service), "all receipts")
        copies = await service.lab.copies()
        assert (len(copies), {n for of_one in copies.values() for n in of_one.values()}) == (USERS, {1})


async def _all_sent(service: Service) -> bool:
    _, balance = await service.ask("GET", "/v1/balance")
    return bool(balance["total"]["deliveries"]["ended"].get("sent") == USERS)


async def test_credential_ending(tmp_path: Path) -> None:
    """A key ends in ten days; with the new end in the configuration, and a reload, it does not."""
    soon = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=10)
    async with watched(tmp_path, app={"expires_on": {"fcm": soon}}) as (service, watch):
        assert await watch.is_raised("WaypostCredentialEnding")
        assert "WaypostCredentialEndsNow" not in await watch.raised()
        tree = yaml.safe_load(service.config_path.read_text())
        tree["apps"]["demo"]["expires_on"] = {"fcm": soon + dt.timedelta(days=365)}
        service.config_path.write_text(yaml.safe_dump(tree))
        await runbook(service, "check-config", "--config", str(service.config_path))
        os.kill(service.pid, signal.SIGHUP)
        assert await watch.is_over("WaypostCredentialEnding")


async def test_down(tmp_path: Path) -> None:
    """All of it is killed; started again on the same store, it answers."""
    async with watched(tmp_path) as (service, watch):
        await service.kill(service.pid)
        assert await watch.is_raised("WaypostDown")
        await service.start()
        assert await watch.is_over("WaypostDown")

"""SIGTERM: what is in flight settles, then the process ends; nothing is lost and nothing is repeated."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.journeys.balance import balance
from tests.journeys.harness import running
from tests.journeys.load import Audience, Load
from tests.tables import AddRow

DRAIN_TIMEOUT_S = 20.0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.asyncio
async def test_sigterm_settles_what_is_in_flight(
    workers: int, tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """The providers take 500 ms to answer; the process ends with 0 in time, and the next one repeats nothing."""
    async with running(tmp_path, workers=workers, drain_timeout_s=DRAIN_TIMEOUT_S) as service:
        audience = Audience(service)
        await audience.register(30)
        load = Load(service, audience, rng)
        await service.lab.script({"do": {"latency_ms": 500}})
        callers = asyncio.create_task(load.run(16, limit=400, pause_s=0.02))
        await load.grown(300)
        began_s = time.monotonic()
        os.kill(service.pid, signal.SIGTERM)
        status = await service.ended(DRAIN_TIMEOUT_S + 5)
        took_s = time.monotonic() - began_s
        assert status == 0
        reached = sum(len(tokens) for tokens in (await service.lab.copies()).values())
        await service.lab.heal()
        await service.start()
        load.stop()
        await callers
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        table(
            "SIGTERM",
            workers=workers,
            exit=status,
            drained_s=f"{took_s:.1f}",
            devices_reached=reached,
            **result.row(),
        )


@pytest.mark.asyncio
async def test_one_slow_client_holds_up_nothing(tmp_path: Path, rng: random.Random, table: AddRow) -> None:
    """Its upload trickles for ever: leasing stops all the same, the end comes at the limit, nothing is repeated."""
    async with running(tmp_path, workers=1, drain_timeout_s=3.0, lanes={"normal": {"in_flight": 20}}) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Load(service, audience, rng, scheduled_at=None, guarantee=None)
        await service.lab.script({"do": {"latency_ms": 500}})  # a backlog that takes longer than the drain
        await load.submit_together([load.compose(urgency="normal", kind="visible", title=f"{n}") for n in range(250)])
        reader, writer = await asyncio.open_connection(*service.url.removeprefix("http://").split(":"))
        head = f"POST /v1/notifications HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {service.key}\r\n"
        writer.write(f"{head}content-type: application/json\r\ncontent-length: 1000\r\n\r\n ".encode())
        await service.ask("GET", "/health/ready", anew=True)  # in the order of what reached it
        os.kill(service.pid, signal.SIGTERM)
        assert await service.ended(60) == 0
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        reached = sum(len(tokens) for tokens in (await service.lab.copies()).values())
        await service.lab.heal()
        await service.start()
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        table("SIGTERM with a slow client", devices_reached=reached, **result.row())

"""A delivery must not come to cost more: its CPU in turns of a calibration loop of the same run, never a time."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bounds
from benchmarks.programs import cpu_s
from benchmarks.registry import iphones, register
from tests.journeys.harness import Service, running, until
from tests.tables import AddRow

USERS = 400
BATCH = 100
WARM_UP, MEASURED = 4, 12
"""Batches."""


@pytest.mark.asyncio
async def test_a_delivery_costs_a_bounded_multiple_of_a_loop(tmp_path: Path, table: AddRow) -> None:
    """One worker, one iOS device a user, from REST to receipts; the lab has a process of its own and is not counted."""
    async with running(tmp_path, workers=1) as service:
        register(service.store_path, iphones(USERS))
        before = await _delivered(service, 0, WARM_UP)
        loops = [bounds.calibration_us()]
        spent_s = cpu_s(service.pid)
        after = await _delivered(service, WARM_UP, MEASURED)
        spent_s = cpu_s(service.pid) - spent_s
        loops.append(bounds.calibration_us())
    delivery_us, loop_us = spent_s / (after - before) * 1e6, sum(loops) / len(loops)
    ratio = delivery_us / loop_us
    table("CPU of a delivery", delivery_us=f"{delivery_us:.0f}", loop_us=f"{loop_us:.1f}", ratio=f"{ratio:.1f}")
    assert after - before == MEASURED * BATCH
    assert bounds.DELIVERY * bounds.FLOOR < ratio < bounds.DELIVERY


async def _delivered(service: Service, first: int, batches: int) -> int:
    """Submit so many batches and wait until the last is final; how many deliveries the lab has accepted by then."""

    async def submit(number: int) -> list[str]:
        items = [_notification(n) for n in range(number * BATCH, (number + 1) * BATCH)]
        status, answer = await service.ask("POST", "/v1/notifications/batch", {"notifications": items})
        assert status == 202, answer
        return [each["notification"]["id"] for each in answer["results"]]

    accepted = await asyncio.gather(*(submit(number) for number in range(first, first + batches)))
    wanted = (first + batches) * BATCH

    async def arrived() -> bool:
        counts = await service.lab.ask("GET", "/counts")
        return bool(counts["apns"]["accepted"] >= wanted)

    await until(arrived, f"{wanted} deliveries")
    for ids in accepted:
        await until(partial(_is_sent, service, ids[-1]), f"the end of {ids[-1]}")
    return wanted


async def _is_sent(service: Service, notification_id: str) -> bool:
    status, answer = await service.ask("GET", f"/v1/notifications/{notification_id}")
    return status == 200 and answer["notification"]["status"] == "sent"


def _notification(n: int) -> dict[str, Any]:
    body = f"Number {n} was left at the front door at {time.time_ns()}."
    return {"user_id": f"vip-{n % USERS}", "title": "Your parcel is here", "body": body, "data": {"mark": str(n)}}

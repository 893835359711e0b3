"""Poison: one notification that ends every worker that touches it does not take the others with it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.journeys.balance import final_stories
from tests.journeys.harness import running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.tables import AddRow

NEIGHBOURS = 40
SABOTAGE = """
import os, signal
from waypost.channels.apns.sender import ApnsSender

send = ApnsSender.send

def sabotaged(self, deliveries, done):
    if any(each.message.content.title == "poison" for each in deliveries):
        {act}
    send(self, deliveries, done)

ApnsSender.send = sabotaged
"""


@shows("S3-63")
@pytest.mark.parametrize(
    ("death", "act"),
    [("dies", "os.kill(os.getpid(), signal.SIGKILL)"), ("raises", "raise ValueError('a fault of the code')")],
)
@pytest.mark.asyncio
async def test_a_notification_that_ends_its_worker_fails_alone(
    death: str, act: str, tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """Alone three times when its worker ended, it is failed(poison); what was leased with it is delivered."""
    async with running(tmp_path, sitecustomize=SABOTAGE.format(act=act), workers=2) as service:
        audience = Audience(service)
        await audience.register(4, (("ios",), ("ios", "android")))
        load = Load(service, audience, rng)
        users = load.users
        bodies = [
            {"user_id": users[n % len(users)], "title": "poison" if n == NEIGHBOURS // 2 else f"News {n}"}
            for n in range(NEIGHBOURS + 1)
        ]
        poison = (await load.submit_together(bodies))[NEIGHBOURS // 2].id
        details = await final_stories(service, load.ledger)
        _, detail = await service.ask("GET", f"/v1/notifications/{poison}")
        assert {each["code"] for each in detail["receipts"]} == {"poison"}, detail
        assert all(each["status"] == "failed" and each["dead"] for each in detail["receipts"])
        assert {each["status"] for id_, each in details.items() if id_ != poison} == {"sent"}
        logged = service.log("worker.died")
        assert len(service.log("notification.poison")) == 1
        await until(lambda: _ready(service.worker_pids()), "both workers live again")
        table("poison", its_worker=death, workers_lost=len(logged), neighbours_sent=NEIGHBOURS, poison="failed, dead")


async def _ready(pids: list[int]) -> bool:
    await asyncio.sleep(0)
    return len(pids) == 2

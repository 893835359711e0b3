"""Limits as real processes keep them: a provider's quota is used to the full, a caller's is exact."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows
from tests.tables import AddRow

pytestmark = pytest.mark.asyncio

QUOTA = 300
"""Messages a minute: the lab's bucket, and ours."""
PER_S = QUOTA / 60
LISTED = "GET /v1/notifications"
FOR_EVER = "40/9999d"
"""A window that ends in 2052."""
MANY = 345
"""More than the bucket holds by what comes in nine seconds."""


@shows("S3-68", "S4-33")
async def test_a_providers_limit_is_reached_by_workers_together_and_it_never_refuses(
    tmp_path: Path, table: AddRow
) -> None:
    """At least 95 % of what the provider would take, no 429, no attempt spent on waiting; APNs goes on (S4-31, S4-33).

    Counted against the time that it took, however long that was.
    """
    rates = {"fcm": {"capacity": QUOTA, "refill_per_s": PER_S, "ramp_s": 0}}
    async with running(
        tmp_path,
        workers=2,
        app={"rates": rates},
        limits={"endpoints": {LISTED: FOR_EVER}},
        lab_options=("--fcm-quota", str(QUOTA)),
    ) as service:
        await _a_caller_gets_exactly_its_limit(service)
        users = [f"user-{n}" for n in range(15)]
        for user in users:
            await _register(service, user, "android")
        await _register(service, "ann", "ios")
        warm = await _tell(service, users, "first")
        await until(lambda: _arrived(service, len(warm)), "the first of each")
        many = await _tell(service, [users[n % len(users)] for n in range(MANY)], "one of many")
        waiting = await until(lambda: _parked(service, many), "one that waits for the provider's limit")
        (other,) = await _tell(service, ["ann"], "beside them")
        await until(lambda: service.is_sent(other), "what has no limit")
        await until(lambda: _arrived(service, len(warm) + MANY), "all of them")
        pushes = (await service.lab.ask("GET", "/received?limit=1000&gateway=fcm"))["received"]
        assert {push["status"] for push in pushes} == {200}, "never too much for the provider"
        elapsed_s = pushes[-1]["at"] - pushes[0]["at"]  # how much of the quota was used depends on the machine
        table("under a provider's quota", pushes=len(pushes), allowed=round(QUOTA + PER_S * elapsed_s))
        receipt = await until(lambda: _sent(service, waiting), "that one to be recorded")
        assert (receipt["attempt_count"], receipt["retries"]) == (1, 0)


async def _a_caller_gets_exactly_its_limit(service: Service) -> None:
    """From both workers together (requirement S3-68)."""
    answers = [service.ask("GET", "/v1/notifications", anew=True) for _ in range(70)]
    statuses = [status for status, _ in await asyncio.gather(*answers)]
    assert (statuses.count(200), statuses.count(429)) == (40, 30)


async def _register(service: Service, user: str, platform: str) -> None:
    (token,) = (await service.lab.ask("POST", "/tokens", {"platform": platform}))["tokens"]
    status, said = await service.ask("PUT", f"/v1/devices/{user}/1", {"platform": platform, "token": token})
    assert status < 300, said


async def _tell(service: Service, users: list[str], what: str) -> list[str]:
    items = [{"user_id": user, "title": f"{what} {n}"} for n, user in enumerate(users)]
    status, said = await service.ask("POST", "/v1/notifications/batch", {"notifications": items})
    assert status == 202, said
    return [each["notification"]["id"] for each in said["results"]]


async def _arrived(service: Service, count: int) -> bool:
    counts: Json = (await service.lab.ask("GET", "/counts"))["fcm"]
    return bool(counts["accepted"] + counts["refused"] >= count)


async def _receipt(service: Service, notification_id: str) -> Json:
    receipts = (await service.ask("GET", f"/v1/notifications/{notification_id}"))[1]["receipts"]
    return dict(receipts[0]) if receipts else {}


async def _parked(service: Service, ids: list[str]) -> str | None:
    """One of *ids* that is parked."""
    receipts = {each: await _receipt(service, each) for each in reversed(ids)}
    return next((each for each, receipt in receipts.items() if receipt.get("parked") == "rate:normal/demo/fcm"), None)


async def _sent(service: Service, notification_id: str) -> Json | None:
    receipt = await _receipt(service, notification_id)
    return receipt if receipt.get("status") == "sent" else None

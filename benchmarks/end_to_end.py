"""The whole path: REST in, SQLite, route, APNs, FCM and Web Push to the lab, receipts; CPU of each delivery.

The lab checks and decrypts everything in Python and needs more CPU than Waypost: deliveries a second say what this
machine did with both on it, the figure that carries over is Waypost's own CPU a delivery.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import uvloop

from benchmarks import stack
from benchmarks.stack import Stack, running

USERS = 400
DEVICES = ("android", "ios", "android")
"""Of each user; every second one lacks the last: 2.5 devices a user."""
WEB_EVERY = 4
"""One user in four has a browser instead of the first device: 10 % of all devices."""
NOTIFICATIONS = 6_000
BATCH = 100


def run() -> list[dict[str, object]]:
    """With one worker and with two, everything in batches."""
    rows: list[dict[str, object]] = []
    for workers in (1, 2):
        with running(workers) as up:
            rows += uvloop.run(_measure(up, workers))
    return rows


async def _measure(up: Stack, workers: int) -> list[dict[str, object]]:
    headers = {"Authorization": f"Bearer {up.key}"}
    connector = aiohttp.TCPConnector(limit=32)
    async with aiohttp.ClientSession(connector=connector) as lab, aiohttp.ClientSession(headers=headers) as api:
        devices = await _register(up, lab, api)
        await _send(up, api, 500)
        await _arrived(up, lab, _expected(devices, 500))
        own_before, lab_before = up.cpu_s()
        started_s = time.perf_counter()
        await _send(up, api, NOTIFICATIONS)
        accepted_s = time.perf_counter() - started_s
        deliveries = _expected(devices, NOTIFICATIONS)
        await _arrived(up, lab, deliveries + _expected(devices, 500))
        wall_s = time.perf_counter() - started_s
        own, others = (after - before for after, before in zip(up.cpu_s(), (own_before, lab_before), strict=True))
    return [
        _row(f"{workers} worker(s), deliveries a second", deliveries / wall_s, "1/s", None, None),
        _row(f"{workers} worker(s), intake in batches of {BATCH}", NOTIFICATIONS / accepted_s, "1/s", None, None),
        _row(
            f"{workers} worker(s), Waypost's CPU a delivery",
            own / deliveries * 1e6,
            "µs",
            f"the lab's {others / deliveries * 1e6:.0f}",
            own / others,
        ),
    ]


def _row(name: str, value: float, unit: str, against: str | None, ratio: float | None) -> dict[str, object]:
    rounded = None if ratio is None else round(ratio, 2)
    return {
        "bench": "end_to_end",
        "name": name,
        "value": round(value, 1),
        "unit": unit,
        "against": against,
        "ratio": rounded,
    }


async def _register(up: Stack, lab: aiohttp.ClientSession, api: aiohttp.ClientSession) -> list[int]:
    """Give every user devices; how many each has."""
    admin = up.lab["admin"]
    tokens: dict[str, list[str]] = {}
    for platform in ("ios", "android"):
        async with lab.post(f"{admin}/tokens", json={"platform": platform, "count": USERS * 2}) as answer:
            tokens[platform] = (await answer.json())["tokens"]
    counts = []
    for n in range(USERS):
        platforms = list(DEVICES if n % 2 else DEVICES[:-1])
        if n % WEB_EVERY == 0:
            platforms[0] = "web"
        counts.append(len(platforms))
        for index, platform in enumerate(platforms):
            device = await _device(admin, lab, platform, tokens)
            async with api.put(f"{up.url}/v1/devices/user-{n}/device-{index}", json=device) as answer:
                assert answer.status in (200, 201), await answer.text()
    return counts


async def _device(
    admin: str, lab: aiohttp.ClientSession, platform: str, tokens: dict[str, list[str]]
) -> dict[str, Any]:
    if platform != "web":
        return {"platform": platform, "token": tokens[platform].pop()}
    async with lab.post(f"{admin}/subscriptions", json={}) as answer:
        made = await answer.json()
    return {"platform": "web", "token": made["endpoint"], "keys": made["keys"]}


async def _send(up: Stack, api: aiohttp.ClientSession, count: int) -> None:
    """Submit *count* notifications in batches, eight requests at a time."""
    limit = asyncio.Semaphore(8)

    async def submit(start: int) -> None:
        batch = [_notification(n) for n in range(start, min(start + BATCH, count))]
        async with limit, api.post(f"{up.url}/v1/notifications/batch", json={"notifications": batch}) as answer:
            assert answer.status == 202, await answer.text()

    await asyncio.gather(*(submit(start) for start in range(0, count, BATCH)))


def _notification(n: int) -> dict[str, Any]:
    return {
        "user_id": f"user-{n % USERS}",
        "title": "Your parcel is here",
        "body": f"Number {n} was left at the front door at {time.time_ns()}.",
        "data": {"parcel": str(n), "screen": "parcels"},
    }


def _expected(devices: list[int], count: int) -> int:
    return sum(devices[n % USERS] for n in range(count))


async def _arrived(up: Stack, lab: aiohttp.ClientSession, deliveries: int) -> None:
    """Wait until the lab has accepted so many."""

    async def all_there() -> bool:
        async with lab.get(f"{up.lab['admin']}/counts") as answer:
            counts = await answer.json()
        accepted: int = sum(counts[gateway]["accepted"] for gateway in ("apns", "fcm", "webpush"))
        return accepted >= deliveries

    await stack.until(all_there)

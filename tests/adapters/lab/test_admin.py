"""The admin API makes devices, shows what arrived page by page, verifies a run, and explains its refusals."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.lab.senders import NID, TOKEN, Senders
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio


async def test_devices_are_made_in_numbers(senders: Senders) -> None:
    ios = await senders.admin("POST", "/tokens", {"platform": "ios", "count": 3})
    android = await senders.admin("POST", "/tokens", {"platform": "android", "count": 2})
    web = await senders.admin("POST", "/subscriptions", {"count": 2})
    assert [len(token) for token in ios["tokens"]] == [64] * 3
    assert all(":APA91b" in token for token in android["tokens"])
    assert len({subscription["endpoint"] for subscription in web["subscriptions"]}) == 2
    assert (await senders.fcm({"token": android["tokens"][0]})).status_code == 200
    assert (await senders.webpush(web["subscriptions"][1])).status_code == 201


async def test_what_arrived_is_read_page_by_page(senders: Senders) -> None:
    for number in range(5):
        await senders.apns(payload={"aps": {"alert": "a"}, "waypost_id": str(number)})
    first = await senders.admin("GET", "/received?limit=2")
    second = await senders.admin("GET", f"/received?limit=2&after={first['next']}")
    ids = [record["notification_id"] for record in first["received"] + second["received"]]
    assert ids == ["0", "1", "2", "3"]
    assert len((await senders.admin("GET", "/received?notification_id=4"))["received"]) == 1
    assert (await senders.admin("GET", "/received?gateway=fcm"))["received"] == []


async def test_a_run_is_verified_and_reset(senders: Senders) -> None:
    await senders.apns()
    wanted = {"expected": [{"notification_id": NID, "tokens": [TOKEN]}]}
    assert (await senders.admin("POST", "/verify", wanted))["ok"]
    await senders.admin("POST", "/reset")
    assert (await senders.admin("POST", "/verify", wanted))["missing"] == [{"notification_id": NID, "token": TOKEN}]


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/tokens", {"platform": "symbian"}, "symbian"),
        ("/tokens", {"platform": "ios", "count": 0}, "count"),
        ("/subscriptions", {"service": "opera"}, "service"),
        ("/subscriptions", {"vapid": "x"}, "vapid"),
        ("/verify", {}, "expected"),
        ("/nowhere", {}, "Not Found"),
    ],
)
async def test_a_wrong_request_is_told_what_is_wrong(senders: Senders, path: str, body: dict, says: str) -> None:
    answer = await senders.admin("POST", path, body)
    assert says in answer["error"]


async def test_a_subscription_is_killed_by_its_endpoint(senders: Senders) -> None:
    subscription = await senders.subscription()
    await senders.admin("POST", f"/tokens/{subscription['endpoint']}/kill")
    assert (await senders.webpush(subscription)).status_code == 410


async def test_an_open_connection_outlives_a_reset(senders: Senders, lab: Lab) -> None:
    await senders.apns()
    await senders.admin("POST", "/reset")
    await senders.apns()
    assert lab.records.counts["apns"].connections_opened == 0
    assert [connection.requests for connection in lab.records.connections.values() if connection.gateway == "apns"] == [
        2
    ]


async def test_the_lab_runs_alone_and_stops_on_a_signal(tmp_path: Path) -> None:
    ports = [part for name in ("apns", "fcm", "webpush", "oauth", "admin") for part in (f"--{name}-port", "0")]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "waypost.lab", "--directory", str(tmp_path), "--json", *ports, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    ready = json.loads(await process.stdout.readline())
    assert ready["ready"]
    assert {"apns", "fcm", "oauth", "webpush", "admin"} < ready.keys()
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_subscriptions_outlive_a_restart(lab: Lab, senders: Senders) -> None:
    subscription = await senders.subscription()
    again = Lab(lab.settings)
    await again.start()
    moved = {**subscription, "endpoint": f"{again.urls.webpush}/push/{subscription['token']}"}
    answer = await Senders(senders.client, again.urls, lab.settings.directory).webpush(moved)
    await again.stop()
    assert answer.status_code == 201

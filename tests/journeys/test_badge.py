"""The badge, and what was read on one device, on real processes: every device shows what the feed counts."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows
from waypost.client import Client

pytestmark = pytest.mark.asyncio
PAGE = Path(__file__).parents[2] / "docs" / "badges.md"


async def devices(service: Service, user: str) -> dict[str, str]:
    """Give *user* a device of each platform; its token at the lab by platform."""
    made = {}
    for platform in ("ios", "android", "ios_fcm"):
        issued = {"platform": "ios" if platform == "ios" else "android", "count": 1}  # Firebase's are of one kind
        (token,) = (await service.lab.ask("POST", "/tokens", issued))["tokens"]
        made[platform] = token
        await said(service, "PUT", f"/v1/devices/{user}/{platform}", {"platform": platform, "token": token})
    found = await service.lab.ask("POST", "/subscriptions")
    body = {"platform": "web", "token": found["endpoint"], "keys": found["keys"]}
    await said(service, "PUT", f"/v1/devices/{user}/web", body)
    return made | {"web": found["token"]}


async def said(service: Service, method: str, path: str, body: Json | None = None) -> Json:
    status, answer = await service.ask(method, path, body)
    assert status < 300, answer
    return answer


def badge_of(push: Json) -> Any:
    """The number that a push carries."""
    payload = push["payload"]
    if push["gateway"] == "apns":
        return payload["aps"].get("badge")
    if push["gateway"] == "fcm":
        message = payload["message"]
        if "apns" in message:
            return message["apns"]["payload"]["aps"].get("badge")
        return message["android"].get("notification", {}).get("notification_count")
    return payload.get("badge")


async def send(service: Service, title: str, **more: object) -> str:
    """Send a push that is in the feed, too."""
    body = {"user_id": "ann", "title": title, "channels": ["push", "inapp"], **more}
    return str((await said(service, "POST", "/v1/notifications", body))["id"])


async def arrived(service: Service, notification_id: str) -> list[Json]:
    """Its pushes, once there is one for each device."""
    found = await service.lab.arrivals(notification_id)
    return found if len(found) == 4 else []


async def counts(service: Service, user: str, unread: int) -> bool:
    """Whether the feed has so many unread entries."""
    return bool((await said(service, "GET", f"/v1/users/{user}/feed/counts"))["unread"] == unread)


def app_of_page() -> Json:
    """The configuration that the page about badges begins with."""
    (_, block, *_) = PAGE.read_text(encoding="utf-8").split("```yaml")
    app: Json = yaml.safe_load(block.partition("```")[0])["apps"]["shop"]
    return app


async def silent(service: Service, made: dict[str, str]) -> dict[str, Json]:
    """The newest push that tells of reads, by platform; nothing until each device has one."""
    found = (await service.lab.ask("GET", "/received?limit=1000"))["received"]
    platforms = {token: platform for platform, token in made.items()}
    told = {}
    for each in found:
        if each["accepted"] and each["token"] in platforms and reads_of(each) is not None:
            told[platforms[each["token"]]] = each
    return told if len(told) == len(made) else {}


def reads_of(push: Json) -> Any:
    """What a push tells of reads; None where it tells of none."""
    payload = push["payload"]
    if push["gateway"] == "apns":
        return payload.get("waypost")
    if push["gateway"] == "fcm":
        told = payload["message"]["data"].get("waypost")
        return None if told is None else json.loads(told)
    return payload.get("data", {}).get("waypost")


@shows("S1-146", "S1-148", "S1-149")
async def test_devices_show_what_is_unread_and_lose_what_is_read_elsewhere_over_kill_9(tmp_path: Path) -> None:
    """S1-146: every push carries the number, also those that follow at once; not where the caller gave one.

    S1-148: what an app reports as read gives the number. S1-149: one silent push for all that was read, with the badge;
    the device that it was read on hears nothing.
    """
    async with running(tmp_path, start=False, workers=2) as service:
        service.configure(workers=2, app=app_of_page())
        await service.start()
        made = await devices(service, "ann")
        sent = [await send(service, f"Number {n}") for n in range(5)]
        sent.append(await send(service, "With a number", badge=70))
        for one, wanted in zip(sent, (1, 2, 3, 4, 5, 70), strict=True):
            pushes = await until(partial(arrived, service, one), f"the pushes with {wanted}")
            assert [badge_of(push) for push in pushes] == [wanted] * 4, json.dumps(pushes)

        await until(partial(counts, service, "ann", 6), "the entries")
        client = Client(service.url, service.key)
        answer = await asyncio.to_thread(client.mark_feed, "ann", "read", until=sent[3], device_id="web")
        assert (answer["changed"], answer["unread"]) == (4, 2)
        for pid in service.worker_pids():
            await service.kill(pid)
        others = {platform: token for platform, token in made.items() if platform != "web"}
        told = await until(partial(silent, service, others), "the pushes that tell of it")
        for push in told.values():
            assert (sorted(reads_of(push)["reads"]), reads_of(push)["badge"]) == (sorted(sent[:4]), 2)
        assert told["ios"]["payload"]["aps"] == {"badge": 2, "content-available": 1}
        assert told["ios"]["headers"]["apns-push-type"] == "alert"
        by_fcm = told["ios_fcm"]["payload"]["message"]
        assert (by_fcm["apns"]["payload"]["aps"], by_fcm["apns"]["headers"]["apns-push-type"]) == (
            {"badge": 2, "content-available": 1},
            "alert",
        )
        assert "notification" not in by_fcm
        assert "notification" not in told["android"]["payload"]["message"]
        on_web = await service.lab.ask("GET", f"/received?limit=1000&token={made['web']}")
        assert [each for each in on_web["received"] if reads_of(each) is not None] == []

"""Receipts of devices: by a user's token or a backend's key, and by a signed link that needs neither."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.rest.issuers import user_token, users_issuer
from tests.adapters.rest.service import DEMO, OTHER, Service, served, shown
from tests.shows import shows
from waypost.domain.device_event import receipt_token
from waypost.domain.ids import NotificationId, parse_id
from waypost.domain.scope import Scope
from waypost.domain.settlement import Sent
from waypost.entrypoints.rest.app import build_app
from waypost.features.receipts.settings import ReceiptSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

SECRET = bytes(range(32))


@asynccontextmanager
async def sent(folder: Path) -> AsyncIterator[tuple[Service, httpx.AsyncClient, str]]:
    """Serve an app that has sent one notification to one device, and signs links."""
    file = folder / "receipts.key"
    file.write_bytes(SECRET)
    async with served(issuers=[users_issuer(folder)]) as (service, _):
        settings = ReceiptSettings(secret_file=str(file))
        ground = msgspec.structs.replace(service.api.grounds["receipts"], settings=settings)
        service.api = msgspec.structs.replace(service.api, grounds={"receipts": ground})
        service.app = build_app(service.api)
        async with service.client() as client:
            made = (await client.post("/v1/notifications", json=shown())).json()["id"]
            await service.settled(Sent("p-1"))
            yield service, client, made


def link(made: str, n: int = 0, secret: bytes = SECRET) -> str:
    """The signed link of a target of the demo app."""
    return f"/r/demo/{receipt_token(secret, DEMO, NotificationId(parse_id(made)), n)}"


async def status(client: httpx.AsyncClient, made: str) -> str:
    """How the first target stands."""
    stands: str = (await client.get(f"/v1/notifications/{made}")).json()["receipts"][0]["status"]
    return stands


async def report(client: httpx.AsyncClient, *receipts: dict[str, Any]) -> list[str | None]:
    """Report events, and return how their deliveries stand."""
    answer = await client.post("/v1/receipts", json={"receipts": receipts})
    assert answer.status_code == 200, answer.text
    return [each["status"] for each in answer.json()["results"]]


@shows("S1-57")
async def test_a_status_goes_up_only_and_each_event_is_kept_once(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, client, made):
        named = {"notification_id": made, "device_id": "device-0"}
        assert await report(client, {"event": "displayed", **named}) == ["delivered"]
        service.clock.advance(1_000)
        pressed = {"event": "action", "action": "reply", **named}
        late = {"event": "delivered", **named}
        assert await report(client, pressed, late, pressed) == ["opened", "opened", "opened"]
        assert await status(client, made) == "opened"
        events = (await client.get(f"/v1/notifications/{made}/events")).json()["events"]
        assert [(each["n"], each["event"], each["action"]) for each in events] == [
            (0, "displayed", None),
            (0, "action", "reply"),
            (0, "delivered", None),
        ]
        again = await report(client, *[late] * 3)
        assert again == ["opened"] * 3
        assert (await client.get(f"/v1/notifications/{made}/events")).json()["events"] == events


async def test_what_is_nobodys_changes_nothing(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, client, made):
        unknown = {"event": "opened", "notification_id": "019c1234-5678-7abc-8def-0123456789ab", "device_id": "x"}
        elsewhere = {"event": "opened", "notification_id": made, "device_id": "another"}
        token = link(made, secret=bytes(32)).rpartition("/")[2]
        assert await report(client, unknown, elsewhere, {"event": "opened", "token": token}) == [None, None, None]
        async with service.client(service.others.text) as other:
            mine = {"event": "opened", "notification_id": made, "device_id": "device-0"}
            signed = {"event": "opened", "token": link(made).rpartition("/")[2]}
            assert await report(other, mine, signed) == [None, None]
        assert await status(client, made) == "sent"


async def test_a_user_reports_what_is_theirs_alone(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, _, made):
        named = {"event": "opened", "notification_id": made, "device_id": "device-0"}
        async with service.client(user_token("somebody-else", Scope.DEVICES)) as other:
            assert await report(other, named) == [None]
        async with service.client(user_token("user-1", Scope.DEVICES)) as own:
            assert await report(own, named) == ["opened"]


async def test_a_signed_link_confirms_by_post_alone(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, client, made):
        del client.headers["authorization"]
        page = await client.get(link(made))
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        async with service.client() as known:
            assert await status(known, made) == "sent", "previews follow links"
            assert (await client.post(link(made))).status_code == 204
            assert await status(known, made) == "delivered"
            assert (await client.post(link(made), params={"event": "opened"})).status_code == 204
            assert (await client.post(link(made))).status_code == 204
            assert await status(known, made) == "opened"


@pytest.mark.parametrize("change", ["secret", "target", "app", "cut", "garbage"])
async def test_a_forged_link_is_none(tmp_path: Path, change: str) -> None:
    async with sent(tmp_path) as (_, client, made):
        del client.headers["authorization"]
        good = link(made)
        forged = {
            "secret": link(made, secret=bytes(32)),
            "target": f"/r/demo/{receipt_token(SECRET, DEMO, NotificationId(parse_id(made)), 1)[:24]}{good[-14:]}",
            "app": good.replace("/r/demo/", f"/r/{OTHER}/"),
            "cut": good[:-1],
            "garbage": "/r/demo/" + "ä" * 38,
        }[change]
        assert [(await client.post(forged)).status_code, (await client.get(forged)).status_code] == [404, 404]
        assert (await client.post(good)).status_code == 204


async def test_a_link_stays_short(tmp_path: Path) -> None:
    async with sent(tmp_path) as (_, _client, made):
        assert len("https://push.example.com" + link(made)) <= 120


@pytest.mark.parametrize(
    "receipt",
    [
        {"event": "opened"},
        {"event": "read", "token": "x" * 38},
        {"event": "opened", "token": "x"},
        {"event": "action", "token": "x" * 38},
        {"event": "opened", "action": "reply", "token": "x" * 38},
        {"event": "opened", "token": "x" * 38, "device_id": "d"},
    ],
)
async def test_what_makes_no_sense_is_refused(tmp_path: Path, receipt: dict[str, str]) -> None:
    async with sent(tmp_path) as (_, client, _made):
        answer = await client.post("/v1/receipts", json={"receipts": [receipt]})
        assert answer.status_code == 400
        assert answer.json()["faults"][0]["path"].startswith("receipts[0]")

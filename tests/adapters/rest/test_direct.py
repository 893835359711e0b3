"""Sending to a token: it is the device of whoever has it, or kept as one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.adapters.rest.service import AUTH, DEMO, P256DH, Service, served
from waypost.domain.device import Device, Platform, Registration
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash

pytestmark = pytest.mark.asyncio

ANDROID = {"platform": "android", "token": "t-1"}
HI = {"device": ANDROID, "title": "Hi"}
NAME = token_hash("t-1").hex()


async def kept(service: Service, token: str = "t-1") -> Device | None:
    """The active device that has the token."""
    (found,) = await service.devices.with_tokens(DEMO, [token])
    return found


def told(service: Service) -> list[tuple[str, tuple[str, ...]]]:
    """Who was told, and on which devices."""
    return [(each.user_id, each.device_ids) for each in (row.notification for row in service.store.rows.values())]


async def test_a_token_that_nobody_has_is_kept_as_a_device_of_its_own() -> None:
    """Sent to again, it is the same device: known, not registered anew."""
    async with served() as (service, client):
        assert (await client.post("/v1/notifications", json=HI)).status_code == 202
        first = await kept(service)
        assert first is not None
        assert (first.user_id, first.device_id, first.platform) == (f"token:{NAME}", NAME, "android")
        service.clock.advance(1_000)
        assert (await client.post("/v1/notifications", json=HI | {"title": "Ho"})).status_code == 202
        assert await kept(service) == first
        assert told(service) == [(first.user_id, (NAME,))] * 2


async def test_a_token_that_a_user_has_stays_theirs() -> None:
    async with served() as (service, client):
        said = Registration(DEMO, UserId("ann"), DeviceId("phone"), Platform("android"), "t-1")
        ann = (await service.devices.upsert(said, service.clock.now(), 0)).device
        await client.put("/v1/devices/ann/tablet", json={"platform": "android", "token": "t-2"})
        assert (await client.post("/v1/notifications", json=HI)).status_code == 202
        assert await kept(service) == ann
        assert told(service) == [("ann", ("phone",))]


async def test_an_app_that_registers_the_token_takes_it_over() -> None:
    async with served() as (service, client):
        await client.post("/v1/notifications", json=HI)
        assert (await client.put("/v1/devices/ann/phone", json=ANDROID)).status_code == 201
        owner = await kept(service)
        assert owner is not None
        assert owner.user_id == "ann"
        assert (await client.get(f"/v1/devices/token:{NAME}")).json()["items"] == []


async def test_an_app_that_registers_the_token_while_it_is_looked_up_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app would else get nothing until its next launch. The notification goes to its user."""
    async with served() as (service, client):
        look_up = service.devices.with_tokens

        async def just_before(app: AppId, tokens: Sequence[str]) -> list[Device | None]:
            found = await look_up(app, tokens)
            said = Registration(DEMO, UserId("ann"), DeviceId("phone"), Platform("android"), "t-1")
            await service.devices.upsert(said, service.clock.now(), 0)
            return found

        with monkeypatch.context() as patched:
            patched.setattr(service.devices, "with_tokens", just_before)
            wrong = {"device": {"platform": "ios", "token": "-"}, "title": "Hi"}
            batch = {"notifications": [HI, wrong, {"user_id": "bob", "title": "Hi"}]}
            answer = (await client.post("/v1/notifications/batch", json=batch)).json()
        assert ["notification" in result for result in answer["results"]] == [True, False, True]
        owner = await kept(service)
        assert owner is not None
        assert (owner.user_id, told(service)) == ("ann", [("ann", ("phone",)), ("bob", ())])


async def test_a_browsers_subscription_is_a_device_too() -> None:
    async with served() as (service, client):
        said = {"endpoint": "https://push.example/x", "expirationTime": None, "keys": {"p256dh": P256DH, "auth": AUTH}}
        device = {"platform": "web", "subscription": said}
        assert (await client.post("/v1/notifications", json={"device": device, "title": "Hi"})).status_code == 202
        found = await kept(service, "https://push.example/x")
        assert found is not None
        assert found.keys is not None


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"device": {"platform": "beeper", "token": "x"}}, "device.platform"),
        ({"device": {"platform": "android"}}, "device.token"),
        ({"device": {"platform": "ios", "token": "not hex"}}, "device.token"),
        ({"device": {"platform": "ios", "token": "nothex"}}, "device.token"),
        ({"device": {"platform": "android", "token": "x", "extra": 1}}, "device.extra"),
        ({"device": ANDROID, "user_id": "ann"}, "device"),
        ({"device": ANDROID, "to": {"channel": "fcm", "kind": "topic", "name": "news"}}, "device"),
        ({"device": ANDROID, "device_ids": ["phone"]}, "device_ids"),
        ({"device": ANDROID, "title": None}, "title"),
    ],
)
async def test_what_is_refused_keeps_no_device(said: dict[str, Any], path: str) -> None:
    async with served() as (service, client):
        answer = await client.post("/v1/notifications", json={"title": "Hi"} | said)
        assert answer.status_code == 400
        assert path in [fault["path"] for fault in answer.json()["faults"]]
        assert await kept(service) is None


async def test_in_a_batch_each_token_is_told_and_a_wrong_one_harms_no_other() -> None:
    async with served() as (service, client):
        wrong = {"device": {"platform": "ios", "token": "-"}, "title": "Hi"}
        items = [
            HI,
            {"user_id": "ann", "title": "Hi"},
            wrong,
            HI,
            {"device": ANDROID | {"token": "t-2"}, "title": "Hi"},
        ]
        answer = (await client.post("/v1/notifications/batch", json={"notifications": items})).json()
        assert ["notification" in result for result in answer["results"]] == [True, True, False, True, True]
        users = [user for user, _ in told(service)]
        assert users == [f"token:{NAME}", "ann", f"token:{NAME}", f"token:{token_hash('t-2').hex()}"]


async def test_the_same_key_is_the_same_request_whoever_has_the_token_by_then() -> None:
    async with served() as (_, client):
        first = await client.post("/v1/notifications", json=HI | {"idempotency_key": "k"})
        await client.put("/v1/devices/ann/phone", json=ANDROID)
        again = await client.post("/v1/notifications", json=HI | {"idempotency_key": "k"})
        assert (first.status_code, again.status_code) == (202, 200)
        assert again.json()["id"] == first.json()["id"]


async def test_while_the_registry_is_away_nothing_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as (service, client):

        async def away(*_: object) -> Any:
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)

        monkeypatch.setattr(service.devices, "keep", away)
        answer = await client.post("/v1/notifications", json=HI)
        assert answer.status_code == 503
        assert told(service) == []


async def test_it_is_explained_without_being_kept() -> None:
    async with served() as (service, client):
        answer = await client.post("/v1/explain", json=HI)
        assert [target["device_id"] for target in answer.json()["targets"]] == [NAME]
        assert await kept(service) is None

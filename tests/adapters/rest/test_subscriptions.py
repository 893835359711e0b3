"""A browser's push subscription, registered as the browser gives it."""

from __future__ import annotations

import pytest

from tests.adapters.rest.service import AUTH, DEMO, P256DH, served
from waypost.domain.ids import UserId

pytestmark = pytest.mark.asyncio

KEYS = {"p256dh": P256DH, "auth": AUTH}


async def test_a_browsers_subscription_is_taken_as_it_is() -> None:
    """What ``PushSubscription.toJSON()`` gives, also with what a browser may add to it."""
    async with served() as (service, client):
        keys = {"p256dh": P256DH, "auth": AUTH}
        for ends in (None, service.clock.now() + 1.5):
            said = {"endpoint": "https://push.example/x", "expirationTime": ends, "keys": keys, "contentEncoding": "x"}
            answer = await client.put("/v1/devices/u/browser", json={"platform": "web", "subscription": said})
            assert answer.status_code in (200, 201)
        whole = {"platform": "web", "token": "https://push.example/x", "keys": keys}
        assert (await client.put("/v1/devices/u/browser", json=whole)).status_code == 200
        (stored,) = await service.devices.of_user(DEMO, UserId("u"), inactive=True)
        assert stored.token == "https://push.example/x"
        assert stored.registered_at == stored.token_updated_at
        assert stored.keys is not None
        assert (len(stored.keys.p256dh), len(stored.keys.auth)) == (65, 16)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"subscription": {"endpoint": "https://push.example/x", "keys": KEYS}, "token": "x"}, "subscription"),
        ({"subscription": {"endpoint": "https://push.example/x", "keys": KEYS}, "keys": KEYS}, "subscription"),
        ({"subscription": {"endpoint": "https://push.example/x"}}, "subscription.keys"),
        (
            {"subscription": {"endpoint": "https://push.example/x", "keys": KEYS, "expirationTime": 1.5}},
            "subscription.expirationTime",
        ),
    ],
)
async def test_a_subscription_that_makes_no_sense_is_refused_with_the_path(body: dict, path: str) -> None:
    async with served() as (service, client):
        answer = await client.put("/v1/devices/u/d", json={"platform": "web"} | body)
        assert answer.status_code == 400
        assert [fault["path"] for fault in answer.json()["faults"]] == [path]
        assert await service.devices.of_user(DEMO, UserId("u"), inactive=True) == []

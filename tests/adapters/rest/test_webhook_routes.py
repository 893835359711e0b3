"""What the API says of webhooks: where they come from, and what it takes to look into their log."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.adapters.rest.service import served
from tests.shows import shows
from waypost.bootstrap.registry import load
from waypost.domain.errors import ConfigurationError
from waypost.entrypoints.rest.app import build_app
from waypost.features.webhooks.settings import WebhooksSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

ADDRESSES = ("203.0.113.7", "2001:db8:7::/64")


@shows("S4-49")
async def test_the_addresses_of_the_settings_are_told(tmp_path: Path) -> None:
    """S4-49; what is neither an address nor a network is named by its path."""
    async with served() as (service, _):
        ground = msgspec.structs.replace(
            service.api.grounds["webhooks"], settings=WebhooksSettings(source_addresses=ADDRESSES)
        )
        service.api = msgspec.structs.replace(service.api, grounds={**service.api.grounds, "webhooks": ground})
        service.app = build_app(service.api)
        async with service.client() as client:
            assert (await client.get("/v1/webhooks/sources")).json() == {"addresses": list(ADDRESSES)}
    file = tmp_path / "waypost.yaml"
    file.write_text("apps: {demo: {}}\nwebhooks: {source_addresses: [203.0.113.7, shop.example]}\n")
    with pytest.raises(ConfigurationError) as caught:
        load(file, {})
    assert caught.value.path == "webhooks.source_addresses[1]"


async def test_the_log_needs_a_url_and_a_replay_says_which() -> None:
    """Where the app has no ``status_url``; nobody's events are none, and an unknown one is passed over."""
    async with served() as (_, client):
        missing = await client.get("/v1/webhooks/events")
        assert (missing.status_code, missing.json()["faults"][0]["path"]) == (400, "endpoint")
        bad = await client.get("/v1/webhooks/events?endpoint=https://shop.example/x")
        assert bad.status_code == 400
        none = await client.get(f"/v1/webhooks/events?endpoint={'0' * 64}")
        assert none.json() == {"items": [], "next": None}
        for order in ({}, {"ids": [f"019c1234-5678-7abc-8def-{0:012}"], "since": "2026-01-31T09:00:00Z"}):
            assert (await client.post("/v1/webhooks/replay", json=order)).status_code == 400
        unknown = {"ids": [f"019c1234-5678-7abc-8def-{0:012}"]}
        answer = await client.post("/v1/webhooks/replay", json=unknown)
        assert (answer.status_code, answer.json()) == (200, {"replayed": 0, "results": [], "next": None})

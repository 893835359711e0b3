"""Who may follow a feed live, and how often: what is let in here has no connection to take over, which is 400."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.adapters.rest.issuers import user_token, users_issuer
from tests.adapters.rest.service import Service
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.limits import FixedWindow
from waypost.domain.scope import Scope
from waypost.domain.time import MINUTE_MS
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.entrypoints.rest.app import build_app

pytestmark = pytest.mark.asyncio

EVENTS = {"accept": "text/event-stream"}


async def limited(folder: Path) -> Service:
    """A service that lets each end user do two things a minute."""
    service = Service(issuers=[users_issuer(folder, scopes=())])
    await service.add_keys()
    bounds = Bounds(user=FixedWindow(2, MINUTE_MS))
    limits = EntrypointLimits(bounds, MemoryLimiter(service.clock), service.clock, service.telemetry)
    service.api = msgspec.structs.replace(service.api, limits=limits)
    service.app = build_app(service.api)
    return service


async def test_each_connection_counts_for_its_user_by_whatever_credential(tmp_path: Path) -> None:
    service = await limited(tmp_path)
    async with service.client() as client, service.client(user_token("ann", Scope.READ)) as own:
        ticket = (await client.post("/v1/users/ann/live-tickets")).json()["ticket"]
        used = {"ticket": ticket}
        async with service.client(None) as page:
            assert (await page.get("/live", params=used, headers=EVENTS)).status_code == 400
            assert (await own.get("/live", headers=EVENTS)).status_code == 400
            refused = [await page.get("/live", params=used, headers=EVENTS), await own.get("/live", headers=EVENTS)]
        assert [each.status_code for each in refused] == [429, 429]
        assert refused[0].headers["ratelimit-policy"] == '"user";q=2;w=60'
    async with service.client(user_token("bob", Scope.READ)) as another:
        assert (await another.get("/live", headers=EVENTS)).status_code == 400


async def test_a_users_token_needs_the_right_to_read(tmp_path: Path) -> None:
    service = await limited(tmp_path)
    async with service.client(user_token("ann", Scope.DEVICES, Scope.SEND)) as client:
        refused = await client.get("/live", headers=EVENTS)
    assert (refused.status_code, "read" in refused.json()["detail"]) == (403, True)

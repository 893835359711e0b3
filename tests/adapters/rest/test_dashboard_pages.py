"""The dashboard's pages of figures, users, campaigns, templates and jobs, over a whole API on a file."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.adapters.rest.service import DEMO, Service, served, shown
from tests.adapters.rest.test_dashboard import browser
from tests.shows import shows
from waypost.bootstrap.features import mounts
from waypost.domain.amendment import Confirm
from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import parse_id
from waypost.domain.settlement import Sent
from waypost.domain.time import MINUTE_MS
from waypost.features.analytics.parts import count
from waypost.features.analytics.settings import AnalyticsSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]


@asynccontextmanager
async def pages(**features: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient, httpx.AsyncClient]]:
    """A service with settings of features, a caller of its API, and a browser."""
    async with served() as (service, caller):
        grounds = {
            name: replace(ground, config=replace(ground.config, features=features))
            for name, ground in service.api.grounds.items()
        }
        service.api = replace(service.api, grounds=grounds, mounts=mounts(grounds))
        async with browser(service) as here:
            yield service, caller, here


def text_of(page: httpx.Response) -> str:
    """What a page says, without its tags and with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).split()).replace("\u202f", " ")


async def _counted(service: Service, caller: httpx.AsyncClient) -> None:
    """Send four of one campaign: three arrive, two are opened, a button of one is pressed; and one of no campaign."""
    told = []
    for n in range(5):
        fields: dict[str, Any] = {} if n == 4 else {"campaign": "spring"}
        answer = await caller.post("/v1/notifications", json=shown(f"user-{n}", **fields))
        await service.settled(Sent("p"))
        told.append((parse_id(answer.json()["id"]), 0))
    now = service.clock.now()
    reported = [(0, EventKind.ACTION), *((n, EventKind.OPENED) for n in range(2))]
    reported += [(n, EventKind.DELIVERED) for n in range(3)]
    for n, kind in reversed(reported):
        await service.work.amend([Confirm(DEMO, *told[n], kind.status, now)], now)
        await service.stores.device_events.add([DeviceEvent(*told[n], kind, now, "track" if n == 0 else "")])
    await count(service.api.grounds["analytics"], await service.stores.journal.read(0, 1_000))
    service.clock.advance(MINUTE_MS)


@shows("S3-123")
async def test_read_open_and_conversion_rate_stand_on_one_page() -> None:
    """With the delivery rate, over time, by platform, and as a funnel of each campaign."""
    async with pages(analytics=AnalyticsSettings(enabled=True)) as (service, caller, here):
        empty = text_of(await here.get("/dashboard/demo/analytics"))
        assert "Nothing was counted in this time" in empty
        await _counted(service, caller)
        said = text_of(await here.get("/dashboard/demo/analytics", params={"campaign": "spring"}))
        for told in (
            "4 sent",
            "75.0 % delivery rate (3 delivered)",
            "50.0 % read rate (2 read)",
            "50.0 % open rate (2 opened)",
            "25.0 % conversion rate (1 acted on)",
        ):
            assert told in said
        everything = await here.get("/dashboard/demo/analytics")
        assert "60.0 % delivery rate" in text_of(everything)
        assert "spring sent 4 100.0 % delivered 3 75.0 %, 75.0 % of the step before" in text_of(everything)
        assert re.search(r'"label":"read","colour":"--accent","dash":\[\],"values":\[0.4\]', everything.text)
        assert "Nothing was counted" in text_of(await here.get("/dashboard/demo/analytics?campaign=autumn"))


async def test_the_page_says_how_to_have_things_counted() -> None:
    async with pages() as (_, _, here):
        assert "analytics: enabled: true" in text_of(await here.get("/dashboard/demo/analytics"))

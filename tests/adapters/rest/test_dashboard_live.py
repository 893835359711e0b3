"""Pages that follow what happens, over the product's own server: what is sent, and what ends it."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from msgspec.structs import replace

from tests.adapters.rest.service import Service, served, shown
from tests.adapters.rest.test_dashboard_login import HASHED
from waypost.bootstrap import features
from waypost.domain.time import HOUR_MS, later
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings
from waypost.features.dashboard import live
from waypost.features.dashboard.credentials import token_hash
from waypost.features.dashboard.settings import DashboardSettings
from waypost.stores.sql.accounts import Account, NewSession

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]

FOLLOWING = {"accept": "text/event-stream"}


@asynccontextmanager
async def in_reach(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A browser on this machine, by a real connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = ApiServer(build_app(service.api), listener, serve_options(RestSettings()))
    await server.start()
    port = listener.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=base, timeout=30) as browser:
            browser.cookies.set(f"waypost_local_{port}", service.invitations.session(service.clock.now()))
            yield browser
    finally:
        await server.stop()


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """The pages that are sent, or the names of other events; a comment is one without a name."""
    name = ""
    async for line in lines:
        field, _, value = line.partition(": ")
        if line == ":":
            yield "still"
        elif field == "event":
            name = value
        elif field == "data":
            yield json.loads(value)
        elif field == "data:":
            yield name


async def _sent(service: Service) -> str:
    async with service.client() as caller:
        return str((await caller.post("/v1/notifications", json=shown("ann"))).json()["id"])


async def test_a_story_is_sent_again_when_it_has_changed_and_until_the_process_goes() -> None:
    async with served() as (service, caller), in_reach(service) as browser:
        one = await _sent(service)
        page = f"/dashboard/demo/events/{one}"
        await browser.get(page)  # which gives the token of its forms
        async with browser.stream("GET", page, headers=FOLLOWING) as answer:
            assert answer.headers["content-type"] == "text/event-stream" and "nosniff" in str(answer.headers)
            events = _events(answer.aiter_lines())
            assert "pending" in await anext(events)
            assert await anext(events) == "still", "nothing has changed"
            assert (await caller.post(f"/v1/notifications/{one}/cancel")).status_code == 200
            while (told := await anext(events)) == "still":
                pass
            assert "cancelled" in told and "data-live" not in told
            service.is_draining = True
            assert {each async for each in events} <= {"still"}, "it ends, with nothing to say"


async def test_there_is_room_for_so_many_of_one_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PERSON_LIMIT", 1)
    async with served() as (service, _), in_reach(service) as browser:
        page = "/dashboard/demo/overview"
        async with browser.stream("GET", page, headers=FOLLOWING) as answer:
            await anext(answer.aiter_lines())
            refused = await browser.get(page, headers=FOLLOWING)
            assert refused.status_code == 429 and "too many pages" in refused.text
            assert (await browser.get(page)).status_code == 200
            assert (await browser.get("/dashboard/demo/failed", headers=FOLLOWING)).status_code == 200, "not a live one"


async def test_it_ends_with_the_session() -> None:
    async with served() as (service, _):
        ground = replace(service.api.grounds["dashboard"], settings=DashboardSettings(accounts=True))
        grounds = {**service.api.grounds, "dashboard": ground}
        service.api = replace(service.api, grounds=grounds, mounts=features.mounts(grounds))
        await service.stores.accounts.put(Account("ann", "viewer", HASHED, None, service.clock.now()))
        async with in_reach(service) as browser:
            page = f"/dashboard/demo/events/{await _sent(service)}"
            now = service.clock.now()
            await service.stores.accounts.begin(NewSession(token_hash("s3cret"), "ann", now, later(now, HOUR_MS)))
            browser.cookies.set("waypost_session", "s3cret")
            async with browser.stream("GET", page, headers=FOLLOWING) as answer:
                events = _events(answer.aiter_lines())
                assert "pending" in await anext(events)
                await service.stores.accounts.end_all("ann")
                assert [each async for each in events if each != "still"] == ["gone"]

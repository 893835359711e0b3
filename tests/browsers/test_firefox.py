"""A real Firefox subscribes to the lab, and shows what a real Waypost sends: the whole way of a push, and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from tests.browsers.firefox import firefox
from tests.journeys.harness import DEADLINE_S, Json, Service, running, until
from tests.shows import shows
from waypost.lab.jose import to_base64url

pytestmark = pytest.mark.asyncio
SITE = Path(__file__).parent / "site"


class Site:
    """The web site of a shop, with a backend that its pages talk to."""

    def __init__(self, vapid_key: str) -> None:
        self.url = ""
        self.order: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        """What the page is to do, once somebody says it."""
        self._key = vapid_key
        self._told: dict[str, asyncio.Queue[Json]] = {}

    async def told(self, what: str) -> Json:
        """Wait until the page or its service worker tells this."""
        failed = asyncio.create_task(self._of("failed").get())
        came = asyncio.create_task(self._of(what).get())
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.wait({failed, came}, return_when=asyncio.FIRST_COMPLETED)
        assert came.done(), failed.result()
        failed.cancel()
        return came.result()

    def _of(self, what: str) -> asyncio.Queue[Json]:
        return self._told.setdefault(what, asyncio.Queue())

    async def hear(self, request: web.Request) -> web.Response:
        """Take what a page tells."""
        said = json.loads(await request.text())
        self._of(said["what"]).put_nowait(said)
        return web.json_response({})

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Serve a file, or the page."""
        file = SITE / request.path.lstrip("/")
        return web.FileResponse(file if file.is_file() else SITE / "index.html")

    async def key(self, _request: web.Request) -> web.Response:
        """Say whom pushes come from."""
        return web.json_response({"key": self._key})

    async def wait(self, _request: web.Request) -> web.Response:
        """Answer when there is something to do."""
        return web.json_response(await self.order)


def public_key(pem: Path) -> str:
    """The public half of a key of Waypost's, as browsers want it."""
    private: Any = load_pem_private_key(pem.read_bytes(), None)
    return to_base64url(private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


@contextlib.asynccontextmanager
async def serving(vapid_key: str) -> AsyncIterator[Site]:
    """The site on a port of its own."""
    site = Site(vapid_key)
    app = web.Application()
    app.add_routes([web.post("/told", site.hear), web.get("/key", site.key), web.get("/order", site.wait)])
    app.add_routes([web.get("/{path:.*}", site.give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "localhost", 0).start()
    site.url = f"http://localhost:{runner.addresses[0][1]}"
    try:
        yield site
    finally:
        await runner.cleanup()


async def said(service: Service, method: str, path: str, body: Json | None = None) -> Json:
    """Call Waypost as the site's backend does."""
    status, answer = await service.ask(method, path, body)
    assert status < 300, answer
    return answer


async def acknowledged(service: Service, count: int) -> list[int]:
    """The codes with which the browser acknowledged, once there are so many."""
    (browser,) = (await service.lab.ask("GET", "/browsers"))["browsers"]
    codes: list[int] = browser["acknowledged"]
    return codes if len(codes) >= count else []


@shows("S3-133")
async def test_a_push_is_shown_in_firefox_tapped_and_read(tmp_path: Path) -> None:
    """S3-133: register, create, the worker sends, the client shows, the tap navigates, the read reaches the server.

    What is read on another device goes from the screen, too.
    """
    async with running(tmp_path, start=False, workers=1) as service:
        service.configure(workers=1, app={"inapp": {"badge": True, "dismiss": True}})
        await service.start()
        async with serving(public_key(service.lab.directory / "vapid.pem")) as site:
            with firefox(tmp_path, service.lab.urls["browsers"], site.url):
                subscription = (await site.told("subscribed"))["subscription"]
                device = {"platform": "web", "token": subscription["endpoint"], "keys": subscription["keys"]}
                await said(service, "PUT", "/v1/devices/ann/firefox", device)

                parcel = {"user_id": "ann", "title": "Your parcel is here", "link": f"{site.url}/orders/7"}
                body = parcel | {"channels": ["push", "inapp"]}
                sent = (await said(service, "POST", "/v1/notifications", body))["id"]
                shown = await site.told("shown")
                assert (shown["id"], shown["titles"], shown["badge"]) == (sent, ["Your parcel is here"], 1)
                assert await until(partial(acknowledged, service, 1), "the acknowledgement") == [100]

                assert (await site.told("opened"))["path"] == "/"
                site.order.set_result({"tap": sent})
                assert (await site.told("opened"))["path"] == "/orders/7"
                assert (await site.told("tapped"))["id"] == sent
                marks = {"mark": "read", "ids": [sent]}
                answer = await said(service, "POST", "/v1/users/ann/feed/marks", marks)
                assert (answer["changed"], answer["unread"]) == (1, 0)
                receipts = (await said(service, "GET", f"/v1/notifications/{sent}"))["receipts"]
                statuses = {each["device_id"]: each["status"] for each in receipts}
                assert statuses == {"firefox": "sent", "inapp:feed": "opened"}

                body = {"user_id": "ann", "title": "Your code is 4711", "channels": ["push", "inapp"]}
                sent = (await said(service, "POST", "/v1/notifications", body))["id"]
                assert (await site.told("shown"))["titles"] == ["Your code is 4711"]
                await said(service, "POST", "/v1/users/ann/feed/marks", {"mark": "read", "ids": [sent]})
                gone = await site.told("read")
                while sent not in gone["reads"]:  # it was told of the first one alone before
                    gone = await site.told("read")
                assert (gone["badge"], gone["left"]) == (0, [])

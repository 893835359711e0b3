"""The web client in a real Firefox, whose push service is the lab: nothing of the subscription is made up."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from aiohttp import web

from tests.browsers.firefox import firefox
from tests.browsers.test_firefox import public_key
from tests.journeys.harness import DEADLINE_S, Json, running, until
from tests.shows import shows
from tests.web.conftest import issuer

pytestmark = pytest.mark.asyncio

PAGE: Final = """<!doctype html><meta charset="utf-8"><title>A shop</title><link rel="icon" href="data:,">
<script type="module" src="/page.js"></script>"""

SCRIPT: Final = """
import { Waypost } from "%(url)s/sdk/inbox.js";

const tell = (what, more = {}) => fetch("/told", { method: "POST", body: JSON.stringify({ what, ...more }) });
const token = async () => (await fetch("/token")).text();
const client = new Waypost({ url: "%(url)s", user: "ann", token, push: { worker: "/worker.js", key: "%(key)s" } });
const shown = async () => (await (await navigator.serviceWorker.ready).getNotifications()).map((each) => each.title);

client.on("entry", ({ id }) => tell("entry", { id }));
client.on("click", ({ data }) => {
  history.pushState(null, "", "/screens/" + data.screen);
  tell("navigated", { path: location.pathname });
});
navigator.serviceWorker.addEventListener("message", async ({ data }) => {
  if (data?.waypost?.pushed !== undefined) tell("pushed", { shown: await shown() });
});
await client.start();
// A call that is made before Firefox has spoken to its push service is never answered.
const later = () => new Promise((come) => setTimeout(come, 4000));
while (!(await Promise.race([client.push.enable(), later()])));
await tell("enabled");
const { tap } = await (await fetch("/order")).json();
(await navigator.serviceWorker.ready).active.postMessage({ tap });
await client.feed.mark("read", [(await (await fetch("/order")).json()).tap]);
await tell("read", { unread: client.feed.counts.unread });
"""

WORKER: Final = """
// Nobody can click in a browser without a screen: the same event, which no browser lets one wait for.
ExtendableEvent.prototype.waitUntil = new Proxy(ExtendableEvent.prototype.waitUntil, {
  apply: (real, event, given) => event.isTrusted && Reflect.apply(real, event, given),
});
importScripts("%(url)s/sdk/worker.js");
self.addEventListener("message", async ({ data }) => {
  const [notification] = await self.registration.getNotifications();
  if (data.tap) self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
});
"""


class Shop:
    """A site with the web client in it, and what its page tells."""

    def __init__(self, secret: str) -> None:
        self.origin = ""
        self.files: dict[str, tuple[str, str]] = {"/": ("text/html", PAGE)}
        self.order: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._secret = secret
        self._told: dict[str, asyncio.Queue[Json]] = {}

    async def told(self, what: str) -> Json:
        """Wait until the page tells this."""
        async with asyncio.timeout(DEADLINE_S):
            return await self._told.setdefault(what, asyncio.Queue()).get()

    async def hear(self, request: web.Request) -> web.Response:
        said = json.loads(await request.text())
        self._told.setdefault(said["what"], asyncio.Queue()).put_nowait(said)
        return web.json_response({})

    async def token(self, _request: web.Request) -> web.Response:
        now = int(time.time())
        claims = {"iss": "https://site.example", "aud": "waypost", "sub": "ann", "iat": now, "exp": now + 600}
        return web.Response(text=jwt.encode(claims, self._secret, "HS256"))

    async def ordered(self, _request: web.Request) -> web.Response:
        return web.json_response({"tap": await self.order})

    async def give(self, request: web.Request) -> web.Response:
        media_type, text = self.files.get(request.path, self.files["/"])
        return web.Response(text=text, content_type=media_type)


@asynccontextmanager
async def serving(secret: str) -> AsyncIterator[Shop]:
    """The shop on a port of its own."""
    shop = Shop(secret)
    app = web.Application()
    app.add_routes([web.post("/told", shop.hear), web.get("/token", shop.token), web.get("/order", shop.ordered)])
    app.add_routes([web.get("/{path:.*}", shop.give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "localhost", 0).start()
    shop.origin = f"http://localhost:{runner.addresses[0][1]}"
    try:
        yield shop
    finally:
        await runner.cleanup()


@shows("S3-133")
async def test_the_client_goes_the_whole_way_in_firefox(tmp_path: Path) -> None:
    """Register, create, the worker sends, the client shows, the tap navigates, the read reaches the server."""
    secret = tmp_path / "login.secret"
    secret.write_text(secrets.token_hex(32))
    async with serving(secret.read_text()) as shop, running(tmp_path, start=False, workers=1) as service:
        app = {"inapp": {}, "issuers": {"site": issuer(secret)}}
        service.configure(workers=1, app=app, rest={"cors_origins": [shop.origin]})
        await service.start()
        given = {"url": service.url, "key": public_key(service.lab.directory / "vapid.pem")}
        shop.files["/page.js"] = ("text/javascript", SCRIPT % given)
        shop.files["/worker.js"] = ("text/javascript", WORKER % given)

        async def said(method: str, path: str, body: Json | None = None) -> Any:
            status, answer = await service.ask(method, path, body)
            assert status < 300, answer
            return answer

        with firefox(tmp_path, service.lab.urls["browsers"], shop.origin):
            await shop.told("enabled")
            (device,) = (await said("GET", "/v1/devices/ann"))["items"]
            assert device["platform"] == "web"
            parcel = {"user_id": "ann", "title": "Your parcel is here", "data": {"screen": "parcels"}}
            sent = (await said("POST", "/v1/notifications", parcel | {"channels": ["push", "inapp"]}))["id"]
            assert (await shop.told("pushed"))["shown"] == ["Your parcel is here"]
            assert (await shop.told("entry"))["id"] == sent
            shop.order.set_result(sent)
            assert (await shop.told("navigated"))["path"] == "/screens/parcels"
            assert (await shop.told("read"))["unread"] == 0

            async def opened() -> bool:
                receipts = (await said("GET", f"/v1/notifications/{sent}"))["receipts"]
                statuses = {each["device_id"]: each["status"] for each in receipts}
                return statuses == {device["device_id"]: "opened", "inapp:feed": "opened"}

            await until(opened, "the receipts of the push and of the feed")

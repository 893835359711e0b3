"""The dashboard's pages of users, campaigns and figures in Debian's Chromium: on a phone, by keyboard, with axe."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest
from litestar.types import ASGIApp

from tests.adapters.rest import service
from tests.adapters.rest.test_dashboard_pages import counted, pages
from tests.contract.sql import settings_of
from tests.web.conftest import CHROMIUM
from waypost.bootstrap.features import tables
from waypost.domain.time import Instant
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings
from waypost.features.analytics.settings import AnalyticsSettings
from waypost.features.dashboard import gate
from waypost.features.dashboard.operators import Operator, Role
from waypost.features.templates.routes import EXAMPLE
from waypost.stores.sql.database import prepare

pytestmark = pytest.mark.asyncio

WALK: Final = """
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
const [, program, link, base, ...paths] = process.argv;
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 390, height: 844 }, reducedMotion: "reduce" });
const page = await context.newPage();
let said = [];
page.on("console", (message) => message.type() === "error" && said.push(message.text()));
page.on("pageerror", (error) => said.push(error.message));
await page.goto(link);
const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
for (const [n, path] of paths.entries()) {
  said = [];
  await page.emulateMedia({ colorScheme: n % 2 ? "light" : "dark" });
  const answer = await page.goto(base + path);
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run({ resultTypes: ["violations"], iframes: false }));
  const violations = found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
  const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  const drawn = await page.locator("[data-chart] canvas").count();
  console.log(JSON.stringify({ path, status: answer.status(), violations, isTooWide, said, drawn }));
}
await page.goto(base + "/users");
await page.keyboard.press("Tab");
const first = await page.evaluate(() => document.activeElement.textContent);
await page.getByRole("searchbox").focus();
await page.keyboard.type("ann");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "ann", exact: true }).waitFor();
await page.getByLabel("anything at all").focus();
await page.keyboard.press("Space");
await page.getByRole("button", { name: "Save preferences" }).focus();
await page.keyboard.press("Enter");
const told = await page.getByRole("status").textContent();
await page.goto(base + "/access/keys/-/new");
await page.getByLabel("Who calls with it").fill("shop");
await page.getByLabel("read", { exact: true }).focus();
await page.keyboard.press("Space");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "The new key of shop" }).waitFor();
await page.evaluate(axe);
const violated = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }).then((found) => found.violations));
const key = await page.locator("#key").textContent();
console.log(JSON.stringify({ first, told, violated, key }));
await browser.close();
"""


@asynccontextmanager
async def in_reach(app: ASGIApp) -> AsyncIterator[str]:
    """Serve *app* on a port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = ApiServer(app, listener, serve_options(RestSettings()))
    await server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await server.stop()


async def _filled(caller: httpx.AsyncClient) -> list[str]:
    """Make one of each thing that has a page of its own; the pages."""
    sale = {"notification": {"title": "Sale", "variants": [{"name": "a"}, {"name": "b", "title": "Now"}]}}
    job = {"notification": {"title": "News"}, "recipients": ["ann", "bob"]}
    weekly = {"starts": "2027-02-01T09:00", "rule": "FREQ=WEEKLY", "notification": service.shown("ann")}
    for method, path, body in (
        ("PUT", "/v1/devices/ann/phone", {"platform": "android", "token": "t" * 30}),
        ("PUT", "/v1/users/ann/contacts/email", {"address": "ann@example.com"}),
        ("PUT", "/v1/campaigns/draft", {**sale, "recipients": ["ann"]}),
        ("PUT", "/v1/campaigns/begun", {**sale, "recipients": ["ann"]}),
        ("POST", "/v1/campaigns/begun/start", None),
        ("PUT", "/v1/templates/hello", EXAMPLE),
        ("PUT", "/v1/schedules/weekly", weekly),
        ("PUT", "/v1/topics/news", {}),
        ("POST", "/v1/topics/news/members", {"add": ["ann"]}),
        ("PUT", "/v1/segments/rich", {"filter": {"attribute": {"name": "plan"}}}),
        ("POST", "/v1/bulk", job),
    ):
        answer = await caller.request(method, path, json=body)
        assert answer.is_success, answer.text
    own = [
        "users",
        "campaigns",
        "audiences",
        "templates",
        "jobs",
        "analytics",
        "users/ann",
        "users/ann/forget",
        "campaigns/-/new",
        "campaigns/draft",
        "campaigns/draft/forecast",
    ]
    own += ["campaigns/begun", "templates/-/new", "templates/hello", "audiences/topics/news"]
    own += ["audiences/-/segment?name=rich", f"jobs/{answer.json()['id']}", "access", "access/keys/-/new"]
    own += ["access/keys/wp_any/rotate", "providers/-/test"]
    return [f"/{path}" for path in own]


@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs Debian's chromium")
async def test_every_page_is_for_everybody(sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No violation that axe knows of, no message of the browser, nothing wider than a phone; a change by keyboard."""
    prepare(settings_of(f"sqlite:///{tmp_path / 'empty.db'}"), Instant(0), tables())
    monkeypatch.setattr(service, "FILE", tmp_path / "empty.db")
    monkeypatch.setattr(gate, "LOCAL", Operator("ada", Role.ADMIN))
    async with pages(analytics=AnalyticsSettings(enabled=True)) as (made, caller, _):
        await counted(made, caller)
        paths = await _filled(caller)
        async with in_reach(build_app(made.api)) as url:
            link = f"{url}/dashboard?token={made.invitations.link(made.clock.now())}"
            command = ["node", "--input-type=module", "-e", WALK, CHROMIUM, link, f"{url}/dashboard/demo", *paths]
            walk = await asyncio.create_subprocess_exec(*command, cwd=sdk, stdout=-1, stderr=-1)
            out, err = await walk.communicate()
        assert walk.returncode == 0, err.decode()
        *seen, by_keyboard = map(json.loads, out.splitlines())
        assert [each["path"] for each in seen] == paths
        for each in seen:
            assert each["status"] == 200 and not each["isTooWide"] and not each["violations"] + each["said"], each
        assert [each["drawn"] for each in seen if each["path"] == "/analytics"] == [2]
        key = by_keyboard.pop("key")
        assert by_keyboard == {"first": "Skip to the page", "told": "Changed.", "violated": []}
        async with made.client(key) as shop:
            assert (await shop.get("/v1/notifications")).status_code == 200, "the key that was shown is one"
        assert (await caller.get("/v1/users/ann/preferences")).json()["enabled"] is False

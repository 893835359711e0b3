"""The dashboard over a whole API: its pages, who is let in, and what a browser is told to refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import DEMO, Service, served, shown
from tests.shows import shows
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.bootstrap.registry import installed
from waypost.domain.delivery import FailureClass
from waypost.domain.device import EMAIL, Platform, Registration
from waypost.domain.ids import DeviceId, UserId, format_id
from waypost.domain.notification import Lane
from waypost.domain.settlement import Dead
from waypost.domain.time import MINUTE_MS, later
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.entrypoints.rest.app import build_app
from waypost.features.recovery.scanning import scan
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]

HERE = "http://localhost"


@asynccontextmanager
async def dashboard(**settings: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient, httpx.AsyncClient]]:
    """A service, a caller of its API, and a browser on its machine."""
    async with served(**settings) as (service, caller), browser(service) as here:
        let_in(service, here)
        yield service, caller, here


def let_in(service: Service, here: httpx.AsyncClient) -> None:
    """Give a browser what it has once it opened a link."""
    here.cookies.set("waypost_local_80", service.invitations.session(service.clock.now()), domain="localhost.local")


def browser(service: Service, url: str = HERE, peer: str = "127.0.0.1", **changes: Any) -> httpx.AsyncClient:
    canonical = {platform: plugin.canonical for plugin in installed() for platform in plugin.platforms}
    limits = EntrypointLimits(Bounds(), MemoryLimiter(service.clock), service.clock, Silent())
    api = msgspec.structs.replace(service.api, **{"canonical": canonical, "limits": limits, **changes})
    transport: Any = httpx.ASGITransport(build_app(api), client=(peer, 1))  # type: ignore[arg-type] # as served
    return httpx.AsyncClient(transport=transport, base_url=url)


async def _sent(caller: httpx.AsyncClient, user: str = "user-1", **fields: Any) -> str:
    answer = await caller.post("/v1/notifications", json=shown(user, **fields))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def test_the_front_leads_to_an_overview_that_no_page_elsewhere_can_use() -> None:
    async with dashboard() as (_, caller, here):
        await _sent(caller)
        front = await here.get("/dashboard")
        assert (front.status_code, front.headers["location"]) == (303, "/dashboard/demo/overview")
        page = await here.get(front.headers["location"])
        assert page.status_code == 200 and "open now" in page.text and "local" in page.text
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store" and page.headers["x-content-type-options"] == "nosniff"
        for name in ("page.js", "page.css", "uplot.js", "uplot.css"):
            assert (await here.get(f"/dashboard/-/static/{name}")).status_code == 200
        assert (await here.get("/dashboard/-/static/page.py")).status_code == 404


async def test_without_a_login_only_browsers_on_this_machine_are_let_in() -> None:
    """A name of somebody else's that leads here is refused, and so is whoever comes through a proxy."""
    async with dashboard() as (service, _, here):
        page = "/dashboard/demo/overview"
        assert (await here.get(page, headers={"x-forwarded-for": "203.0.113.9"})).status_code == 403
        async with browser(service, "http://waypost.example") as rebound:
            assert (await rebound.get(page)).status_code == 403
        async with browser(service, peer="203.0.113.9") as elsewhere:
            assert (await elsewhere.get(page)).status_code == 403
        assert (await here.get(page, headers={"sec-fetch-site": "cross-site"})).status_code == 403
        followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert (await here.get(page, headers=followed)).status_code == 200
        assert (await here.get("/dashboard/nothing/overview")).status_code == 404


@shows("S4-05")
async def test_each_search_finds_the_notification_and_its_whole_history() -> None:
    """By id, user, mailbox, token, status and time."""
    async with dashboard() as (service, caller, here):
        for n, (platform, token) in enumerate([(EMAIL, "ann@example.com"), (Platform("android"), "a-token-of-fcm")]):
            device = Registration(DEMO, UserId("ann"), DeviceId(f"device-{n}"), platform, token)
            await service.devices.upsert(device, service.clock.now(), 0)
        wanted, other = await _sent(caller, "ann"), await _sent(caller, "bob")
        for query in (
            {"q": "ann"},
            {"q": "ann@EXAMPLE.com"},
            {"q": "a-token-of-fcm"},
            {"user": "ann", "status": "pending"},
        ):
            found = await here.get("/dashboard/demo/events", params=query)
            assert wanted in found.text and other not in found.text, query
        by_id = await here.get("/dashboard/demo/events", params={"q": wanted})
        assert by_id.headers["location"] == f"/dashboard/demo/events/{wanted}"
        story = await here.get(by_id.headers["location"])
        assert "ann" in story.text and "pending" in story.text and "Hello" not in story.text
        for query, is_there in (
            ({"since": "2000-01-01T00:00"}, True),
            ({"until": "2000-01-01T00:00"}, False),
            ({"since": "2199-01-01T00:00"}, False),
            ({"status": "failed"}, False),
            ({"status": "pending"}, True),
        ):
            found = await here.get("/dashboard/demo/events", params=query)
            assert (wanted in found.text) is is_there, query


async def test_a_message_is_shown_when_asked_for_and_who_looked_is_on_record() -> None:
    async with dashboard() as (_, caller, here):
        one = await _sent(caller, title="Top <secret>")
        page = await here.get(f"/dashboard/demo/events/{one}")
        assert "secret" not in page.text
        address = f"/dashboard/demo/events/{one}/message"
        assert (await here.post(address, data={"csrf": "guessed"})).status_code == 403
        told = await here.post(address, data={"csrf": here.cookies["waypost_csrf"]})
        assert "Top &lt;secret&gt;" in told.text
        (entry,) = (await caller.get("/v1/audit")).json()["items"]
        assert (entry["by"], entry["act"], entry["subject"]) == ("dashboard:local", "message.seen", one)
        without = await _without_its_token(here, address)
        assert without == [403] * 3, "who has no token has no form, whatever it says"
        foreign = {"origin": "https://evil.example"}
        posted = await here.post(address, data={"csrf": here.cookies["waypost_csrf"]}, headers=foreign)
        assert posted.status_code == 403


async def _without_its_token(here: httpx.AsyncClient, address: str) -> list[int]:
    """What is answered to forms of a browser that has no token, or an empty one, and to JSON that looks like one."""
    kept, here.cookies = here.cookies, httpx.Cookies(here.cookies)
    here.cookies.delete("waypost_csrf")
    local = f"waypost_local_80={here.cookies['waypost_local_80']}"
    try:
        answers = [
            await here.post(address, data={"csrf": "-"}),
            await here.post(address, data={"csrf": ""}, headers={"cookie": f"waypost_csrf=; {local}"}),
            await here.post(address, content=b'{"title": "&csrf=-&"}', headers={"content-type": "application/json"}),
        ]
    finally:
        here.cookies = kept
    return [answer.status_code for answer in answers]


async def test_what_no_store_keeps_and_no_browser_says_is_refused_and_not_a_fault() -> None:
    async with dashboard() as (_, _, here):
        base = "/dashboard/demo"
        await here.get(f"{base}/events")
        for path in ("/events?q=a%00b", "/failed?user=%00", "/events/%00", "/access?by=%00"):
            assert (await here.get(base + path)).status_code == 400, path
        form = {"csrf": here.cookies["waypost_csrf"], "platform": "email", "token": "a\0b"}
        assert (await here.post(f"{base}/users/ann/register", data=form)).status_code == 400
        assert (await here.get(f"{base}/events?until=0001-01-01T00:00")).status_code == 200
        assert (await here.get(f"{base}/overview", headers={"host": "[bad"})).status_code == 403
        assert (await here.post(f"{base}/failed/ask", data=form, headers={"origin": "http://["})).status_code == 403


async def _dead(service: Service, caller: httpx.AsyncClient, user: str, code: str) -> str:
    one = await _sent(caller, user)
    await service.settled(Dead(code, "no such device", FailureClass.TERMINAL, letter=True))
    return one


async def _posted(here: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await here.post(f"/dashboard/demo{path}", data={"csrf": here.cookies["waypost_csrf"], **fields})


async def _status(caller: httpx.AsyncClient, one: str) -> tuple[str, int]:
    found = (await caller.get(f"/v1/notifications/{one}")).json()["notification"]
    return found["status"], found["round"]


@shows("S4-26")
async def test_what_failed_is_retried_one_or_many_and_goes_through_the_pipeline_again() -> None:
    """Those chosen, 1 to 100, or all that match; a page says first what will happen."""
    async with dashboard() as (service, caller, here):
        made = [await _dead(service, caller, f"user-{n}", "Gone" if n < 3 else "Other") for n in range(5)]
        page = await here.get("/dashboard/demo/failed")
        assert all(one in page.text for one in made)
        by_code = await here.get("/dashboard/demo/failed", params={"code": "Gone"})
        assert [one in by_code.text for one in made] == [True, True, True, False, False]

        asked = await _posted(here, "/failed/ask", id=[made[0], made[3]])
        assert "Retry 2 notifications?" in asked.text and "begins a new round" in asked.text
        assert await _status(caller, made[0]) == ("failed", 1), "nothing happens before it is confirmed"
        done = await _posted(here, "/failed/retry", id=[made[0], made[3]])
        assert (done.status_code, done.headers["location"]) == (303, "/dashboard/demo/failed")
        told = await here.get(done.headers["location"])
        assert "2 began a new round." in told.text and made[0] not in told.text and made[1] in told.text
        assert "2 began" not in (await here.get(done.headers["location"])).text, "it is said once"
        assert [(await _status(caller, made[n]))[0] for n in (0, 3)] == ["processing", "processing"]
        await service.work.promote_due(service.clock.now(), 10)
        lease = await service.work.lease(Lane.NORMAL, 10, later(service.clock.now(), 60_000))
        assert {format_id(item.notification.id) for item in lease.items} == {made[0], made[3]}

        assert "All dead letters of demo" in (await _posted(here, "/failed/ask-all", code="Gone")).text
        await _posted(here, "/failed/retry-all", code="Gone")
        assert [await _status(caller, one) for one in (made[1], made[4])] == [("processing", 2), ("failed", 1)]
        for ids in ([], [f"01a3185c-5000-7000-8000-{n:012x}" for n in range(101)]):
            assert (await _posted(here, "/failed/ask", id=ids)).status_code == 400
        by = {(each["by"], each["act"]) for each in (await caller.get("/v1/audit")).json()["items"]}
        assert by == {("dashboard:local", "dead.replayed")}


@shows("S4-61")
async def test_alerts_are_listed_with_details_and_retried_or_resolved() -> None:
    """Real ones: what nobody takes for five minutes."""
    async with dashboard() as (service, caller, here):
        assert "No alerts" in (await here.get("/dashboard/demo/alerts")).text
        made = [await _sent(caller, user) for user in ("ann", "bob")]
        for _ in range(3):
            service.clock.advance(10 * MINUTE_MS)
            await scan(service.api.grounds["recovery"])
        page = await here.get("/dashboard/demo/alerts")
        for one in made:
            assert one in page.text
        for detail in ("orphaned pending", "Raised", "Its status then", "Retries", "pending"):
            assert detail in page.text
        assert "2 open alerts" in (await here.get("/dashboard/demo/overview")).text
        assert "has failed" in (await _posted(here, f"/alerts/{made[0]}/ask-resolve")).text
        assert (await _posted(here, f"/alerts/{made[0]}/resolve")).status_code == 303
        assert (await _posted(here, f"/alerts/{made[1]}/retry")).status_code == 303
        assert (await _posted(here, f"/alerts/{made[1]}/retry")).status_code == 409
        assert [(await _status(caller, one))[0] for one in made] == ["failed", "pending"]
        assert made[0] not in (await here.get("/dashboard/demo/alerts")).text
        assert made[0] in (await here.get("/dashboard/demo/alerts", params={"all": "1"})).text


async def test_a_notification_is_cancelled_and_retried_from_its_story() -> None:
    async with dashboard() as (service, caller, here):
        failed, waiting = await _dead(service, caller, "ann", "Gone"), await _sent(caller, "bob")
        for one, button, other in ((failed, "Retry what failed", "Cancel…"), (waiting, "Cancel…", "Retry what failed")):
            page = (await here.get(f"/dashboard/demo/events/{one}")).text
            assert button in page and other not in page
        assert "not sent any more" in (await _posted(here, f"/events/{waiting}/ask-cancel")).text
        done = await _posted(here, f"/events/{waiting}/cancel")
        assert "It is cancelled." in (await here.get(done.headers["location"])).text
        assert (await _posted(here, f"/events/{failed}/retry")).status_code == 303
        assert [await _status(caller, one) for one in (failed, waiting)] == [("processing", 2), ("cancelled", 1)]
        assert (await _posted(here, f"/events/{failed}/retry")).status_code == 409
        acts = {(each["by"], each["act"]) for each in (await caller.get("/v1/audit")).json()["items"]}
        assert acts == {("dashboard:local", "notification.cancelled"), ("dashboard:local", "notification.replayed")}


METRICS = b"""\
waypost_attempts_total{app="demo",lane="low",outcome="taken",provider="fcm"} 3.0
waypost_attempts_total{app="demo",lane="low",outcome="refused",provider="fcm"} 1.0
waypost_failed_attempts_total{app="demo",provider="fcm",code="QUOTA"} 1.0
waypost_breaker_open{credential="demo/fcm"} 1.0
waypost_in_flight_limit{credential="demo/fcm"} 200.0
waypost_credential_ends_timestamp_seconds{credential="demo/apns"} 1800000000.0
waypost_breaker_open{credential="demo/apns"} 0.0
waypost_breaker_open{credential="other/sms"} 0.0
"""


async def test_providers_keys_the_record_and_settings_are_shown() -> None:
    async with dashboard() as (service, caller, _):
        service.api = msgspec.structs.replace(service.api, metrics=lambda: METRICS)
        async with browser(service) as here:
            let_in(service, here)
            page = (await here.get("/dashboard/demo/providers")).text
            for told in ("breaker open", "75.0\u202f%", "QUOTA", "0 of 200", "2027-01-15 08:00:00", "apns"):
                assert told in page, told
            assert "sms" not in page, "another app's"
            await caller.post(f"/v1/notifications/{await _sent(caller)}/cancel")
            access = (await here.get("/dashboard/demo/access")).text
            assert "billing" in access and "notification.cancelled" in access and "Revoke" not in access
            filtered = await here.get("/dashboard/demo/access", params={"by": "nobody"})
            assert "No order is on record" in filtered.text
            key = service.made.prefix
            assert (await _posted(here, f"/access/keys/{key}/revoke")).status_code == 403, "an operator is no admin"
            told = (await here.get("/dashboard/demo/settings", params={"all": "1"})).text
            assert "rest.body_limit_bytes" in told and "524,288" in told and "recovery" not in told

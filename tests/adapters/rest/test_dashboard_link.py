"""The dashboard where nobody logs in: a browser comes in by a link of the machine's own, and nobody without one."""

from __future__ import annotations

import pytest

from tests.adapters.rest.service import served
from tests.adapters.rest.test_dashboard import browser
from waypost.domain.time import HOUR_MS
from waypost.telemetry import Event

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]

PAGE = "/dashboard/demo/overview"


async def test_a_browser_without_the_link_is_told_where_to_find_it() -> None:
    """Such as what comes through a tunnel of somebody else, by a proxy that says nothing, or from another user."""
    async with served() as (service, caller), browser(service) as here:
        for path in ("/dashboard", PAGE):
            told = await here.get(path)
            assert told.status_code == 401 and "<code>waypost dashboard</code>" in told.text, told.text
        followed = await here.get(PAGE, headers={"accept": "text/event-stream"})
        assert (followed.status_code, followed.text) == (200, "event: gone\ndata:\n\n"), "the page loads itself anew"
        assert (await here.post("/dashboard/demo/failed/retry", data={"csrf": "-", "id": "-"})).status_code == 401
        assert (await here.get("/dashboard/-/static/page.css")).status_code == 200, "the page has its looks"
        here.cookies.set("waypost_local_80", service.invitations.link(service.clock.now()), domain="localhost.local")
        assert (await here.get(PAGE)).status_code == 401, "a link is no session"
        assert (await caller.get("/v1/audit")).json()["items"] == []


async def test_a_link_is_traded_for_a_session_that_ends_by_its_time_or_by_a_new_key() -> None:
    async with served() as (service, caller), browser(service) as here:
        token = service.invitations.link(service.clock.now())
        entered = await here.get("/dashboard", params={"token": token})
        assert (entered.status_code, entered.headers["location"]) == (303, "/dashboard")
        kept, form = entered.headers.get_list("set-cookie")
        assert kept.startswith("waypost_local_80=") and form.startswith("waypost_csrf=")
        assert all(each in kept.lower() for each in ("httponly", "samesite=strict", "path=/dashboard", "max-age=43200"))
        assert token not in kept and entered.headers["referrer-policy"] == "same-origin"
        assert (await here.get(PAGE)).status_code == 200
        assert (await here.get("/dashboard", params={"token": "old"})).headers["location"] == "/dashboard"
        said = [(each["by"], each["act"], each["subject"]) for each in (await caller.get("/v1/audit")).json()["items"]]
        assert said == [("dashboard:local", "account.logged_in", "local")]
        service.invitations.renew()
        assert (await here.get(PAGE)).status_code == 401, "by a new key"
        assert (await here.get("/dashboard", params={"token": token})).status_code == 401, "its links end, too"
        token = service.invitations.link(service.clock.now())
        assert (await here.get("/dashboard", params={"token": token})).status_code == 303
        service.clock.advance(12 * HOUR_MS)
        assert (await here.get(PAGE)).status_code == 401, "by its time"
        assert (await here.get("/dashboard", params={"token": token})).status_code == 401
        assert token not in str(service.telemetry.events) + str(service.telemetry.counts)


async def test_a_link_is_for_browsers_on_this_machine_and_its_session_for_one_port() -> None:
    async with served() as (service, _):
        token = service.invitations.link(service.clock.now())
        for url, peer in (("http://waypost.example", "127.0.0.1"), ("http://localhost", "203.0.113.9")):
            async with browser(service, url, peer) as elsewhere:
                assert (await elsewhere.get("/dashboard", params={"token": token})).status_code == 403
        async with browser(service, "http://localhost:8080") as here:
            through = {"x-forwarded-for": "203.0.113.9"}
            assert (await here.get("/dashboard", params={"token": token}, headers=through)).status_code == 403
            await here.get("/dashboard", params={"token": token})
            assert "waypost_local_8080" in here.cookies and (await here.get(PAGE)).status_code == 200
            assert (await here.get(PAGE, headers={"host": "localhost:9090"})).status_code == 401
            assert (await here.get(PAGE, headers={"host": "localhost:99999"})).status_code in {401, 403}


async def test_links_that_are_not_good_are_limited_and_on_record_and_the_good_one_is_let_in() -> None:
    async with served() as (service, caller), browser(service) as here:
        tried = [(await here.get("/dashboard", params={"token": f"guess-{n}"})).status_code for n in range(15)]
        assert tried == [401] * 10 + [429] * 5
        items = (await caller.get("/v1/audit", params={"act": "account.refused"})).json()["items"]
        assert [(each["by"], each["subject"]) for each in items] == [("dashboard:(unknown)", "(unknown)")] * 11
        told = [fields for event, fields in service.telemetry.events if event is Event.LOGIN_REFUSED]
        assert told[0] == {"why": "link", "account": "(unknown)", "origin": "127.0.0.1"}
        assert [fields["why"] for fields in told] == ["link"] * 10 + ["too_often"], "those over the limit once"
        assert "guess-" not in str(items) + str(service.telemetry.events)
        token = service.invitations.link(service.clock.now())
        assert (await here.get("/dashboard", params={"token": token})).status_code == 303

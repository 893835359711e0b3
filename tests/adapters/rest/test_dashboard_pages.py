"""The dashboard's pages of figures, users, campaigns, templates and jobs, over a whole API on a file."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from tests.adapters.rest.service import DEMO, Service, served, shown
from tests.adapters.rest.test_dashboard import browser, let_in
from tests.shows import shows
from waypost.bootstrap.features import mounts
from waypost.config import AppSettings
from waypost.domain.amendment import Confirm
from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import UserId, parse_id
from waypost.domain.settlement import Sent
from waypost.domain.time import MINUTE_MS
from waypost.entrypoints.rest.app import build_app
from waypost.features.analytics.parts import count
from waypost.features.analytics.settings import AnalyticsSettings
from waypost.features.dashboard import gate
from waypost.features.dashboard.operators import Operator, Role

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]

APP = msgspec.convert({"types": {"offer": {}, "code": {"critical": True}}}, AppSettings)


@asynccontextmanager
async def pages(**features: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient, httpx.AsyncClient]]:
    """A service with settings of features, a caller of its API, and a browser."""
    async with served() as (service, _):
        apps = {**service.api.grounds["dashboard"].config.apps, DEMO: APP}
        grounds = {
            name: replace(ground, config=replace(ground.config, features=features, apps=apps))
            for name, ground in service.api.grounds.items()
        }
        service.api = replace(service.api, grounds=grounds, mounts=mounts(grounds))
        service.app = build_app(service.api)
        async with service.client() as caller, browser(service) as here:
            let_in(service, here)
            yield service, caller, here


def text_of(page: httpx.Response) -> str:
    """What a page says, without its tags and with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).split()).replace("\u202f", " ")


async def counted(service: Service, caller: httpx.AsyncClient) -> None:
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
        await counted(service, caller)
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
        assert "spring sent 4 delivered 3 75.0 % of all, 75.0 % of those before" in text_of(everything)
        assert re.search(r'"label":"read","colour":"--accent","dash":\[\],"values":\[0.4\]', everything.text)
        assert "Nothing was counted" in text_of(await here.get("/dashboard/demo/analytics?campaign=autumn"))


async def test_the_page_says_how_to_have_things_counted() -> None:
    async with pages() as (_, _, here):
        assert "analytics: enabled: true" in text_of(await here.get("/dashboard/demo/analytics"))


async def _posted(here: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await here.post(path, data={"csrf": here.cookies["waypost_csrf"], **fields})


async def _record(caller: httpx.AsyncClient) -> list[tuple[str, str]]:
    """What is on record of somebody at the dashboard, the oldest first."""
    items = (await caller.get("/v1/audit")).json()["items"]
    return [(each["act"], each["subject"]) for each in reversed(items) if each["by"] == "dashboard:local"]


async def test_devices_preferences_and_profile_of_a_user_are_changed_on_one_page() -> None:
    """The page and the API say the same afterwards; what was changed is on record, and of whom is not."""
    async with pages() as (_, caller, here):
        page = "/dashboard/demo/users/ann%2F1"
        found = await here.get("/dashboard/demo/users", params={"q": "ann/1"})
        assert found.headers["location"] == page
        assert "No device The app registers one" in text_of(await here.get(page))
        told = await _posted(here, f"{page}/register", platform="android", device_id="phone-1", token="t" * 30)
        assert (told.status_code, told.headers["location"]) == (303, page)
        said = await here.get(page)
        assert "The device phone-1 is registered." in text_of(said) and "active" in text_of(said)
        assert "t" * 30 not in said.text, "tokens are secret"
        asked = await _posted(here, f"{page}/deactivate", device_id="phone-1")
        assert "Deactivate phone-1? Nothing more is sent to it" in text_of(asked)
        assert (await _posted(here, f"{page}/deactivate", device_id="phone-1", sure="yes")).status_code == 303
        assert "inactive" in text_of(await here.get(page))

        quiet = {"wants": ["all", "type:offer"], "start": "22:00", "end": "07:00", "frequency_limit": "3"}
        assert (await _posted(here, f"{page}/preferences", **quiet)).status_code == 303
        known = (await caller.get("/v1/users/ann%2F1/preferences")).json()
        assert known["enabled"] and known["quiet_hours"] == {"start": "22:00", "end": "07:00"}
        assert known["frequency_limit"] == 3
        assert (await _posted(here, f"{page}/preferences", start="", end="")).status_code == 303
        known = (await caller.get("/v1/users/ann%2F1/preferences")).json()
        assert {each["name"]: each["enabled"] for each in known["types"]} == {"offer": False, "code": True}
        assert (known["enabled"], known["quiet_hours"], known["frequency_limit"]) == (False, None, None)

        attributes = {"locale": "de-CH", "time_zone": "Europe/Zurich", "attributes": '{"plan": "premium", "age": 30}'}
        assert (await _posted(here, f"{page}/profile", **attributes)).status_code == 303
        assert (await _posted(here, f"{page}/profile", locale="de-CH", attributes='{"age": 31}')).status_code == 303
        profile = (await caller.get("/v1/users/ann%2F1")).json()
        assert (profile["locale"], profile["time_zone"], profile["attributes"]) == ("de-CH", None, {"age": 31})
        assert "no JSON" in text_of(await _posted(here, f"{page}/profile", attributes="{"))
        assert (await _posted(here, f"{page}/bulk", out="yes")).status_code == 303
        assert "Bulk sends left out" in text_of(await here.get(page))
        assert await _record(caller) == [
            ("device.registered", "android"),
            ("device.deactivated", "android"),
            ("preferences.changed", "quiet_hours, frequency_limit"),
            ("preferences.changed", "enabled, types, quiet_hours, frequency_limit"),
            ("user.changed", "locale, time_zone, attributes"),
            ("user.changed", "time_zone, attributes"),
            ("user.changed", "bulk opt-out"),
        ]


async def test_a_user_is_forgotten_once_the_id_was_typed_and_a_viewer_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pages() as (service, _, here):
        page = "/dashboard/demo/users/ann"
        assert "cannot be undone" in text_of(await here.get(f"{page}/forget"))
        wrong = await _posted(here, f"{page}/forget", typed="bob")
        assert wrong.status_code == 400 and "nothing was done" in text_of(wrong)
        assert await service.erasures.of(DEMO, UserId("ann")) is None
        told = await _posted(here, f"{page}/forget", typed="ann")
        assert told.status_code == 303 and await service.erasures.of(DEMO, UserId("ann")) is not None
        assert "is being erased since" in text_of(await here.get(page))

        monkeypatch.setattr(gate, "LOCAL", Operator("vera", Role.VIEWER))
        for act in ("register", "deactivate", "preferences", "profile", "bulk", "forget"):
            assert (await _posted(here, f"/dashboard/demo/users/bob/{act}", typed="bob")).status_code == 403
        seen = await here.get("/dashboard/demo/users/bob")
        assert seen.status_code == 200 and "Save" not in seen.text and "Forget" not in seen.text


async def test_a_campaign_is_drafted_forecast_approved_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is said above the form, and a viewer may look at it and no more."""
    async with pages(analytics=AnalyticsSettings(enabled=True)) as (_, caller, here):
        page = "/dashboard/demo/campaigns"
        assert "No campaign yet" in text_of(await here.get(page))
        with monkeypatch.context() as looked:
            looked.setattr(gate, "LOCAL", Operator("vera", Role.VIEWER))
            assert (await here.get(f"{page}/-/new")).status_code == 403
            assert (await _posted(here, f"{page}/any/start", sure="yes")).status_code == 403
        form = text_of(await here.get(f"{page}/-/new"))
        assert (
            "Save the draft" in form and "0 to 90. Left empty, all are told." in form and "One of: code, offer" in form
        )
        said = {"name": "spring sale", "title": "It begins", "audience": "list", "users": "ann\nbob", "rate": "fast"}
        wrong = await _posted(here, f"{page}/-/new", **said)
        assert wrong.status_code == 400 and "rate : no number" in text_of(wrong) and "It begins" in wrong.text
        made = await _posted(here, f"{page}/-/new", **{**said, "rate": "5", "second_title": "Now"})
        assert made.headers["location"] == f"{page}/spring%20sale"
        assert "there is such a campaign already" in text_of(await _posted(here, f"{page}/-/new", **said, holdout=""))
        one = made.headers["location"]
        shown_ = text_of(await here.get(one))
        assert "spring sale draft" in shown_ and "For a list of 2" in shown_ and "Variants first, second" in shown_
        assert "Users 2" in text_of(await here.get(f"{one}/forecast"))
        assert (await _posted(here, f"{one}/approve")).status_code == 303
        assert (await _posted(here, f"{one}/schedule", at="2199-01-01T09:00")).status_code == 303
        asked = await _posted(here, f"{one}/start")
        assert "sends to everybody it is for: a list of 2" in text_of(asked)
        stood = (await caller.get("/v1/campaigns/spring%20sale")).json()
        assert (stood["state"], stood["due_at"]) == ("scheduled", "2199-01-01T09:00:00.000Z")
        assert (await _posted(here, f"{one}/cancel", sure="yes")).status_code == 303
        assert "spring sale cancelled" in text_of(await here.get(one))
        assert (await _posted(here, f"{one}/start", sure="yes")).status_code == 409
        compared = await _posted(here, f"{page}/-/new", name="half", title="Hi", audience="everyone", holdout="50")
        assert "Variants told" in text_of(await here.get(compared.headers["location"])), "who is told and who is not"
        acts = ["put", "approved", "scheduled", "cancelled", "scheduled"]
        assert await _record(caller) == [(f"campaign.{act}", "spring sale") for act in acts] + [
            ("campaign.put", "half")
        ]


async def test_a_template_is_written_previewed_published_and_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pages() as (_, caller, here):
        page = "/dashboard/demo/templates"
        assert "No template yet" in text_of(await here.get(page))
        monkeypatch.setattr(gate, "LOCAL", Operator("local", Role.CAMPAIGNER))
        form = await here.get(f"{page}/-/new")
        example = html.unescape(re.findall(r"<textarea[^>]*>(.*?)</textarea>", form.text, re.DOTALL)[0])
        wrong = await _posted(here, f"{page}/-/new", name="shipped", content=example.replace("{{ name }}", "{{ name"))
        assert wrong.status_code == 400 and "Your order" in wrong.text and "channels.default.title" in text_of(wrong)
        made = await _posted(here, f"{page}/-/new", name="shipped", content=example)
        assert made.headers["location"] == f"{page}/shipped?version=1"
        said = text_of(await here.get(made.headers["location"]))
        assert "shipped version 1 draft" in said and "title Hello Ann body Your order A-42 is on its way." in said
        other = {"version": "1", "variables": '{"name": "Bo"}'}
        assert "title Hello Bo" in text_of(await here.get(f"{page}/shipped", params=other))
        assert "no JSON" in text_of(await here.get(f"{page}/shipped", params={"variables": "{"}))
        asked = await _posted(here, f"{page}/shipped/publish", version="1")
        assert "name the template say this version from now on" in text_of(asked)
        assert (await _posted(here, f"{page}/shipped/publish", version="1", sure="yes")).status_code == 303
        tried = await _posted(here, f"{page}/shipped/try", version="1", user="ann")
        (sent,) = (await caller.get("/v1/notifications", params={"user_id": "ann"})).json()["items"]
        assert tried.headers["location"] == f"/dashboard/demo/events/{sent['id']}"
        assert (await _posted(here, f"{page}/shipped/retire", sure="yes")).status_code == 303
        assert "shipped retired" in text_of(await here.get(page))
        assert await _record(caller) == [
            ("template.written", "shipped"),
            ("template.published", "shipped 1"),
            ("template.tried", "shipped 1"),
            ("template.retired", "shipped"),
        ]


async def test_jobs_and_schedules_are_followed_paused_and_cancelled() -> None:
    async with pages() as (_, caller, here):
        page = "/dashboard/demo/jobs"
        assert "No bulk job" in text_of(await here.get(page))
        asked = {"notification": {"title": "Top secret"}, "recipients": ["ann", "bob", "cy"]}
        one = (await caller.post("/v1/bulk", json=asked)).json()["id"]
        weekly = {"starts": "2027-02-01T09:00", "rule": "FREQ=WEEKLY", "notification": shown("ann")}
        made = await caller.put("/v1/schedules/weekly", json=weekly)
        assert made.status_code == 201, made.text
        listed = text_of(await here.get(page))
        assert f"{one} running" in listed and "weekly active FREQ=WEEKLY" in listed
        seen = await here.get(f"{page}/{one}")
        assert "of a list of 3" in text_of(seen) and "secret" not in seen.text
        assert (await _posted(here, f"{page}/{one}/pause")).status_code == 303
        assert f"{one} paused" in text_of(await here.get(f"{page}/{one}"))
        assert "It cannot be resumed." in text_of(await _posted(here, f"{page}/{one}/cancel"))
        assert (await _posted(here, f"{page}/{one}/cancel", sure="yes")).status_code == 303
        assert (await _posted(here, f"{page}/-/schedules/weekly/pause")).status_code == 303
        assert "The schedule weekly is paused" in text_of(await here.get(page))
        acts = [("bulk.paused", one), ("bulk.cancelled", one), ("schedule.paused", "weekly")]
        assert await _record(caller) == acts


async def test_segments_are_counted_and_saved_and_topics_have_users(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pages() as (_, caller, here):
        page = "/dashboard/demo/audiences"
        assert "No segment yet" in text_of(await here.get(page))
        monkeypatch.setattr(gate, "LOCAL", Operator("local", Role.CAMPAIGNER))
        for user, plan in (("ann", "premium"), ("bob", "free")):
            await caller.put(f"/v1/users/{user}", json={"attributes": {"plan": plan}})
        form = await here.get(f"{page}/-/segment")
        chosen = html.unescape(re.findall(r"<textarea[^>]*>(.*?)</textarea>", form.text, re.DOTALL)[0])
        counted_ = await _posted(here, f"{page}/-/segment", name="rich", filter=chosen, count="yes")
        assert "It chooses 1 user now, among them ann ." in text_of(counted_)
        wrong = await _posted(here, f"{page}/-/segment", name="rich", filter='{"plan": 1}')
        assert wrong.status_code == 400 and "plan" in text_of(wrong)
        assert (await _posted(here, f"{page}/-/segment", name="rich", filter=chosen)).status_code == 303
        assert '"premium"' in text_of(await here.get(f"{page}/-/segment", params={"name": "rich"}))
        assert "Campaigns keep the filter" in text_of(await _posted(here, f"{page}/-/segment/remove", name="rich"))
        assert (await _posted(here, f"{page}/-/segment/remove", name="rich", sure="yes")).status_code == 303

        made = await _posted(here, f"{page}/-/topic", name="news", description="All of it", open="yes")
        assert made.headers["location"] == f"{page}/topics/news"
        assert (await _posted(here, f"{page}/topics/news/members", users="ann\nbob")).status_code == 303
        seen = text_of(await here.get(f"{page}/topics/news"))
        assert "2 users hear it." in seen and "news About All of it" in seen and "ann bob" in seen
        assert (await _posted(here, f"{page}/topics/news/members", users="bob", remove="yes")).status_code == 303
        assert (await caller.get("/v1/topics/news/members")).json()["items"] == ["ann"]
        assert (await here.get(f"{page}/topics/nothing")).status_code == 404
        assert await _record(caller) == [
            ("segment.put", "rich"),
            ("segment.removed", "rich"),
            ("topic.put", "news"),
            ("topic.changed", "news"),
            ("topic.changed", "news"),
        ]

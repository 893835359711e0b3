"""What the API says of what was sent and done, and takes of the app's own events."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from msgspec.structs import replace

from tests.adapters.rest.issuers import user_token, users_issuer
from tests.adapters.rest.service import DEMO, Service, served
from tests.shows import shows
from waypost.config import AppSettings, Config
from waypost.domain.amendment import Confirm
from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import parse_id
from waypost.domain.settlement import Sent
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, isoformat, later, to_datetime
from waypost.entrypoints.rest.app import build_app
from waypost.features.analytics.parts import count
from waypost.features.analytics.settings import AnalyticsSettings

pytestmark = pytest.mark.asyncio


async def _send(service: Service, client: httpx.AsyncClient, user: str, devices: int = 1, **fields: Any) -> str:
    body = {"user_id": user, "title": f"Hello {user} {service.clock.now()}", **fields}
    told = await client.post("/v1/notifications", json=body)
    assert told.status_code == 202, told.text
    await service.settled(*[Sent("p")] * devices)
    return str(told.json()["id"])


async def _report(service: Service, notification_id: str, *kinds: EventKind) -> None:
    """Report what happened on the first device."""
    target = parse_id(notification_id), 0
    now = service.clock.now()
    for kind in kinds:
        await service.work.amend([Confirm(DEMO, *target, kind.status, now)], now)
        action = "track" if kind is EventKind.ACTION else ""
        await service.stores.device_events.add([DeviceEvent(*target, kind, now, action)])


async def _count(service: Service) -> None:
    """Let the reader come to the end of the journal."""
    ground = service.api.grounds["analytics"]
    await count(ground, await service.stores.journal.read(0, 1_000))


async def _asked(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


@shows("S3-86", "S3-87", "S3-88")
@pytest.mark.usefixtures("on_file")
async def test_rates_and_funnels_are_parts_of_what_was_sent() -> None:
    """Ten of one campaign and two others; a user with two devices counts once."""
    async with served() as (service, client):
        sale = [await _send(service, client, f"user-{n}", 1 + n % 2, type="promotion") for n in range(10)]
        for n in range(2):
            await _send(service, client, f"user-{n}", type="otp")
        for one in sale[:8]:
            await _report(service, one, EventKind.DELIVERED)
        for one in sale[:4]:
            await _report(service, one, EventKind.OPENED)
        await _report(service, sale[0], EventKind.ACTION)
        await _count(service)
        service.clock.advance(MINUTE_MS)

        (row,) = (await _asked(client, "/v1/analytics/rates?type=promotion"))["rows"]
        assert [row[name] for name in ("sent", "delivered", "read", "opened", "action_taken")] == [10, 8, 4, 4, 1]
        assert [row[f"{name}_rate"] for name in ("delivery", "read", "open", "conversion")] == [0.8, 0.4, 0.4, 0.1]
        (row,) = (await _asked(client, "/v1/analytics/rates?type=promotion&of=deliveries"))["rows"]
        assert (row["sent"], row["delivered"]) == (15, 8)

        found = await _asked(client, "/v1/analytics/funnel?by=type")
        assert [each["label"] for each in found["funnels"]] == ["otp", "promotion"]
        steps = found["funnels"][1]["steps"]
        assert [step["event"] for step in steps] == ["sent", "delivered", "opened", "action_taken"]
        assert [step["count"] for step in steps] == [10, 8, 4, 1]
        assert [step["of_before"] for step in steps] == [1.0, 0.8, 0.5, 0.25]


@shows("S3-82")
@pytest.mark.usefixtures("on_file")
async def test_hours_and_days_are_those_of_the_zone() -> None:
    """Kathmandu is 5 hours and 45 minutes ahead, so that its days and hours begin within those of UTC."""
    async with served() as (service, client):
        midnight = service.clock.now() - service.clock.now() % DAY_MS + DAY_MS
        service.clock.advance(midnight + 18 * HOUR_MS + 14 * MINUTE_MS - service.clock.now())
        for user in ("a", "b"):
            await _send(service, client, user)
            service.clock.advance(MINUTE_MS)
        await _count(service)
        days = (await _asked(client, "/v1/analytics/rates?every=day&zone=Asia/Kathmandu"))["rows"]
        assert [(row["start"][11:16], row["sent"]) for row in days] == [("18:15", 1), ("18:15", 1)]
        hours = (await _asked(client, "/v1/analytics/rates?every=hour&zone=Asia/Kathmandu"))["rows"]
        assert [(row["start"][11:16], row["sent"]) for row in hours] == [("17:15", 1), ("18:15", 1)]
        assert [row["sent"] for row in (await _asked(client, "/v1/analytics/rates?every=day"))["rows"]] == [2]
        sent = (await _asked(client, "/v1/analytics/events?every=hour&name=sent"))["rows"]
        assert [(row["name"], row["start"][11:16], row["count"]) for row in sent] == [("sent", "18:00", 2)]


@pytest.mark.usefixtures("on_file")
async def test_a_question_that_makes_no_sense_is_refused() -> None:
    async with served() as (service, client):
        now, day_before = service.clock.now(), isoformat(later(service.clock.now(), -40 * DAY_MS))
        for asked, at in (
            ("rates?zone=Europe/Nowhere", "zone"),
            (f"rates?since={isoformat(now)}", "since"),
            (f"rates?every=hour&since={day_before}", "since"),
            ("rates?by=user_id", "by"),
            ("funnel?since=yesterday", "since"),
        ):
            answer = await client.get(f"/v1/analytics/{asked}")
            assert answer.status_code == 400, asked
            assert answer.json()["faults"][0]["path"] == at
        assert (await _asked(client, f"/v1/analytics/rates?every=day&since={day_before}"))["rows"] == []


@shows("S3-120")
@pytest.mark.usefixtures("on_file")
async def test_the_best_hour_is_the_users_own_or_that_of_all() -> None:
    """Ada opens what comes at seven in the evening in Zurich; of whom nothing is known is like all others."""
    async with served() as (service, client):
        profile = {"time_zone": "Europe/Zurich"}
        assert (await client.put("/v1/users/ada", json=profile)).status_code in {200, 201}
        assert await _asked(client, "/v1/users/ada/best-hour") == {
            "hour": None,
            "zone": "Europe/Zurich",
            "based_on": None,
            "rate": None,
        }
        start = service.clock.now() - service.clock.now() % DAY_MS + DAY_MS
        for day in range(6):
            for hour, user in ((6, "ada"), (18, "ada"), (9, "bob")):
                service.clock.advance(start + day * DAY_MS + hour * HOUR_MS - service.clock.now())
                made = await _send(service, client, user)
                if hour != 6:
                    await _report(service, made, EventKind.OPENED)
        await _count(service)
        ada = await _asked(client, "/v1/users/ada/best-hour")
        assert (ada["hour"] - 18, ada["based_on"], ada["rate"]) in {(1, "user", 1.0), (2, "user", 1.0)}
        bobs = {"filter": {"event": {"name": "read"}}}
        assert (await client.put("/v1/segments/readers", json=bobs)).status_code in {200, 201, 204}
        assert (await client.get("/v1/users/nobody/best-hour?segment=nobodies")).status_code == 404
        like = await _asked(client, "/v1/users/nobody/best-hour?segment=readers")
        assert (like["based_on"], like["rate"]) == ("segment", 1.0)
        nobody = await _asked(client, "/v1/users/nobody/best-hour")
        assert (nobody["zone"], nobody["based_on"], nobody["rate"]) == ("UTC", "app", 1.0)
        assert nobody["hour"] in {9, 18}
        await _is_sent_at_the_best_hour(service, client, ada["hour"])


async def _is_sent_at_the_best_hour(service: Service, client: httpx.AsyncClient, hour: int) -> None:
    """Of Ada a submission waits for her hour; in a window in which nobody reads it is sent as that begins."""
    said = {"user_id": "ada", "title": "At your best", "send_at": "best 18:00-22:00"}
    explained = (await client.post("/v1/explain", json=said)).json()
    assert explained["best_time"] == {"hour": hour, "based_on": "user", "rate": 1.0}
    made = (await client.post("/v1/notifications", json=said)).json()
    assert made["status"] == "scheduled"
    told = (await _asked(client, f"/v1/notifications/{made['id']}"))["notification"]["scheduled_at"]
    assert told == explained["scheduled_at"]
    due = datetime.fromisoformat(told).astimezone(ZoneInfo("Europe/Zurich"))
    assert (due.hour, due.minute, due > to_datetime(service.clock.now())) == (hour, 0, True)
    early = (await client.post("/v1/explain", json=said | {"send_at": "best 03:00-04:00"})).json()
    assert early["best_time"] == {"hour": None, "based_on": None, "rate": None}
    assert datetime.fromisoformat(early["scheduled_at"]).astimezone(ZoneInfo("Europe/Zurich")).hour == 3


def _event(**fields: Any) -> dict[str, Any]:
    return {"name": "order_paid", "user_id": "ada", **fields}


@pytest.mark.usefixtures("each_store")
async def test_events_of_the_app_count_once_by_their_ids() -> None:
    async with served() as (service, client):
        now = service.clock.now()
        at, old = isoformat(later(now, -HOUR_MS)), isoformat(later(now, -40 * DAY_MS))
        body = {"events": [_event(), _event(at=at, id="1"), _event(at=at, id="1"), _event(at=old)]}
        answer = await client.post("/v1/events", json=body)
        assert (answer.status_code, answer.json()) == (200, {"counted": 2, "repeated": 1, "dropped": 1})
        answer = await client.post("/v1/events", json=body)
        assert answer.json() == {"counted": 1, "repeated": 2, "dropped": 1}
        service.clock.advance(MINUTE_MS)
        assert (await _asked(client, "/v1/analytics/events"))["rows"] == [
            {"name": "order_paid", "start": None, "count": 3}
        ]


@pytest.mark.usefixtures("each_store")
async def test_what_is_no_event_of_the_app_is_refused_whole() -> None:
    async with served() as (_, client):
        for wrong, at in (
            (_event(name="opened"), "events[1].name"),
            (_event(name="two words"), "events[1].name"),
            (_event(id="1"), "events[1].at"),
            ({"name": "order_paid"}, "events[1].user_id"),
        ):
            answer = await client.post("/v1/events", json={"events": [_event(), wrong]})
            assert (answer.status_code, answer.json()["faults"][0]["path"]) == (400, at)
        assert (await _asked(client, "/v1/analytics/events"))["rows"] == []


@pytest.mark.usefixtures("on_file")
async def test_the_best_hour_of_who_has_no_zone_is_told_in_the_apps() -> None:
    async with served() as (service, _):
        ground = service.api.grounds["analytics"]
        there = replace(ground, config=Config(apps={DEMO: AppSettings(time_zone="Asia/Tokyo")}))
        service.api = replace(service.api, grounds={**service.api.grounds, "analytics": there})
        service.app = build_app(service.api)
        async with service.client() as client:
            assert (await _asked(client, "/v1/users/nobody/best-hour"))["zone"] == "Asia/Tokyo"


@pytest.mark.usefixtures("each_store")
async def test_an_end_user_reports_their_own_events_of_open_names(tmp_path: Path) -> None:
    async with served(issuers=[users_issuer(tmp_path)]) as (service, _):
        ground = service.api.grounds["analytics"]
        opened = replace(ground, settings=AnalyticsSettings(user_events=("viewed",)))
        service.api = replace(service.api, grounds={**service.api.grounds, "analytics": opened})
        service.app = build_app(service.api)
        async with service.client(user_token()) as user:
            for event, status in (
                ({"name": "viewed"}, 200),
                ({"name": "viewed", "user_id": "user-1"}, 200),
                ({"name": "viewed", "user_id": "bob"}, 403),
                ({"name": "order_paid"}, 403),
            ):
                answer = await user.post("/v1/events", json={"events": [event]})
                assert answer.status_code == status, event
            assert (await user.get("/v1/analytics/rates")).status_code == 403

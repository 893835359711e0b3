"""Schedules by the API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import Service, served
from waypost.domain.time import DAY_MS, HOUR_MS
from waypost.features.schedules.sending import send_due

pytestmark = pytest.mark.asyncio
on_each_store = pytest.mark.usefixtures("each_store")

PATH = "/v1/schedules/news"  # the clock of these tests begins on Friday 2027-01-15 at 08:00 UTC
DAILY = {
    "starts": "2027-01-15T12:00",
    "rule": "FREQ=DAILY",
    "time_zone": "Europe/Zurich",
    "notification": {"user_id": "ann", "title": "Good morning"},
}


async def put(client: httpx.AsyncClient, status: int = 201, **fields: Any) -> dict[str, Any]:
    """The schedule, put with *fields* of its own."""
    answer = await client.put(PATH, json=DAILY | fields)
    assert answer.status_code == status, answer.text
    made: dict[str, Any] = answer.json()
    return made


def local(schedule: dict[str, Any]) -> list[str]:
    """Its next local times."""
    return [each["local"] for each in schedule["next"]]


async def pass_days(service: Service, days: int) -> int:
    """Let days pass with the duty done each hour; how many were submitted of late."""
    was = len(await service.accepted())
    for _ in range(days * 24):
        service.clock.advance(HOUR_MS)
        await send_due(service.api.grounds["schedules"])
    return len(await service.accepted()) - was


@on_each_store
async def test_a_schedule_is_put_looked_at_and_removed() -> None:
    async with served() as (service, client):
        made = await put(client)
        assert local(made) == ["2027-01-15T12:00", "2027-01-16T12:00", "2027-01-17T12:00"]
        assert (made["status"], made["time_zone"], made["time_zone_of"]) == ("active", "Europe/Zurich", "schedule")
        assert await pass_days(service, 2) == 2
        seen = (await client.get(PATH)).json()
        newest, _ = await service.accepted()
        assert (seen["sent"], seen["missed"], local(seen)[0]) == (2, 0, "2027-01-17T12:00")
        assert (await client.get(f"/v1/notifications/{seen['last']['id']}")).json()["content"][
            "title"
        ] == newest.content.title
        times = (await client.get(f"{PATH}/occurrences", params={"limit": 2})).json()["items"]
        assert times[0] == {"local": "2027-01-17T12:00", "at": "2027-01-17T11:00:00.000Z"}
        page = (await client.get("/v1/schedules", params={"limit": 1})).json()
        assert [each["name"] for each in page["items"]] == ["news"]
        assert (await client.get("/v1/schedules", params={"cursor": page["next"]})).json() == {
            "items": [],
            "next": None,
        }
        assert (await client.delete(PATH)).status_code == 204
        assert ((await client.get(PATH)).status_code, (await client.delete(PATH)).status_code) == (404, 404)
        assert await pass_days(service, 1) == 0


async def test_without_a_zone_it_is_the_users() -> None:
    async with served() as (_, client):
        await client.put("/v1/users/ann", json={"time_zone": "Asia/Tokyo"})
        made = await put(client, time_zone=None)
        assert (made["time_zone"], made["time_zone_of"]) == ("Asia/Tokyo", "user")
        assert made["next"][0] == {"local": "2027-01-16T12:00", "at": "2027-01-16T03:00:00.000Z"}


@on_each_store
async def test_what_is_paused_is_not_made_up_for() -> None:
    async with served() as (service, client):
        await put(client)
        assert (await client.post(f"{PATH}/pause")).json()["status"] == "paused"
        assert await pass_days(service, 2) == 0
        assert local(await put(client, 200))[0] == "2027-01-17T12:00", "it stays paused"
        resumed = (await client.post(f"{PATH}/resume")).json()
        assert (resumed["status"], local(resumed)[0], resumed["missed"]) == ("active", "2027-01-17T12:00", 0)
        assert await pass_days(service, 1) == 1


@on_each_store
async def test_one_time_is_left_out_and_one_is_moved() -> None:
    async with served() as (service, client):
        await put(client)
        left = await client.delete(f"{PATH}/occurrences/2027-01-16T12:00")
        assert local(left.json()) == ["2027-01-15T12:00", "2027-01-17T12:00", "2027-01-18T12:00"]
        moved = await client.patch(f"{PATH}/occurrences/2027-01-17T12:00", json={"to": "2027-01-17T15:00"})
        assert local(moved.json()) == ["2027-01-15T12:00", "2027-01-17T15:00", "2027-01-18T12:00"]
        assert moved.json()["also"] == ["2027-01-17T15:00"]
        assert (await client.delete(f"{PATH}/occurrences/2027-01-17T12:00")).status_code == 404
        assert [await pass_days(service, 1) for _ in range(4)] == [1, 0, 1, 1]
        over = await client.delete(f"{PATH}/occurrences/2027-01-15T12:00")
        assert (over.status_code, over.json()["code"]) == (409, "wrong_state")
        late = await client.patch(f"{PATH}/occurrences/2027-01-30T12:00", json={"to": "2027-01-15T15:00"})
        assert (late.status_code, late.json()["code"]) == (409, "wrong_state")


@on_each_store
async def test_a_change_holds_from_the_next_time_on() -> None:
    async with served() as (service, client):
        await put(client)
        assert await pass_days(service, 1) == 1
        changed = await put(client, 200, rule="FREQ=WEEKLY", notification={"user_id": "ann", "title": "Other"})
        assert local(changed)[0] == "2027-01-22T12:00"
        assert await pass_days(service, 7) == 1
        assert [each.content.title for each in await service.accepted()] == ["Other", "Good morning"]


async def test_what_has_no_more_times_has_ended() -> None:
    async with served() as (service, client):
        await put(client, rule="FREQ=DAILY;COUNT=2")
        assert await pass_days(service, 3) == 2
        ended = (await client.get(PATH)).json()
        assert (ended["status"], ended["next"]) == ("ended", [])
        for order in ("pause", "resume"):
            assert (await client.post(f"{PATH}/{order}")).status_code == 409
        assert local(await put(client, 200))[0] == "2027-01-18T12:00", "put again, it goes on"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"rule": "FREQ=SECONDLY"}, "rule"),
        ({"rule": "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30"}, "rule"),
        ({"time_zone": "Europe/Atlantis"}, "time_zone"),
        ({"starts": "2027-02-30T12:00"}, "starts"),
        ({"starts": "2029-01-01T12:00"}, "starts"),
        ({"without": ["2027-02-30T12:00"]}, "without"),
        ({"notification": None}, "give notification or bulk"),
        ({"notification": {"user_id": "ann"}}, "notification.title"),
        ({"notification": {"user_id": "ann", "title": "x", "idempotency_key": "k"}}, "notification.idempotency_key"),
        ({"notification": {"user_id": "ann", "title": "x", "send_at": "2027-02-01T12:00"}}, "notification.send_at"),
        ({"notification": None, "bulk": {"notification": {"title": "x"}, "recipients": ["ann"]}}, "bulk.registry"),
        ({"notification": None, "bulk": {"notification": {}, "registry": {}}}, "bulk.notification.title"),
    ],
)
async def test_what_cannot_be_a_schedule_is_refused_by_name(fields: dict[str, Any], path: str) -> None:
    async with served() as (_, client):
        refused = await client.put(PATH, json=DAILY | fields)
        assert (refused.status_code, refused.json()["detail"].startswith(path)) == (400, True), refused.text
        assert (await client.get(PATH)).status_code == 404


async def test_another_apps_schedule_is_unknown() -> None:
    async with served() as (service, client), service.client(service.others.text) as other:
        await put(client)
        assert (await other.get(PATH)).status_code == 404
        assert (await other.post(f"{PATH}/pause")).status_code == 404
        assert (await client.put("/v1/schedules/a%20b", json=DAILY)).status_code == 400
        service.clock.advance(DAY_MS)

"""Sending at a time of the user's own clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import Service, served, shown
from tests.shows import shows
from waypost.domain.time import from_datetime, isoformat

pytestmark = pytest.mark.asyncio
on_each_store = pytest.mark.usefixtures("each_store")

MORNING = "2027-12-01T09:00"


def at(service: Service, said: str) -> None:
    """Set the clock."""
    service.clock.advance(from_datetime(datetime.fromisoformat(said)) - service.clock.now())


async def lives(client: httpx.AsyncClient, user: str, zone: str) -> None:
    """Put *user* into *zone*."""
    (await client.put(f"/v1/users/{user}", json={"time_zone": zone})).raise_for_status()


async def due(client: httpx.AsyncClient, **fields: Any) -> str:
    """When what is submitted with *fields* is due."""
    made = await client.post("/v1/notifications", json=shown(**fields))
    assert (made.status_code, made.json().get("status")) == (202, "scheduled"), made.text
    found = (await client.get(f"/v1/notifications/{made.json()['id']}")).json()["notification"]
    due_at: str = found["scheduled_at"]
    return due_at


@shows("S3-109")
@on_each_store
async def test_nine_in_the_morning_is_each_users_own_also_over_a_clock_change() -> None:
    async with served() as (service, client):
        at(service, "2027-10-20T12:00:00Z")
        await lives(client, "ann", "Europe/Zurich")
        await lives(client, "bob", "America/New_York")
        assert await due(client, user_id="ann", send_at="2027-10-30T09:00") == "2027-10-30T07:00:00.000Z"
        assert await due(client, user_id="ann", send_at="2027-10-31T09:00") == "2027-10-31T08:00:00.000Z"
        assert await due(client, user_id="bob", send_at="2027-10-31T09:00") == "2027-10-31T13:00:00.000Z"
        assert await due(client, user_id="bob", send_at="2027-11-07T09:00") == "2027-11-07T14:00:00.000Z"


@on_each_store
async def test_a_move_after_the_accept_changes_nothing() -> None:
    async with served() as (service, client):
        at(service, "2027-11-20T12:00:00Z")
        await lives(client, "ann", "Europe/Zurich")
        first = {"user_id": "ann", "send_at": MORNING, "idempotency_key": "one"}
        assert await due(client, **first) == "2027-12-01T08:00:00.000Z"
        await lives(client, "ann", "Asia/Tokyo")
        again = await client.post("/v1/notifications", json=shown(**first))
        assert (again.status_code, again.json()["status"]) == (200, "scheduled"), "the same submission, not a conflict"
        assert await due(client, user_id="ann", send_at=MORNING, title="Next") == "2027-12-01T00:00:00.000Z"


async def test_explain_names_the_zone_and_whose_it_is() -> None:
    async with served() as (service, client), service.client(service.others.text) as other:
        at(service, "2027-11-20T12:00:00Z")
        await lives(client, "ann", "Europe/Zurich")
        assert await explained(client, "ann") == ("Europe/Zurich", "user", "2027-12-01T08:00:00.000Z")
        assert await explained(client, "cid") == ("UTC", "nowhere", "2027-12-01T09:00:00.000Z")
        assert await explained(other, "cid") == ("Asia/Kolkata", "app", "2027-12-01T03:30:00.000Z")
        unsaid = (await client.post("/v1/explain", json=shown())).json()
        assert (unsaid["time_zone"], unsaid["time_zone_of"]) == (None, None)


async def explained(client: httpx.AsyncClient, user: str) -> tuple[str, str, str]:
    """What is said of the zone of *user*."""
    said = (await client.post("/v1/explain", json=shown(user, send_at=MORNING))).json()
    return said["time_zone"], said["time_zone_of"], said["scheduled_at"]


async def test_a_time_that_is_past_in_the_users_zone_is_now() -> None:
    async with served() as (service, client):
        at(service, "2027-12-01T08:30:00Z")
        await lives(client, "ann", "Europe/Zurich")
        made = await client.post("/v1/notifications", json=shown("ann", send_at=MORNING))
        assert (made.status_code, made.json()["status"]) == (202, "pending")


@pytest.mark.parametrize(
    "fields",
    [
        {"send_at": "2027-02-30T09:00"},
        {"send_at": "2027-12-01T09:00Z"},
        {"send_at": MORNING, "scheduled_at": "2027-12-01T09:00:00Z"},
        {"send_at": MORNING, "user_id": None, "device": {"platform": "android", "token": "t" * 30}},
        {"send_at": "2029-12-01T09:00"},
        {"send_at": "best 09:00"},
        {"send_at": "best 09:00-09:00"},
    ],
)
async def test_what_cannot_be_meant_is_refused_by_name(fields: dict[str, Any]) -> None:
    async with served() as (service, client):
        at(service, "2027-11-20T12:00:00Z")
        refused = await client.post("/v1/notifications", json=shown(**fields))
        assert (refused.status_code, "send_at" in refused.json()["detail"]) == (400, True), refused.text


@on_each_store
async def test_each_item_of_a_batch_has_its_own_user() -> None:
    async with served() as (service, client):
        at(service, "2027-11-20T12:00:00Z")
        await lives(client, "ann", "Asia/Tokyo")
        items = [shown("ann", send_at=MORNING), shown("ann"), shown("bob", send_at=MORNING)]
        answer = (await client.post("/v1/notifications/batch", json={"notifications": items})).json()
        statuses = [each["notification"]["status"] for each in answer["results"]]
        assert statuses == ["scheduled", "pending", "scheduled"]
        assert await dues(service) == [None, "2027-12-01T00:00:00.000Z", "2027-12-01T09:00:00.000Z"]


async def dues(service: Service) -> list[str | None]:
    """When everything accepted is due, sorted."""
    found = [each.scheduled_at for each in await service.accepted()]
    return sorted((None if at is None else isoformat(at) for at in found), key=lambda each: each or "")

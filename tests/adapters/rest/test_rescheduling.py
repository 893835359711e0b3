"""Another time for what was submitted for later."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import Service, served, shown
from waypost.domain.ids import format_id
from waypost.domain.settlement import Sent
from waypost.domain.time import DAY_MS, HOUR_MS, isoformat, later

pytestmark = pytest.mark.asyncio
on_each_store = pytest.mark.usefixtures("each_store")


async def scheduled(service: Service, client: httpx.AsyncClient) -> str:
    """The path of one that is due in an hour."""
    at = isoformat(later(service.clock.now(), HOUR_MS))
    made = await client.post("/v1/notifications", json=shown("ann", scheduled_at=at))
    return f"/v1/notifications/{made.json()['id']}"


@on_each_store
async def test_what_waits_gets_another_time_also_on_the_users_clock() -> None:
    async with served() as (service, client):
        path = await scheduled(service, client)
        at = isoformat(later(service.clock.now(), 2 * HOUR_MS))
        moved = await client.patch(path, json={"scheduled_at": at})
        assert (moved.status_code, moved.json()["scheduled_at"]) == (200, at)
        found = (await client.get(path)).json()["notification"]
        assert (found["scheduled_at"], found["status"]) == (at, "scheduled")
        await client.put("/v1/users/ann", json={"time_zone": "Asia/Tokyo"})
        moved = await client.patch(path, json={"send_at": "2027-06-01T09:00"})
        assert moved.json()["scheduled_at"] == "2027-06-01T00:00:00.000Z"
        audited = (await client.get("/v1/audit")).json()["items"]
        assert [each["act"] for each in audited] == ["notification.rescheduled"] * 2


@on_each_store
async def test_what_is_due_or_over_keeps_its_time() -> None:
    async with served() as (service, client):
        path, new = await scheduled(service, client), {"scheduled_at": "2027-06-01T09:00:00Z"}
        service.clock.advance(HOUR_MS)
        late = await client.patch(path, json=new)
        assert (late.status_code, late.json()["code"]) == (409, "wrong_state")
        await service.work.promote_due(service.clock.now(), 10)
        await service.settled(Sent("p"))
        over = await client.patch(path, json=new)
        assert (over.status_code, over.json()["code"]) == (409, "already_final")
        (made,) = await service.accepted()
        unknown = f"/v1/notifications/{format_id(made.id)[:-1]}{'0' if format_id(made.id)[-1] != '0' else '1'}"
        assert (await client.patch(unknown, json=new)).status_code == 404


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"scheduled_at": "2027-06-01T09:00:00Z", "send_at": "2027-06-01T09:00"},
        {"send_at": "2027-02-30T09:00"},
        {"scheduled_at": "2029-06-01T09:00:00Z"},
        {"title": "Another"},
    ],
)
async def test_what_is_no_other_time_is_refused(said: dict[str, Any]) -> None:
    async with served() as (service, client):
        path = await scheduled(service, client)
        assert (await client.patch(path, json=said)).status_code == 400
        service.clock.advance(DAY_MS)
        assert (await service.work.promote_due(service.clock.now(), 10)) == 1

"""Series by the API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import DEMO, Service, served
from waypost.domain.ids import UserId
from waypost.domain.time import HOUR_MS
from waypost.features.series.moving import move_due

pytestmark = pytest.mark.asyncio
on_each_store = pytest.mark.usefixtures("each_store")

PATH = "/v1/series/basket"
ANN = f"{PATH}/members/ann"
SAID: dict[str, Any] = {
    "steps": [
        {"name": "welcome", "notification": {"title": "Welcome"}},
        {
            "name": "tips",
            "after": "2d",
            "when": [{"data": {"plan": "premium"}}],
            "unless": [{"step": "welcome", "reached": "opened"}, {"event": "page_seen"}],
            "notification": {"title": "Tips"},
        },
    ],
    "exit_on": ["order_paid"],
}


async def put(client: httpx.AsyncClient, status: int = 201, **fields: Any) -> dict[str, Any]:
    """The series, put with *fields* of its own."""
    answer = await client.put(PATH, json=SAID | fields)
    assert answer.status_code == status, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def pass_days(service: Service, days: int) -> list[str | None]:
    """What is said while days pass."""
    was = len(await service.accepted())
    for _ in range(days * 4):
        await move_due(service.api.grounds["series"])
        service.clock.advance(6 * HOUR_MS)
    return [each.content.title for each in reversed((await service.accepted())[: -was or None])]


@on_each_store
async def test_a_user_goes_through_a_series_and_can_be_followed() -> None:
    async with served() as (service, client):
        made = await put(client)
        assert (made["steps"], made["exit_on"], made["version"]) == (SAID["steps"], ["order_paid"], 1)
        joined = await client.put(ANN, json={"data": {"plan": "premium"}})
        assert (joined.status_code, joined.json()["next_step"]) == (201, "welcome")
        assert (await client.put(ANN)).status_code == 200, "a member already"
        assert await pass_days(service, 2) == ["Welcome"]
        ann = (await client.get(ANN)).json()
        assert (ann["next_step"], ann["state"], [each["step"] for each in ann["done"]]) == (
            "tips",
            "active",
            ["welcome"],
        )
        assert (await client.get(f"/v1/notifications/{ann['done'][0]['id']}")).status_code == 200
        assert await pass_days(service, 1) == ["Tips"]
        assert (await client.get(ANN)).json()["state"] == "done"
        assert (await client.get(PATH)).json()["members"] == {"active": 0, "done": 1, "exited": 0}
        again = await client.put(ANN)
        assert (again.status_code, again.json()["code"]) == (409, "wrong_state")
        assert (await client.put(ANN, json={"again": True})).status_code == 201
        assert await pass_days(service, 3) == ["Welcome"], "without the data the second step is not theirs"


@on_each_store
async def test_a_member_leaves_by_order_and_by_an_event() -> None:
    async with served() as (service, client):
        await put(client)
        for user in ("ann", "bob"):
            assert (await client.put(f"{PATH}/members/{user}", json={"data": {"plan": "premium"}})).status_code == 201
        assert await pass_days(service, 1) == ["Welcome", "Welcome"]
        left = await client.post(f"{ANN}/exit", json={"why": "asked for it"})
        assert (left.status_code, left.json()["state"], left.json()["why"]) == (200, "exited", "asked for it")
        assert (await client.post(f"{ANN}/exit")).json()["why"] == "asked for it", "it is over already"
        await service.stores.series.exit_by_event(DEMO, UserId("bob"), "order_paid")
        assert await pass_days(service, 3) == []
        page = (await client.get(f"{PATH}/members", params={"limit": 1})).json()
        assert [each["user_id"] for each in page["items"]] == ["ann"]
        rest = (await client.get(f"{PATH}/members", params={"cursor": page["next"]})).json()["items"]
        assert [(each["user_id"], each["why"]) for each in rest] == [("bob", "event: order_paid")]


@on_each_store
async def test_what_is_put_anew_is_another_version_for_who_joins_then() -> None:
    async with served() as (service, client):
        await put(client)
        assert (await put(client, 200))["version"] == 1, "it says the same"
        await client.put(ANN, json={"data": {"plan": "premium"}})
        short = [{"name": "hello", "notification": {"title": "Hello"}}]
        assert (await put(client, steps=short))["version"] == 2
        assert (await client.put(f"{PATH}/members/bob")).json()["version"] == 2
        assert sorted(filter(None, await pass_days(service, 3))) == ["Hello", "Tips", "Welcome"]
        assert [each["version"] for each in (await client.get("/v1/series")).json()["items"]] == [2]
        assert (await client.delete(PATH)).status_code == 204
        assert [(await client.get(path)).status_code for path in (PATH, ANN, f"{PATH}/members")] == [404] * 3


STEP = {"name": "one", "notification": {"title": "x"}}


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ([STEP, STEP], "steps[1].name"),
        ([{"name": "one", "notification": {}}], "steps[0].notification.title"),
        ([{"name": "one", "notification": {"title": "x", "user_id": "ann"}}], "steps[0].notification.user_id"),
        ([STEP | {"when": [{}]}], "steps[0].when[0]"),
        ([STEP | {"when": [{"step": "one"}]}], "steps[0].when[0].step"),
        ([STEP | {"unless": [{"event": "e", "reached": "opened"}]}], "steps[0].unless[0].reached"),
        ([STEP | {"after": "2 days"}], "steps[0].after"),
        ([STEP | {"at": "9:00"}], "steps[0].at"),
    ],
)
async def test_what_cannot_be_a_series_is_refused_by_name(steps: list[Any], path: str) -> None:
    async with served() as (_, client):
        refused = await client.put(PATH, json={"steps": steps})
        assert (refused.status_code, refused.json()["detail"].startswith(path)) == (400, True), refused.text


async def test_another_apps_series_is_unknown() -> None:
    async with served() as (service, client), service.client(service.others.text) as other:
        await put(client)
        assert [(await other.get(path)).status_code for path in (PATH, ANN)] == [404, 404]
        assert (await other.put(ANN)).status_code == 404

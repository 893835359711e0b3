"""The calls under /api, in the shapes of S3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import DEMO, OTHER, P256DH, Service, served
from tests.shows import shows
from waypost.domain.delivery import FailureClass
from waypost.domain.ids import UserId, parse_id
from waypost.domain.notification import Lane
from waypost.domain.settlement import Again, Dead, Sent, Settlement
from waypost.domain.time import HOUR_MS, later
from waypost.entrypoints.rest.settings import RestSettings
from waypost.ports.views import Marked

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

TOLD = {"user_id": "ann", "title": "Sale", "body": "Only today."}
ANDROID = {"token": "token-1", "platform": "android", "device_info": {"model": "P9", "app_version": "1.4.2"}}


def by(user_id: str) -> dict[str, str]:
    """The header of a call that acts for a user."""
    return {"X-Waypost-User": user_id}


@asynccontextmanager
async def for_ann(settings: RestSettings | None = None) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """A service, and a client whose every call acts for Ann."""
    async with served(settings or RestSettings()) as (service, client):
        client.headers.update(by("ann"))
        yield service, client


async def created(client: httpx.AsyncClient, **fields: Any) -> str:
    """The id of a new notification."""
    answer = await client.post("/api/notifications", json=TOLD | fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def listed(client: httpx.AsyncClient, query: str = "") -> tuple[list[str], dict[str, Any]]:
    """Ids and pagination of a page."""
    answer = (await client.get(f"/api/notifications{query}")).json()
    assert answer["success"] is True
    return [row["id"] for row in answer["data"]], answer["pagination"]


def refusal(answer: httpx.Response) -> tuple[int, str, list[str]]:
    """Status, code and wrong fields of an answer in the envelope."""
    assert answer.headers["content-type"] == "application/json"
    said = answer.json()
    assert (said["success"], said["error"]["status"]) == (False, answer.status_code)
    return answer.status_code, said["error"]["code"], [fault["path"] for fault in said["error"].get("faults", [])]


@shows("S3-27")
async def test_a_created_notification_is_201_in_the_envelope_and_reads_whole() -> None:
    async with for_ann() as (_, client):
        answer = await client.post("/api/notifications", json=TOLD | {"type": "promotion", "data": {"sku": 7}})
        data = answer.json()["data"]
        assert answer.status_code == 201
        assert answer.json() == {"success": True, "data": {**data, "status": "pending"}}
        assert set(data) == {"id", "status", "created_at"}
        found = (await client.get(f"/api/notifications/{data['id']}")).json()
        nothing = dict.fromkeys(("error_message", "fcm_message_id", "scheduled_for", "sent_at", "read_at"))
        said = TOLD | {"data": {"sku": 7}, "type": "promotion", "priority": "normal", "retry_count": 0}
        assert found == {"success": True, "data": {**data, **said, **nothing}}


@shows("S3-108")
async def test_priority_type_and_schedule() -> None:
    async with for_ann() as (service, client):
        at = "2027-01-15T09:00:00.000Z"
        made = await created(client, priority="high", scheduled_for=at)
        data = (await client.get(f"/api/notifications/{made}")).json()["data"]
        assert (data["priority"], data["type"], data["status"], data["scheduled_for"]) == (
            "high",
            "general",
            "scheduled",
            at,
        )
        (row,) = await service.accepted()
        assert row.lane is Lane.HIGH


async def test_the_same_content_twice_is_two_notifications_unless_asked() -> None:
    async with for_ann() as (_, client):
        assert await created(client) != await created(client)
        first = await created(client, title="x", dedup_window=60)
        again = await client.post("/api/notifications", json=TOLD | {"title": "x", "dedup_window": 60})
        assert (again.status_code, again.json()["data"]["id"]) == (200, first)
        keyed = {"Idempotency-Key": "k"}
        made = (await client.post("/api/notifications", json=TOLD, headers=keyed)).json()["data"]
        repeated = await client.post("/api/notifications", json=TOLD, headers=keyed)
        assert (repeated.status_code, repeated.json()["data"]) == (200, made)
        assert (await listed(client))[1]["total"] == 4


@shows("S3-32", "S3-33")
@pytest.mark.parametrize(
    ("said", "title", "body"),
    [
        ({"title": "a\x00b\x1b[31mc\x7f\x9f"}, "ab[31mc", "Only today."),
        ({"title": " two\r\nlines\there "}, "two lines here", "Only today."),
        ({"body": "one\r\ntwo\x07\n\tthree\n"}, "Sale", "one\ntwo\n\tthree"),
        ({"title": "<script>'; DROP TABLE x --"}, "<script>'; DROP TABLE x --", "Only today."),
    ],
)
async def test_titles_and_bodies_lose_their_control_characters(said: dict[str, str], title: str, body: str) -> None:
    async with for_ann() as (_, client):
        made = await created(client, **said)
        data = (await client.get(f"/api/notifications/{made}")).json()["data"]
        assert (data["title"], data["body"]) == (title, body)


@shows("S3-31", "S3-32")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"user_id": None}, "user_id"),
        ({"title": None}, "title"),
        ({"body": None}, "body"),
        ({"title": "x" * 256}, "title"),
        ({"title": 7}, "title"),
        ({"title": "\x00\n"}, "title"),
        ({"body": "\x01"}, "body"),
        ({"data": "no object"}, "data"),
        ({"data": ["no object"]}, "data"),
        ({"type": "x" * 51}, "type"),
        ({"priority": "critical"}, "priority"),
    ],
)
async def test_a_wrong_or_missing_field_is_refused_by_name(change: dict[str, Any], path: str) -> None:
    async with for_ann() as (service, client):
        body = {name: value for name, value in (TOLD | change).items() if value is not None}
        answer = await client.post("/api/notifications", json=body)
        assert refusal(answer) == (400, "invalid_request", [path])
        assert not await service.accepted()


async def test_a_call_that_acts_for_a_user_tells_that_user_alone() -> None:
    """The app itself, which names no user, tells anybody."""
    async with served() as (_, client):
        answer = await client.post("/api/notifications", json=TOLD, headers=by("bob"))
        assert refusal(answer) == (403, "forbidden", [])
        assert (await client.post("/api/notifications", json=TOLD)).status_code == 201


@shows("S3-13", "S3-34", "S3-35", "S3-37")
async def test_pages_have_a_total_and_say_whether_there_is_more() -> None:
    async with for_ann() as (_, client):
        made = [await created(client, title=f"n{n}") for n in range(5)]
        newest_first = made[::-1]
        assert await listed(client) == (newest_first, {"page": 1, "limit": 20, "total": 5, "has_more": False})
        assert await listed(client, "?page=2&limit=2") == (
            newest_first[2:4],
            {"page": 2, "limit": 2, "total": 5, "has_more": True},
        )
        assert await listed(client, "?page=3&limit=2") == (
            newest_first[4:],
            {"page": 3, "limit": 2, "total": 5, "has_more": False},
        )
        assert await listed(client, "?page=9&limit=2") == (
            [],
            {"page": 9, "limit": 2, "total": 5, "has_more": False},
        )
        assert (await listed(client, "?limit=500"))[1]["limit"] == 100


@pytest.mark.parametrize("query", ["page=0", "limit=0", "limit=x", "status=queued", "status=null", "pages=2"])
async def test_a_page_that_makes_no_sense_is_refused(query: str) -> None:
    async with for_ann() as (_, client):
        answer = await client.get(f"/api/notifications?{query}")
        assert refusal(answer) == (400, "invalid_request", [query.partition("=")[0]])


@shows("S3-36")
async def test_filters_by_type_and_by_status_in_the_words_that_are_shown() -> None:
    async with for_ann() as (service, client):
        away = "the provider is away"
        outcomes: dict[str, Settlement] = {
            "sent": Sent("projects/p/messages/1"),
            "gone": Dead("500", away, FailureClass.RETRYABLE, letter=True),
            "retried": Again(later(service.clock.now(), HOUR_MS), True, "500", away),
        }
        ids = {}
        for name, outcome in outcomes.items():
            ids[name] = await created(client, type=name)
            await service.settled(outcome)
        ids["fresh"] = await created(client)
        assert (await listed(client, "?status=sent"))[0] == [ids["sent"]]
        assert (await listed(client, "?status=failed"))[0] == [ids["retried"], ids["gone"]]
        assert (await listed(client, "?status=pending"))[0] == [ids["fresh"]]
        assert (await listed(client, "?type=gone"))[0] == [ids["gone"]]
        assert (await listed(client, "?type=general"))[0] == [ids["fresh"]]
        assert (await listed(client, "?type=gone&status=sent"))[0] == []
        rows = {row["id"]: row for row in (await client.get("/api/notifications")).json()["data"]}
        assert [rows[ids[name]]["status"] for name in ids] == ["sent", "failed", "failed", "pending"]
        assert [rows[ids[name]]["error_message"] for name in ids] == [None, away, away, None]
        assert [rows[ids[name]]["retry_count"] for name in ids] == [0, 0, 1, 0]
        assert rows[ids["sent"]]["fcm_message_id"] == "projects/p/messages/1"
        assert rows[ids["sent"]]["sent_at"] is not None


@shows("S3-40", "S3-41", "S3-131")
async def test_read_stays_at_its_first_time_and_can_be_taken_back() -> None:
    async with for_ann() as (service, client):
        path = f"/api/notifications/{await created(client)}"
        first = (await client.patch(f"{path}/read")).json()["data"]
        service.clock.advance(HOUR_MS)
        again = await client.patch(f"{path}/read")
        assert (again.status_code, again.json()["data"]) == (200, first)
        assert first["read_at"] is not None
        assert (await client.get(path)).json()["data"] == first
        assert (await client.patch(f"{path}/unread")).json()["data"] == first | {"read_at": None}
        assert (await client.patch(f"{path}/read")).json()["data"]["read_at"] > first["read_at"]


@shows("S3-42")
async def test_what_was_deleted_is_gone_for_its_user_and_kept_for_the_app() -> None:
    async with for_ann() as (_, client):
        kept, gone = await created(client), await created(client)
        answer = await client.delete(f"/api/notifications/{gone}")
        assert (answer.status_code, answer.json()["success"], answer.json()["data"]["id"]) == (200, True, gone)
        ids, pagination = await listed(client)
        assert (ids, pagination["total"]) == ([kept], 1)
        for call in (client.get, client.delete):
            assert refusal(await call(f"/api/notifications/{gone}"))[:2] == (404, "not_found")
        assert refusal(await client.patch(f"/api/notifications/{gone}/read"))[:2] == (404, "not_found")
        assert (await client.get(f"/v1/notifications/{gone}")).status_code == 200


@shows("S3-34", "S3-39", "S3-43")
async def test_a_foreign_notification_is_404_and_nothing_of_it_changes() -> None:
    """Another user's, another app's, and none at all are the same."""
    async with for_ann() as (service, client):
        anns = await created(client)
        bobs = (await client.post("/api/notifications", json=TOLD | {"user_id": "bob"}, headers=by("bob"))).json()
        async with service.client(service.others.text) as other:
            foreign = (await other.post("/api/notifications", json=TOLD)).json()
        for wanted in (bobs["data"]["id"], foreign["data"]["id"], "019c1234-5678-7abc-8def-0123456789ab", "nonsense"):
            path = f"/api/notifications/{wanted}"
            for method, place in (("GET", ""), ("DELETE", ""), ("PATCH", "/read"), ("PATCH", "/unread")):
                assert refusal(await client.request(method, path + place)) == (404, "not_found", [])
        for app, theirs in ((DEMO, bobs), (OTHER, foreign)):
            detail = await service.views.detail(app, parse_id(theirs["data"]["id"]))
            assert detail is not None and detail.marked == Marked()
        assert (await listed(client))[0] == [anns]


async def test_a_call_needs_a_key_and_one_about_a_user_names_them() -> None:
    async with served() as (_, client):
        for method, path in (("GET", "/api/notifications"), ("DELETE", "/api/tokens/x"), ("POST", "/api/tokens")):
            answer = await client.request(method, path, json=ANDROID if method == "POST" else None)
            assert refusal(answer) == (400, "invalid_request", ["X-Waypost-User"])
            anonymous = await client.request(method, path, headers={"authorization": ""} | by("ann"))
            assert refusal(anonymous) == (401, "unauthenticated", [])
        assert refusal(await client.get("/api/notifications", headers=by("a%00b")))[2] == ["X-Waypost-User"]
        assert (await client.get("/api/notifications", headers=by("J%C3%BCrg"))).status_code == 200


async def test_whatever_is_refused_under_api_is_in_the_envelope() -> None:
    async with for_ann() as (service, client):
        assert refusal(await client.get("/api/nothing"))[:2] == (404, "not_found")
        assert refusal(await client.put("/api/notifications", json={}))[:2] == (405, "method_not_allowed")
        json = {"content-type": "application/json"}
        assert refusal(await client.post("/api/tokens", content=b"{", headers=json))[:2] == (400, "invalid_json")
        service.is_draining = True
        assert refusal(await client.post("/api/tokens", json=ANDROID))[:2] == (503, "shutting_down")


@shows("S3-04", "S3-17", "S3-22", "S3-131")
async def test_a_token_is_registered_refreshed_and_deactivated() -> None:
    async with for_ann() as (service, client):
        answer = await client.post("/api/tokens", json=ANDROID)
        data = answer.json()["data"]
        assert answer.status_code == 201
        assert answer.json() == {"success": True, "data": data | {"token": "token-1", "platform": "android"}}
        again = await client.post("/api/tokens", json=ANDROID | {"device_info": {"app_version": "1.5.0"}})
        assert (again.status_code, again.json()["data"]) == (201, data)
        (device,) = await service.devices.of_user(DEMO, UserId("ann"))
        assert (device.app_version, device.active) == ("1.5.0", True)
        for token_or_id in (data["id"], "token-1"):
            await client.post("/api/tokens", json=ANDROID)
            for _ in range(2):
                gone = await client.delete(f"/api/tokens/{token_or_id}")
                assert (gone.status_code, gone.json()) == (200, {"success": True, "data": data})
            (device,) = await service.devices.of_user(DEMO, UserId("ann"), inactive=True)
            assert not device.active


async def test_a_token_that_has_a_device_keeps_it() -> None:
    """One registered under /v1 is refreshed, not doubled."""
    async with for_ann() as (service, client):
        await client.put("/v1/devices/ann/phone", json={"platform": "android", "token": "token-1"})
        assert (await client.post("/api/tokens", json=ANDROID)).json()["data"]["id"] == "phone"
        assert len(await service.devices.of_user(DEMO, UserId("ann"), inactive=True)) == 1


@shows("S3-17", "S3-21")
async def test_the_user_of_a_token_is_never_taken_from_the_body_and_foreign_ones_are_404() -> None:
    async with for_ann() as (service, client):
        await client.post("/api/tokens", json=ANDROID | {"user_id": "bob"})
        assert await service.devices.of_user(DEMO, UserId("bob")) == []
        assert refusal(await client.delete("/api/tokens/token-1", headers=by("bob"))) == (404, "not_found", [])
        async with service.client(service.others.text) as other:
            assert (await other.delete("/api/tokens/token-1", headers=by("ann"))).status_code == 404
        assert await service.devices.of_user(OTHER, UserId("ann"), inactive=True) == []
        (device,) = await service.devices.of_user(DEMO, UserId("ann"))
        assert device.active


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"token": None}, "token"),
        ({"platform": None}, "platform"),
        ({"platform": "fridge"}, "platform"),
        ({"platform": "web", "token": "https://push.example/1"}, "keys"),
        ({"device_info": "x"}, "device_info"),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused_by_name(change: dict[str, Any], path: str) -> None:
    async with for_ann() as (_, client):
        body = {name: value for name, value in (ANDROID | change).items() if value is not None}
        assert refusal(await client.post("/api/tokens", json=body)) == (400, "invalid_request", [path])


async def test_a_browser_gives_its_keys_too_and_its_url_is_a_token() -> None:
    async with for_ann() as (_, client):
        keys = {"p256dh": P256DH, "auth": "k8JV6sjdbhAi1n3_LDBLvA"}
        answer = await client.post(
            "/api/tokens", json={"token": "https://push.example/a/1", "platform": "web", "keys": keys}
        )
        assert answer.status_code == 201, answer.text
        gone = await client.delete("/api/tokens/https%3A%2F%2Fpush.example%2Fa%2F1")
        assert (gone.status_code, gone.json()["data"]["id"]) == (200, answer.json()["data"]["id"])


async def test_it_can_be_switched_off() -> None:
    async with for_ann(RestSettings(serve_api=False)) as (_, client):
        answer = await client.get("/api/notifications")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        paths = (await client.get("/openapi.json")).json()["paths"]
        assert not [path for path in paths if path.startswith("/api/")]

"""The intake of S1 in its own shape, and notifications read in the words of other APIs."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import served, shown
from tests.shows import shows
from waypost.domain.ids import format_id
from waypost.domain.settlement import Sent
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

TOLD = {"user_id": "user-1", "title": "Your code", "body": "1234", "data": {"order": 7}}


async def _words(client: httpx.AsyncClient, notification_id: str, vocabulary: str) -> Any:
    return (await client.get(f"/v1/notifications/{notification_id}?words={vocabulary}")).json()


@shows("S1-03")
async def test_a_new_notification_is_202_with_its_id_and_reads_the_same_under_v1() -> None:
    async with served() as (_, client):
        answer = await client.post("/v1/notify", json=TOLD)
        said = answer.json()
        assert answer.status_code == 202
        assert said == {"notification_id": said["notification_id"], "status": "queued", "deduplicated": False}
        found = (await client.get(f"/v1/notifications/{said['notification_id']}")).json()
        assert found["content"] == {"title": "Your code", "body": "1234", "data": {"order": 7}}
        assert found["notification"]["user_id"] == "user-1"


async def test_the_same_content_again_is_200_with_the_first_id_and_a_flag() -> None:
    async with served() as (_, client):
        first = (await client.post("/v1/notify", json=TOLD)).json()
        again = await client.post("/v1/notify", json=TOLD)
        assert (again.status_code, again.json()) == (200, first | {"deduplicated": True})
        other_data = await client.post("/v1/notify", json=TOLD | {"data": {"order": 8}})
        assert other_data.status_code == 202


async def test_with_a_key_a_repeat_is_told_by_the_key_alone() -> None:
    async with served() as (_, client):
        first = (await client.post("/v1/notify", json=TOLD, headers={"Idempotency-Key": "a"})).json()
        repeated = await client.post("/v1/notify", json=TOLD, headers={"Idempotency-Key": "a"})
        assert (repeated.status_code, repeated.json()["notification_id"]) == (200, first["notification_id"])
        assert (await client.post("/v1/notify", json=TOLD, headers={"Idempotency-Key": "b"})).status_code == 202
        changed = await client.post("/v1/notify", json=TOLD | {"body": "5678"}, headers={"Idempotency-Key": "a"})
        assert (changed.status_code, changed.json()["code"]) == (409, "idempotency_conflict")


async def test_type_urgency_and_validity_have_the_names_of_s1() -> None:
    async with served() as (_, client):
        asked = {"user_id": "u", "notif_type": "silent", "urgency": "high", "ttl_seconds": 60, "data": {"sync": 1}}
        said = (await client.post("/v1/notify", json=asked)).json()
        found = (await client.get(f"/v1/notifications/{said['notification_id']}")).json()["notification"]
        assert (found["kind"], found["urgency"], found["lane"]) == ("silent", "high", "silent")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"title": "x"}, "user_id"),
        ({"user_id": "u"}, "title"),
        ({"user_id": "u", "notif_type": "silent", "title": "x"}, "title"),
        ({"user_id": "u", "title": "x" * 257}, "title"),
        ({"user_id": "u", "title": "x", "data": "no object"}, "data"),
        ({"user_id": "u", "title": "x", "urgency": "urgent"}, "urgency"),
        ({"user_id": "u", "title": "x", "kind": "silent"}, "kind"),
    ],
)
async def test_what_makes_no_sense_is_400_with_the_field(body: dict[str, Any], path: str) -> None:
    async with served() as (service, client):
        answer = await client.post("/v1/notify", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert [fault["path"] for fault in answer.json()["faults"]] == [path]
        assert not await service.accepted()


async def test_it_takes_a_key_and_can_be_switched_off() -> None:
    async with served() as (_, client):
        assert (await client.post("/v1/notify", json=TOLD, headers={"authorization": ""})).status_code == 401
    async with served(RestSettings(serve_notify=False)) as (_, client):
        answer = await client.post("/v1/notify", json=TOLD)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert "/v1/notify" not in (await client.get("/openapi.json")).json()["paths"]


@shows("S4-01", "S4-03")
async def test_one_notification_in_the_words_of_each_api() -> None:
    async with served() as (service, client):
        made = (await client.post("/v1/notifications", json=shown())).json()["id"]
        assert "words" not in (await client.get(f"/v1/notifications/{made}")).json()
        assert (await _words(client, made, "notify"))["words"] == {"status": "queued", "receipts": []}
        await service.settled(Sent("p"))
        expected = {
            "notifications_service": ("sent", "sent"),
            "notify": ("completed", "sent"),
            "simplens": ("delivered", "delivered"),
        }
        for vocabulary, (status, receipt) in expected.items():
            found = await _words(client, made, vocabulary)
            assert found["words"] == {"status": status, "receipts": [receipt]}
            assert found["notification"]["status"] == "sent"
        for wrong in ("s2", "null"):
            refused = await client.get(f"/v1/notifications/{made}?words={wrong}")
            assert (refused.status_code, refused.json()["faults"][0]["path"]) == (400, "words")


@shows("S1-28")
async def test_a_duplicate_reads_as_the_first_where_there_is_no_word_for_it() -> None:
    async with served() as (service, client):
        first = (await client.post("/v1/notifications", json=shown())).json()["id"]
        record = (await client.post("/v1/notifications", json=shown())).json()["record_id"]
        assert {format_id(each.id) for each in await service.accepted()} == {record, first}
        for vocabulary, shown_id, word in (("notify", record, "deduplicated"), ("user_api", first, "pending")):
            found = await _words(client, record, vocabulary)
            assert (found["notification"]["id"], found["words"]["status"]) == (shown_id, word)

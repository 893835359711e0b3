"""Many users' profiles at once, as JSON Lines and as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tests.adapters.rest.service import served
from waypost.features.users.importing import FAULTS_TOLD, PAGE

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

NDJSON, CSV = {"content-type": "application/x-ndjson"}, {"content-type": "text/csv"}


def lines_of(*users: dict[str, Any] | str) -> bytes:
    return "".join(f"{user if isinstance(user, str) else json.dumps(user)}\n" for user in users).encode()


async def test_lines_change_what_they_name_and_say_which_of_them_are_faulty() -> None:
    async with served() as (_, client):
        before = {"locale": "de", "time_zone": "Europe/Zurich", "attributes": {"plan": "free", "age": 34}}
        await client.put("/v1/users/ann", json=before)
        body = lines_of(
            {"user_id": "ann", "locale": None, "attributes": {"plan": "premium", "age": None}},
            {"user_id": "bob", "time_zone": "Europe/Atlantis"},
            "{",
            {"user_id": "cat", "attributes": {"a b": 1}},
            {"user_id": ""},
            {"user_id": "dan", "attributes": {"likes": ["tennis"]}},
            {"user_id": "dan", "locale": "fr"},
            {"user_id": "eve", "attributes": {f"n{n}": n for n in range(60)}},
            {"user_id": "eve", "attributes": {f"m{n}": n for n in range(60)}},
        )
        answer = await client.post("/v1/users", content=body, headers=NDJSON)
        told = answer.json()
        assert (answer.status_code, told["users"], told["faulty"]) == (200, 4, 5), told
        assert sorted(fault["line"] for fault in told["faults"]) == [2, 3, 4, 5, 9]
        ann = (await client.get("/v1/users/ann")).json()
        assert ann == {
            "user_id": "ann", "locale": None, "time_zone": "Europe/Zurich", "attributes": {"plan": "premium"}
        }  # fmt: skip
        dan = (await client.get("/v1/users/dan")).json()
        assert (dan["locale"], dan["attributes"]) == ("fr", {"likes": ["tennis"]})
        assert len((await client.get("/v1/users/eve")).json()["attributes"]) == 60
        assert (await client.get("/v1/users/bob")).json()["time_zone"] is None


async def test_cells_are_typed_by_their_column_and_an_empty_one_says_nothing() -> None:
    rows = [
        ["user_id", "locale", "plan", "age:number", "vip:boolean", "likes:list"],
        ["ann", "de-CH", "pre,mium", "34", "true", "tennis|chess"],
        ["bob", "", "", "", "", ""],
        ["cat", "", "", "many", "", ""],
        ["dan", "", "", "", "maybe", ""],
        ["eve"],
    ]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    async with served() as (_, client):
        told = (await client.post("/v1/users", content=text.getvalue().encode(), headers=CSV)).json()
        assert (told["users"], told["faulty"]) == (2, 3)
        assert [(fault["line"], fault["why"].partition(":")[0]) for fault in told["faults"]] == [
            (4, "attributes.age"),
            (5, "attributes.vip"),
            (6, "has 1 cells, the head has 6"),
        ]
        ann = (await client.get("/v1/users/ann")).json()
        assert ann["attributes"] == {"plan": "pre,mium", "age": 34, "vip": True, "likes": ["tennis", "chess"]}
        assert (await client.get("/v1/users/bob")).json()["attributes"] == {}


async def test_a_long_list_is_written_by_pages_and_not_every_fault_is_named() -> None:
    users = [{"user_id": f"u{n}", "attributes": {"n": n}} for n in range(2 * PAGE + 1)]
    body = lines_of(*users, *(["{"] * (FAULTS_TOLD + 1)))
    async with served() as (_, client):
        told = (await client.post("/v1/users", content=body, headers=NDJSON)).json()
        assert (told["users"], told["faulty"], len(told["faults"])) == (2 * PAGE + 1, FAULTS_TOLD + 1, FAULTS_TOLD)
        assert (await client.get(f"/v1/users/u{2 * PAGE}")).json()["attributes"] == {"n": 2 * PAGE}


async def test_what_is_no_list_is_refused_as_a_whole() -> None:
    async with served() as (_, client):
        assert (await client.post("/v1/users", content=b"{}", headers={"content-type": "x/y"})).status_code == 415
        refused = await client.post("/v1/users", content=b"name\nann\n", headers=CSV)
        assert (refused.status_code, refused.json()["detail"].partition(":")[0]) == (400, "line 1")

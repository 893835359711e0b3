"""Topics by the API: the app makes them, users subscribe to those that are open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.rest.issuers import user_token, users_issuer
from tests.adapters.rest.service import served

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]


async def test_a_topic_is_made_filled_read_and_removed() -> None:
    async with served() as (_, client):
        made = await client.put("/v1/topics/news", json={"description": "The day"})
        assert (made.status_code, made.json()["open"]) == (201, False)
        users = {"add": ["ann", "bob", "cat"]}
        assert (await client.post("/v1/topics/news/members", json=users)).status_code == 204
        assert (await client.put("/v1/users/dan/topics/news")).status_code == 204
        assert (await client.post("/v1/topics/news/members", json={"remove": ["bob"]})).status_code == 204
        assert (await client.get("/v1/topics/news")).json()["members"] == 3
        first = (await client.get("/v1/topics/news/members?limit=2")).json()
        assert first["items"] == ["ann", "cat"]
        rest = (await client.get(f"/v1/topics/news/members?limit=2&cursor={first['next']}")).json()
        assert (rest["items"], rest["next"]) == (["dan"], None)
        assert (await client.get("/v1/users/dan/topics")).json() == {"topics": ["news"]}
        assert (await client.delete("/v1/users/dan/topics/news")).status_code == 204
        assert (await client.get("/v1/users/dan/topics")).json() == {"topics": []}
        assert [each["name"] for each in (await client.get("/v1/topics")).json()["items"]] == ["news"]
        assert (await client.delete("/v1/topics/news")).status_code == 204
        assert (await client.get("/v1/users/ann/topics")).json() == {"topics": []}
        acts = (await client.get("/v1/audit")).json()["items"]
        assert [(act["act"], act["subject"]) for act in acts] == [("topic.removed", "news"), ("topic.put", "news")]


async def test_a_topic_that_is_not_there_is_not_found() -> None:
    async with served() as (_, client):
        for method, path in (
            ("GET", "/v1/topics/news"),
            ("DELETE", "/v1/topics/news"),
            ("GET", "/v1/topics/news/members"),
            ("PUT", "/v1/users/ann/topics/news"),
            ("DELETE", "/v1/users/ann/topics/news"),
        ):
            assert (await client.request(method, path)).status_code == 404, (method, path)
        assert (await client.post("/v1/topics/news/members", json={"add": ["ann"]})).status_code == 404
        assert (await client.put("/v1/topics/a%20b", json={})).status_code == 400


async def test_users_reach_open_topics_alone_and_for_themselves(tmp_path: Path) -> None:
    async with served(issuers=[users_issuer(tmp_path)]) as (service, client):
        await client.put("/v1/topics/open", json={"open": True})
        await client.put("/v1/topics/ours", json={"open": False})
        await client.put("/v1/users/ann/topics/ours")
        async with service.client(user_token("ann")) as ann:
            assert (await ann.put("/v1/users/ann/topics/open")).status_code == 204
            assert (await ann.put("/v1/users/ann/topics/ours")).status_code == 404
            assert (await ann.delete("/v1/users/ann/topics/ours")).status_code == 404
            assert (await ann.put("/v1/users/bob/topics/open")).status_code == 404
            assert (await ann.get("/v1/users/ann/topics")).json() == {"topics": ["open"]}
            assert (await ann.put("/v1/topics/mine", json={})).status_code == 403
        assert (await client.get("/v1/users/ann/topics")).json() == {"topics": ["open", "ours"]}


async def test_nobody_is_added_and_removed_at_once() -> None:
    async with served() as (_, client):
        await client.put("/v1/topics/news", json={})
        refused = await client.post("/v1/topics/news/members", json={"add": ["ann"], "remove": ["ann"]})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")

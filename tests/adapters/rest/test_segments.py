"""Segments by the API: named, previewed, and whom a bulk send is for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.rest.service import served

pytestmark = pytest.mark.asyncio
on_each_store = pytest.mark.usefixtures("each_store")

SEGMENT = "/v1/segments/premium"
PREMIUM: dict[str, Any] = {"and": [{"attribute": {"name": "plan", "is": "premium"}}, {"not": {"topic": "quiet"}}]}


@on_each_store
async def test_a_segment_is_put_listed_and_removed() -> None:
    async with served() as (_, client):
        made = await client.put(SEGMENT, json={"filter": PREMIUM})
        assert (made.status_code, made.json()["filter"]) == (201, PREMIUM)
        assert (await client.put(SEGMENT, json={"filter": {"topic": "news"}})).status_code == 200
        assert (await client.get(SEGMENT)).json()["filter"] == {"topic": "news"}
        assert [each["name"] for each in (await client.get("/v1/segments")).json()["items"]] == ["premium"]
        assert (await client.delete(SEGMENT)).status_code == 204
        assert (await client.delete(SEGMENT)).status_code == 404
        assert (await client.get(SEGMENT)).status_code == 404
        acts = [each["act"] for each in (await client.get("/v1/audit")).json()["items"]]
        assert acts == ["segment.removed", "segment.removed", "segment.put", "segment.put"]


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({}, "filter"),
        ({"topic": "news", "locale": ["de"]}, "filter"),
        ({"and": []}, "filter.and"),
        ({"and": [{"topic": "news"}, {"or": [{"topic": "a"}, {}]}]}, "filter.and[1].or[1]"),
        ({"attribute": {"name": "a b"}}, "filter.attribute.name"),
        ({"attribute": {"name": "age", "at_least": 18, "below": "x"}}, "filter.attribute"),
        ({"attribute": {"name": "age", "is": 1, "in": [1]}}, "filter.attribute"),
        ({"attribute": {"name": "age", "is": 2**60}}, "filter.attribute.is"),
        ({"event": {"name": "opened", "within_days": 0}}, "filter.event.within_days"),
        ({"tag": "x"}, "filter.tag"),
        ({"or": [{"topic": f"t{n}"} for n in range(200)]}, "filter"),
    ],
)
async def test_a_filter_that_cannot_be_is_refused_by_its_place(said: dict[str, Any], path: str) -> None:
    async with served() as (_, client):
        refused = await client.post("/v1/segments/preview", json={"filter": said})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
        assert refused.json()["detail"].startswith(path), refused.text


async def test_filters_too_deep_for_sql_are_refused() -> None:
    deep: dict[str, Any] = {"topic": "news"}
    for _ in range(12):
        deep = {"not": deep}
    async with served() as (_, client):
        refused = await client.post("/v1/segments/preview", json={"filter": deep})
        assert (refused.status_code, "12 filters" in refused.json()["detail"]) == (400, True)


@on_each_store
async def test_a_bulk_send_is_to_a_segment_a_topic_or_a_filter_and_to_nothing_else() -> None:
    async with served() as (service, client):
        await client.put(SEGMENT, json={"filter": PREMIUM})
        message = {"title": "Hello"}
        for to in ({"segment": "premium"}, {"topic": "news"}, {"filter": PREMIUM}):
            made = await client.post("/v1/bulk", json={"notification": message, "to": to})
            assert (made.status_code, made.json()["state"]) == (202, "running"), made.text
            service.clock.advance(10)
        for to, path in (
            ({"segment": "unknown"}, "to.segment"),
            ({"filter": {"and": [{}]}}, "to.filter.and[0]"),
            ({"segment": "premium", "topic": "news"}, "to"),
            ({}, "to"),
        ):
            refused = await client.post("/v1/bulk", json={"notification": message, "to": to})
            assert (refused.status_code, refused.json()["detail"].partition(":")[0]) == (400, path), refused.text
        both = {"notification": message, "to": {"topic": "news"}, "recipients": ["ann"]}
        assert (await client.post("/v1/bulk", json=both)).status_code == 400
        asks = {"notification": {"title": "Hello {{name}}"}, "to": {"topic": "news"}}
        assert (await client.post("/v1/bulk", json=asks)).json()["detail"].startswith("variables.name")

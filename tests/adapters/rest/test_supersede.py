"""Collapse keys: what is unsent of an older notification ends when a newer one comes."""

from __future__ import annotations

import httpx
import pytest

from tests.adapters.rest.service import served, shown
from tests.adapters.rest.test_routes import submitted
from waypost.domain.time import HOUR_MS, isoformat, later

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]


async def test_a_newer_one_replaces_what_is_unsent_under_its_collapse_key() -> None:
    """The older ones end and name it; what is scheduled stays, and replaces nothing; a repeat replaces nothing new."""
    async with served() as (service, client):
        an_hour_on = isoformat(later(service.clock.now(), HOUR_MS))
        older = [await submitted(client, "ann", body=text, collapse_key="score") for text in ("0:1", "0:2")]
        kick_off = await submitted(client, "ann", collapse_key="score", scheduled_at=an_hour_on)
        others = [await submitted(client, user, collapse_key=key) for user, key in (("ann", "rain"), ("bob", "score"))]
        newest = await submitted(client, "ann", body="0:3", collapse_key="score", idempotency_key="third")
        repeat = shown("ann", body="0:3", collapse_key="score", idempotency_key="third")
        assert (await client.post("/v1/notifications", json=repeat)).json()["id"] == newest
        read = {each: await _read(client, each) for each in (*older, kick_off, *others, newest)}
        assert [read[each] for each in older] == [
            ("cancelled", f"superseded by {older[1]}"),
            ("cancelled", f"superseded by {newest}"),
        ]
        assert [read[each][0] for each in (kick_off, *others, newest)] == ["scheduled", "pending", "pending", "pending"]


async def _read(client: httpx.AsyncClient, notification_id: str) -> tuple[str, str | None]:
    found = (await client.get(f"/v1/notifications/{notification_id}")).json()["notification"]
    return found["status"], found.get("reason")

"""The balance as callers see it."""

from __future__ import annotations

import pytest

from tests.adapters.rest.service import served, shown
from tests.adapters.rest.test_routes import submitted
from tests.journeys.harness import until
from waypost.domain.notification import Lane
from waypost.domain.settlement import Sent

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]


async def test_what_came_in_adds_up_with_what_became_of_it() -> None:
    """Of the key's own app alone; what is refused counts, too."""
    async with served() as (service, client):
        await submitted(client, "ann", idempotency_key="first")
        await service.settled(Sent("a"), Sent("b"))
        await submitted(client, "bob")
        repeat = shown("ann", idempotency_key="first")
        assert (await client.post("/v1/notifications", json=repeat)).status_code == 200
        refused = shown("ann", scheduled_at="2999-01-01T00:00:00Z")
        assert (await client.post("/v1/notifications", json=refused)).status_code == 400

        async def of_requests() -> bool:
            found = (await client.get("/v1/balance")).json()["total"]["requests"]
            return bool(found == {"requests": 4, "refused": 1, "duplicates": 1, "accepted": 2, "difference": 0})

        await until(of_requests, "the refusal is written with what comes next")
        found = (await client.get("/v1/balance")).json()
        assert found["adds_up"]
        assert found["lanes"][Lane.NORMAL] == found["total"]
        assert found["total"]["notifications"] == {
            "accepted": 2, "recipients": 0, "ended": {"sent": 1}, "scheduled": 0, "waiting": 1, "processing": 0,
            "difference": 0,
        }  # fmt: skip
        assert found["total"]["deliveries"] == {
            "targets": 2, "ended": {"sent": 2}, "waiting": 0, "parked": 0, "under_way": 0, "difference": 0,
        }  # fmt: skip
        async with service.client(service.others.text) as other:
            assert (await other.get("/v1/balance")).json()["lanes"] == {}

"""Forgetting a user, as a caller asks for it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.adapters.rest.service import DEMO, OTHER, served, shown
from tests.memory.audit import MemoryAudit
from tests.memory.store import MemoryStore
from waypost.domain.errors import Unavailable
from waypost.domain.ids import UserId, format_id
from waypost.domain.time import isoformat
from waypost.entrypoints.rest.app import build_app
from waypost.ports.audit import Ordered

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]


async def test_an_erasure_is_asked_for_once_for_each_app_and_named_by_a_tombstone_of_its_own() -> None:
    async with served() as (service, client):
        answer = await client.delete("/v1/users/ann%2F1")
        assert answer.status_code == 202
        (order,) = await service.erasures.standing(10)
        assert answer.json()["id"] == format_id(order.id)
        assert (order.app, order.user_id, order.asked_at) == (DEMO, UserId("ann/1"), service.clock.now())
        assert (await client.delete("/v1/users/ann%2F1")).json() == answer.json()
        async with service.client(service.others.text) as other:
            assert (await other.delete("/v1/users/ann%2F1")).json()["id"] != answer.json()["id"]
        first, second = await service.erasures.standing(10)
        assert {first.app, second.app} == {DEMO, OTHER}
        assert first.tombstone != second.tombstone
        assert order.id.hex() not in order.tombstone.replace("-", "")


async def test_what_an_operator_orders_is_on_record_before_it_is_done_and_names_nobody() -> None:
    """Of this app alone, by pages."""
    async with served() as (service, client):
        erased = (await client.delete("/v1/users/ann")).json()["id"]
        await client.post("/v1/dedup/forget", json=shown("ann"))
        await client.post("/v1/bulk/01a3185c-5000-7000-8000-00000000ffff/cancel")
        async with service.client(service.others.text) as other:
            await other.delete("/v1/users/bob")
        page = (await client.get("/v1/audit", params={"limit": 2})).json()
        assert [each["act"] for each in page["items"]] == ["bulk.cancelled", "dedup.forgotten"]
        rest = (await client.get("/v1/audit", params={"limit": 2, "cursor": page["next"]})).json()
        (entry,) = rest["items"]
        assert (entry["act"], entry["subject"], entry["by"], rest["next"]) == ("user.erased", erased, "billing", None)
        assert entry["at"] == isoformat(service.clock.now())
        assert "ann" not in str(page) + str(rest)
        assert (await client.get("/v1/audit", params={"act": "key.made"})).json()["items"] == []


async def test_cancelling_and_replaying_one_notification_is_on_record() -> None:
    async with served() as (_, client):
        made = (await client.post("/v1/notifications", json=shown("ann"))).json()["id"]
        for order in ("cancel", "replay"):
            await client.post(f"/v1/notifications/{made}/{order}")
        items = (await client.get("/v1/audit")).json()["items"]
        assert [(each["act"], each["subject"], each["by"]) for each in items] == [
            ("notification.replayed", made, "billing"),
            ("notification.cancelled", made, "billing"),
        ]


class AwayAudit(MemoryAudit):
    """Takes nothing down."""

    async def record(self, orders: Sequence[Ordered]) -> None:
        """Away."""
        raise Unavailable("away")


async def test_nobody_is_forgotten_without_a_record_and_each_request_names_the_order_that_stands() -> None:
    async with served() as (service, client):
        app, service.app = service.app, build_app(msgspec.structs.replace(service.api, audit=AwayAudit(MemoryStore())))
        async with service.client() as unrecorded:
            assert (await unrecorded.delete("/v1/users/ann")).status_code == 503
        assert list(await service.erasures.standing(10)) == []
        service.app = app
        asked = [(await client.delete("/v1/users/ann")).json()["id"] for _ in range(2)]
        entries = (await client.get("/v1/audit", params={"act": "user.erased"})).json()["items"]
        assert asked == [entry["subject"] for entry in entries]
        assert len(set(asked)) == 1

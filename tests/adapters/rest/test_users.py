"""Forgetting a user, as a caller asks for it."""

from __future__ import annotations

import pytest

from tests.adapters.rest.service import DEMO, OTHER, served
from waypost.domain.ids import UserId, format_id

pytestmark = pytest.mark.asyncio


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

"""The profiles of users by the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.adapters.rest.service import served
from waypost.domain.profile import ATTRIBUTES_LIMIT

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

USER = "/v1/users/ann"
SAID = {"locale": "de-CH", "time_zone": "Europe/Zurich", "attributes": {"plan": "premium", "likes": ["tennis"]}}


async def test_a_profile_is_put_changed_and_read() -> None:
    async with served() as (_, client):
        nothing: dict[str, Any] = {"user_id": "ann", "locale": None, "time_zone": None, "attributes": {}}
        assert (await client.get(USER)).json() == nothing
        assert (await client.put(USER, json=SAID)).status_code == 201
        change = {"locale": None, "attributes": {"plan": None, "age": 34}}
        changed = await client.patch(USER, json=change)
        now = {**SAID, "user_id": "ann", "locale": None, "attributes": {"likes": ["tennis"], "age": 34}}
        assert (changed.status_code, changed.json()) == (200, now)
        assert (await client.get(USER)).json() == now
        assert (await client.put(USER, json={})).status_code == 200
        assert (await client.get(USER)).json() == nothing


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"time_zone": "Europe/Atlantis"}, "time_zone"),
        ({"attributes": {"a b": 1}}, "attributes"),
        ({"attributes": {"plan": {"name": "premium"}}}, "attributes"),
        ({"attributes": {f"n{n}": n for n in range(ATTRIBUTES_LIMIT)}}, "attributes"),
        ({"language": "de"}, "language"),
    ],
)
async def test_a_change_that_cannot_be_is_refused_by_name(change: Mapping[str, Any], path: str) -> None:
    async with served() as (_, client):
        await client.put(USER, json=SAID)
        refused = await client.patch(USER, json=change)
        assert (refused.status_code, refused.json()["detail"].startswith(path)) == (400, True), refused.text
        assert (await client.get(USER)).json() == {"user_id": "ann", **SAID}

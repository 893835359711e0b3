"""Keys by REST: made, rotated, listed and revoked by an app's administrators; what a key may do, and until when."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.adapters.rest.service import Service, served, shown
from waypost.domain.errors import Unavailable
from waypost.domain.scope import Scope
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant, isoformat
from waypost.entrypoints.callers import Authenticator

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

CACHED_MS = 2 * SECOND_MS


async def made(client: httpx.AsyncClient, *scopes: Scope, **more: Any) -> tuple[str, str]:
    """A new key and its prefix."""
    answer = await client.post("/v1/keys", json={"caller": "shop", "scopes": scopes, **more})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()["key"], answer.json()["stored"]["prefix"]


async def asked(service: Service, key: str, method: str = "GET", path: str = "/v1/notifications") -> int:
    """How a call with *key* is answered."""
    async with service.client(key) as client:
        return (await client.request(method, path, json=shown() if method == "POST" else None)).status_code


async def test_a_made_key_does_what_its_scopes_say_and_no_more() -> None:
    async with served() as (service, client):
        key, prefix = await made(client, Scope.READ)
        assert await asked(service, key) == 200
        assert await asked(service, key, "POST") == 403
        assert await asked(service, key, "POST", "/v1/keys") == 403
        (stored,) = [each for each in await service.keys.all() if each.prefix == prefix]
        assert key.encode() not in stored.secret_hash
        listed = await client.get("/v1/keys")
        assert key not in listed.text
        assert ("shop", ["read"]) in [(each["caller"], each["scopes"]) for each in listed.json()["items"]]


@pytest.mark.parametrize("caller", ["login:alice", "cli:root", ":"])
async def test_no_key_is_made_in_the_name_of_a_token_or_of_the_command_line(caller: str) -> None:
    """Else it would share the limits and idempotency keys of a token's caller, or look like it on record."""
    async with served() as (service, client):
        refused = await client.post("/v1/keys", json={"caller": caller, "scopes": [Scope.READ]})
        assert (refused.status_code, refused.json()["faults"][0]["path"]) == (400, "caller")
        assert len(await service.keys.all()) == 2
        assert (await client.get("/v1/audit")).json()["items"] == []


async def test_a_key_ends_on_time_though_it_was_believed_a_moment_ago() -> None:
    async with served() as (service, client):
        key, _ = await made(client, Scope.READ, expires_in=3_600)
        service.clock.advance(HOUR_MS - 1)
        assert await asked(service, key) == 200
        service.clock.advance(1)
        assert await asked(service, key) == 401


async def test_a_rotated_key_and_its_successor_overlap() -> None:
    """The caller stays the same, so that its idempotency keys do."""
    async with served() as (service, client):
        old, prefix = await made(client, Scope.READ, Scope.SEND_ANY_USER)
        rotated = await client.post(f"/v1/keys/{prefix}/rotate", json={"overlap": 3_600})
        new = rotated.json()["key"]
        assert rotated.json()["stored"] | {"prefix": ""} == {
            "prefix": "",
            "caller": "shop",
            "scopes": ["read", "send:any-user"],
            "created_at": isoformat(service.clock.now()),
            "last_used_at": None,
            "expires_at": None,
            "revoked_at": None,
        }
        service.clock.advance(HOUR_MS - 1)
        assert [await asked(service, old), await asked(service, new)] == [200, 200]
        service.clock.advance(1)
        assert [await asked(service, old), await asked(service, new)] == [401, 200]


async def test_the_successor_of_a_key_with_an_end_lives_as_long() -> None:
    async with served() as (service, client):
        _, prefix = await made(client, Scope.READ, expires_in=7_200)
        service.clock.advance(HOUR_MS)
        rotated = await client.post(f"/v1/keys/{prefix}/rotate", json={"overlap": 0})
        assert rotated.json()["stored"]["expires_at"] == isoformat(Instant(service.clock.now() + 2 * HOUR_MS))


@pytest.mark.parametrize(("lifetime", "lives_ms"), [({}, None), ({"expires_in": 7_200}, 2 * HOUR_MS)])
async def test_a_key_whose_successor_was_lost_on_the_way_has_another_as_good(
    lifetime: dict[str, int], lives_ms: int | None
) -> None:
    """Its own end, which came nearer by the first rotation, is not taken for the life it was given."""
    async with served() as (service, client):
        _, prefix = await made(client, Scope.READ, **lifetime)
        ends = None if lives_ms is None else isoformat(Instant(service.clock.now() + lives_ms))
        for _ in range(3):
            rotated = await client.post(f"/v1/keys/{prefix}/rotate", json={"overlap": 60})
            assert rotated.json()["stored"]["expires_at"] == ends


async def test_a_revoked_key_dies_within_the_time_it_is_believed() -> None:
    async with served() as (service, client):
        key, prefix = await made(client, Scope.READ)
        assert await asked(service, key) == 200
        assert (await client.delete(f"/v1/keys/{prefix}")).status_code == 204
        service.clock.advance(CACHED_MS)
        assert await asked(service, key) == 401
        assert (await client.delete(f"/v1/keys/{prefix}")).status_code == 404
        assert (await client.post(f"/v1/keys/{prefix}/rotate")).status_code == 404


async def test_keys_of_another_app_are_not_there() -> None:
    async with served() as (service, client):
        theirs = service.others.prefix
        assert theirs not in (await client.get("/v1/keys")).text
        assert (await client.delete(f"/v1/keys/{theirs}")).status_code == 404
        assert (await client.post(f"/v1/keys/{theirs}/rotate")).status_code == 404
        assert await asked(service, service.others.text) == 200


@pytest.mark.parametrize(
    "wanted",
    [
        {"caller": "a"},
        {"caller": "a", "scopes": []},
        {"caller": "a", "scopes": ["root"]},
        {"caller": "", "scopes": ["read"]},
        {"caller": "a\n", "scopes": ["read"]},
        {"caller": "a", "scopes": ["read"], "expires_in": 0},
        {"caller": "a", "scopes": ["read"], "app": "other"},
    ],
)
async def test_a_key_that_makes_no_sense_is_400(wanted: dict[str, Any]) -> None:
    async with served() as (service, client):
        assert (await client.post("/v1/keys", json=wanted)).status_code == 400
        assert len(await service.keys.all()) == 2


class Reluctant:
    """The store of keys, as it is written to."""

    def __init__(self, service: Service) -> None:
        self.find = service.keys.find
        self.written: list[dict[str, Instant]] = []
        self.is_away = False

    async def touch(self, uses: dict[str, Instant]) -> None:
        """Keep what is written, unless away."""
        if self.is_away:
            raise Unavailable("away")
        self.written.append(uses)


async def test_when_a_key_was_used_is_written_seldom_and_together() -> None:
    """Requests write nothing; what could not be written is written with the next."""
    async with served() as (service, _):
        store = Reluctant(service)
        callers = Authenticator(
            store,  # type: ignore[arg-type] # the two calls that are made
            service.tokens,
            service.api.device_caps,
            service.clock,
            2.0,
            service.telemetry,
        )
        for text in (service.made.text, service.others.text, service.made.text):
            for _ in range(10):
                await callers.caller(text)
            service.clock.advance(CACHED_MS)
        assert store.written == []
        store.is_away = True
        with pytest.raises(Unavailable):
            await callers.write_uses()
        store.is_away = False
        await callers.write_uses()
        await callers.write_uses()
        (uses,) = store.written
        assert uses.keys() == {service.made.prefix, service.others.prefix}
        assert uses[service.made.prefix] == uses[service.others.prefix] + CACHED_MS

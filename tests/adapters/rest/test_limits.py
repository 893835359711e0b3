"""Limits at the door: who is over one is told which, and when to come again; nobody else notices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import DEMO, Service, shown
from tests.shows import shows
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain import api_key
from waypost.domain.ids import CallerId
from waypost.domain.limits import FixedWindow
from waypost.domain.scope import Scope
from waypost.domain.time import MINUTE_MS, SECOND_MS
from waypost.entrypoints.limits import Bounds, EntrypointLimits, LimitedRoute, Visit
from waypost.entrypoints.rest.app import build_app
from waypost.ports.keys import ApiKey
from waypost.telemetry import Metric

pytestmark = pytest.mark.asyncio

TWO = FixedWindow(2, MINUTE_MS)
BUSY = {"x-waypost-user": "ann"}


@asynccontextmanager
async def limited(**bounds: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """A service with these limits, and a client of the demo app."""
    service = Service()
    await service.add_keys()
    limits = EntrypointLimits(Bounds(**bounds), MemoryLimiter(service.clock), service.clock, service.telemetry)
    service.api = msgspec.structs.replace(service.api, limits=limits)
    service.app = build_app(service.api)
    async with service.client() as client:
        yield service, client


async def sent(client: httpx.AsyncClient, count: int = 1, **headers: str) -> list[int]:
    """The answers to so many different notifications."""
    bodies = [shown(body=str(n), data=headers) for n in range(count)]
    answers = [await client.post("/v1/notifications", json=body, headers=headers) for body in bodies]
    return [each.status_code for each in answers]


@shows("S1-23")
async def test_a_caller_over_its_limit_is_told_when_to_come_again_and_others_go_on() -> None:
    """Requirement S1-23."""
    async with limited(caller=TWO) as (service, client):
        assert await sent(client, 2) == [202, 202]
        refused = await client.post("/v1/notifications", json=shown(body="more"))
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        wait_s = refused.json()["retry_after"]
        assert 0 < wait_s <= 60
        assert refused.headers["retry-after"] == str(wait_s)
        assert refused.headers["ratelimit-policy"] == '"caller";q=2;w=60'
        assert refused.headers["ratelimit"] == f'"caller";r=0;t={wait_s}'
        assert (Metric.LIMITED, {"limit": "caller", "app": "demo"}) in service.telemetry.counts
        async with service.client(service.others.text) as other:
            assert await sent(other, 1) == [202]
        service.clock.advance(wait_s * SECOND_MS)
        assert await sent(client, 1, **{"idempotency-key": "again"}) == [202]


@pytest.mark.parametrize("valid", [True, False], ids=["good", "wrong"])
async def test_a_key_is_hashed_once_for_all_who_ask_about_it(monkeypatch: pytest.MonkeyPatch, valid: bool) -> None:
    """Whether it is known, was good before, or must be verified: each of them goes by the same hash."""
    seen: list[str] = []
    hashed = api_key.hashed

    def noted(text: str) -> bytes:
        seen.append(text)
        return hashed(text)

    async with limited(failures=FixedWindow(10, MINUTE_MS)) as (service, _):
        text = service.made.text if valid else service.made.text[:-1] + ("a" if service.made.text[-1] != "a" else "b")
        monkeypatch.setattr(api_key, "hashed", noted)
        async with service.client(text) as client:
            for n in range(2):
                assert await sent(client, 1, **{"idempotency-key": str(n)}) == [202 if valid else 401]
        assert seen == [text, text]


async def test_a_batch_takes_as_much_as_it_has_items_and_all_or_nothing() -> None:
    async with limited(caller=FixedWindow(5, MINUTE_MS)) as (_, client):

        async def batch(count: int, what: str) -> httpx.Response:
            items = [shown(body=f"{what} {n}") for n in range(count)]
            return await client.post("/v1/notifications/batch", json={"notifications": items})

        assert (await batch(3, "first")).status_code == 202
        refused = await batch(3, "second")
        assert refused.headers["ratelimit"].startswith('"caller";r=1;')
        assert (await batch(1, "third")).status_code == 202
        never = await batch(7, "never")
        assert (never.status_code, never.json()["code"]) == (429, "rate_limited"), "nothing is left"
    async with limited(caller=FixedWindow(5, MINUTE_MS)) as (_, client):
        never = await batch(7, "never")
        assert (never.status_code, never.json()["code"]) == (413, "too_large"), "it would wait for ever"


async def test_a_caller_and_an_app_can_have_limits_of_their_own() -> None:
    bounds = {"caller": TWO, "callers": {(DEMO, "billing"): FixedWindow(3, MINUTE_MS)}, "apps": {DEMO: TWO}}
    async with limited(**bounds) as (_, client):
        assert await sent(client, 3) == [202, 202, 429], "the app's"
    async with limited(caller=TWO, callers={(DEMO, "billing"): None}) as (service, client):
        assert await sent(client, 4) == [202] * 4, "none at all"
        made = api_key.make(bytes(range(2, api_key.RANDOM_BYTES + 2)))
        await service.keys.add(ApiKey(made.prefix, made.secret_hash, DEMO, CallerId("shop"), service.clock.now()))
        async with service.client(made.text) as shop:
            assert await sent(shop, 3) == [202, 202, 429], "what the others have"


@shows("S3-68")
async def test_two_endpoints_have_different_limits() -> None:
    """Requirement S3-68: of each caller; what is in braces stands for any."""
    endpoints = [
        LimitedRoute("POST /v1/notifications", FixedWindow(1, MINUTE_MS)),
        LimitedRoute("GET /v1/notifications/{notification_id}", TWO),
    ]
    async with limited(endpoints=endpoints) as (service, client):
        assert await sent(client, 2) == [202, 429]
        ids = ("019c1234-5678-7abc-8def-0123456789ab", "019c1234-5678-7abc-8def-0123456789ac")
        found = [await client.get(f"/v1/notifications/{ids[n % 2]}") for n in range(3)]
        assert [each.status_code for each in found] == [404, 404, 429]
        assert found[2].headers["ratelimit-policy"] == '"endpoint";q=2;w=60'
        assert (await client.get("/v1/notifications")).status_code == 200
        async with service.client(service.others.text) as other:
            assert await sent(other, 1) == [202]


@shows("S3-66")
async def test_each_user_has_a_limit_and_none_is_refused_for_the_address_they_share() -> None:
    """Requirement S3-66: what a user writes counts for the user; a carrier's address has thousands of them."""
    async with limited(user=TWO, address=FixedWindow(1, MINUTE_MS)) as (_, client):

        async def write(user: str) -> int:
            body = {"type": "order", "title": "t", "message": "m"}
            answer = await client.post("/api/notifications", json=body, headers={"x-waypost-user": user})
            return answer.status_code

        first = [await write("ann") for _ in range(3)]
        assert first[2] == 429 and 429 not in first[:2]
        assert await write("bob") != 429
        reads = [(await client.get("/api/notifications", headers=BUSY)).status_code for _ in range(4)]
        assert 429 not in reads
        assert await sent(client, 3) == [202] * 3, "a backend on its own routes has neither limit"


@shows("S3-67")
async def test_what_nobody_vouches_for_has_a_limit_by_address() -> None:
    """Requirement S3-67: without a credential, or with a token that is not accepted; others go on from there."""
    async with limited(address=TWO, failures=TWO) as (service, client), service.client("an.expired.token") as phone:
        transport = httpx.ASGITransport(service.app)  # type: ignore[arg-type] # the same protocol, typed twice
        async with httpx.AsyncClient(transport=transport, base_url="http://waypost") as nobody:
            assert await sent(nobody, 1) + await sent(phone, 2) == [401, 401, 429]
            assert (await nobody.get("/v1/notifications")).headers["ratelimit-policy"] == '"address";q=2;w=60'
        async with service.client(service.others.text) as other:
            assert await sent(other, 1) == [202]
        assert await sent(client, 1) == [202]


@pytest.mark.parametrize("text", ["an.expired.token", "expired key", "revoked key"])
async def test_a_credential_that_ended_is_no_guess_and_shuts_out_no_neighbour(text: str) -> None:
    """The phones behind one address whose tokens have expired are no attack on the others."""
    async with limited(failures=TWO) as (service, client):
        if text.endswith("key"):
            made = api_key.make(bytes(range(4, api_key.RANDOM_BYTES + 4)))
            now = service.clock.now()
            ended = ApiKey(made.prefix, made.secret_hash, DEMO, CallerId("old"), now, expires_at=now)
            await service.keys.add(ended)
            if text == "revoked key":
                await service.keys.revoke(made.prefix, now)
            text = made.text
        async with service.client(text) as phone:
            assert await sent(phone, 5) == [401] * 5
        assert await sent(client, 1) == [202], "it was not verified before"


async def test_a_token_is_looked_at_from_an_address_where_keys_were_guessed() -> None:
    """Nobody guesses a signature: tokens of users who share the address go on."""
    async with limited(failures=TWO) as (service, _), service.client("wp_wrong") as guesser:
        assert await sent(guesser, 4) == [401, 401, 401, 429]
        async with service.client("a.new.token") as phone:
            assert await sent(phone, 1) == [401], "not valid here, but it was verified"


async def test_an_address_with_too_many_wrong_keys_is_refused_before_another_is_looked_at() -> None:
    async with limited(failures=TWO) as (service, client), service.client("wp_wrong") as guesser:
        assert await sent(client, 1) == [202]
        assert await sent(guesser, 4) == [401, 401, 401, 429], "the third is one too many"
        assert await sent(client, 1) == [200], "what was verified a moment ago goes on"
        async with service.client(service.others.text) as other:
            assert await sent(other, 1) == [429], "a right guess is not told from a wrong one"
            service.clock.advance(MINUTE_MS)
            assert await sent(other, 1) == [202]
        assert (Metric.LIMITED, {"limit": "failures", "app": ""}) in service.telemetry.counts


async def test_who_shows_no_credential_is_not_guessing() -> None:
    """Or a hundred requests without one would shut out everybody behind the same address."""
    async with limited(failures=TWO) as (service, client):
        transport = httpx.ASGITransport(service.app)  # type: ignore[arg-type] # the same protocol, typed twice
        async with httpx.AsyncClient(transport=transport, base_url="http://waypost") as nobody:
            assert await sent(nobody, 5) == [401] * 5
        assert await sent(client, 1) == [202]


async def test_what_was_good_within_the_window_of_failures_goes_on_from_a_barred_address() -> None:
    """It is verified anew all the same: one that was revoked is a wrong one."""
    async with (
        limited(failures=TWO) as (service, client),
        service.client("wp_wrong") as guesser,
        service.client(service.others.text) as other,
    ):
        assert await sent(client, 1) == await sent(other, 1) == [202]
        assert await sent(guesser, 4) == [401, 401, 401, 429]
        service.clock.advance(20 * SECOND_MS)
        assert await sent(client, 1) == [200]
        await service.keys.revoke(service.others.prefix, service.clock.now())
        assert await sent(other, 2) == [401, 429]
        service.clock.advance(30 * SECOND_MS)
        assert await sent(client, 1) == [200]


async def test_who_may_act_for_nobody_uses_up_no_users_limit() -> None:
    """And a user has one limit, however their name is written."""
    async with limited(user=TWO) as (service, client):
        made = api_key.make(bytes(range(3, api_key.RANDOM_BYTES + 3)))
        scopes = frozenset({Scope.READ})
        caller = CallerId("reports")
        await service.keys.add(ApiKey(made.prefix, made.secret_hash, DEMO, caller, service.clock.now(), scopes=scopes))
        body = {"type": "order", "title": "t", "message": "m"}

        async def written(by: httpx.AsyncClient, user: str) -> int:
            return (await by.post("/api/notifications", json=body, headers={"x-waypost-user": user})).status_code

        async with service.client(made.text) as reports:
            assert [await written(reports, "ann") for _ in range(4)] == [403] * 4
        assert 429 not in [await written(client, "ann"), await written(client, "%61nn")]
        assert await written(client, "a%6En") == 429
        assert [await written(client, user) for user in ("%ff", "x" * 500)] == [400, 400]


PROXIES = [ip_network("10.0.0.0/8"), ip_network("::1")]


@pytest.mark.parametrize(
    ("peer", "said", "address"),
    [
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["rubbish"], "unknown"),
        ("10.0.0.1", ["1.2.3.4, rubbish"], "unknown"),
        ("::1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("::ffff:10.0.0.1", ["[2001:db8::7]:80"], "2001:db8::/64"),
        ("::ffff:203.0.113.9", ["1.2.3.4"], "203.0.113.9"),
        ("", ["1.2.3.4"], "unknown"),
    ],
)
async def test_whose_request_it_is_only_trusted_proxies_say(peer: str, said: list[str], address: str) -> None:
    """The last hop that is no proxy of ours: what stands before it anybody may have written."""

    def headers(name: str) -> Iterable[str]:
        return said if name == "x-forwarded-for" else ["for=6.6.6.6"]

    service = Service()
    limits = EntrypointLimits(
        Bounds(trusted_proxies=PROXIES), MemoryLimiter(service.clock), service.clock, service.telemetry
    )
    assert limits.address_of(Visit("GET /", peer, headers)) == address


@pytest.mark.parametrize(
    ("said", "address"),
    [
        (["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60"),
        (['for=1.2.3.4, For="[2001:db8:cafe::17]:4711"'], "2001:db8:cafe::/64"),
        (["for=unknown"], "unknown"),
        (["proto=http"], "unknown"),
    ],
)
async def test_forwarded_is_read_in_its_place(said: list[str], address: str) -> None:
    """RFC 7239."""
    service = Service()
    bounds = Bounds(trusted_proxies=PROXIES, forwarded_header="forwarded")
    limits = EntrypointLimits(bounds, MemoryLimiter(service.clock), service.clock, service.telemetry)
    visit = Visit("GET /", "10.0.0.1", lambda name: said if name == "forwarded" else ["6.6.6.6"])
    assert limits.address_of(visit) == address


@pytest.mark.parametrize(
    ("forwarded", "origin"),
    [
        ([], "127.0.0.1"),
        (["203.0.113.9, 198.51.100.4"], "198.51.100.4"),
        (["203.0.113.9", "198.51.100.4", "10.1.2.3"], "198.51.100.4"),
        (["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2:3:4:5:6"),
        (["nobody"], "unknown"),
    ],
)
async def test_the_record_says_whence_an_order_came_as_the_limits_see_it(forwarded: list[str], origin: str) -> None:
    """The whole address, where the limits count a site of IPv6 as one."""
    proxies = [ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8")]
    async with limited(trusted_proxies=proxies) as (_, client):
        await client.delete("/v1/users/ann", headers=[("x-forwarded-for", hop) for hop in forwarded])
        (entry,) = (await client.get("/v1/audit")).json()["items"]
        assert entry["origin"] == origin


async def test_the_record_believes_no_proxy_that_is_not_trusted() -> None:
    async with limited() as (_, client):
        await client.delete("/v1/users/ann", headers={"x-forwarded-for": "203.0.113.9"})
        (entry,) = (await client.get("/v1/audit")).json()["items"]
        assert entry["origin"] == "127.0.0.1"

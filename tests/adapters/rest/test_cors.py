"""Web pages of another origin: those that are listed may call, and their scripts read the answers."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import DEFAULTS, served, shown
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = pytest.mark.asyncio
PAGE = "https://app.example.com"
LISTED = msgspec.structs.replace(DEFAULTS, cors_origins=(PAGE, "http://localhost:3000"))
ASKS = {"access-control-request-method": "PUT", "access-control-request-headers": "authorization"}


async def asked(client: httpx.AsyncClient, origin: str) -> httpx.Response:
    """What a browser asks before a call with a token; it brings none itself."""
    del client.headers["authorization"]
    return await client.options("/v1/devices/alice/phone", headers={"origin": origin, **ASKS})


@pytest.mark.parametrize("origin", [PAGE, "http://localhost:3000"])
async def test_a_page_that_is_listed_is_let_call(origin: str) -> None:
    """With the methods and fields of the API, and without cookies."""
    async with served(LISTED) as (_, client):
        answer = await asked(client, origin)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == origin
        assert "PUT" in answer.headers["access-control-allow-methods"]
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "https://app.example.com.evil.example", "http://app.example.com", "null", f"{PAGE}:444"],
)
async def test_any_other_page_is_not(origin: str) -> None:
    """By the whole origin; a cache is told that it matters."""
    async with served(LISTED) as (_, client):
        answer = await client.post("/v1/notifications", json=shown(), headers={"origin": origin})
        assert answer.status_code == 202
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["vary"] == "origin"
        assert (await asked(client, origin)).status_code in (401, 405)


async def test_a_script_reads_every_answer_also_a_refusal() -> None:
    """Which it could not tell from a broken network otherwise; nor the id of its request."""
    async with served(LISTED) as (_, client):
        for path, status in (("/v1/notifications", 200), ("/v1/nothing", 404), ("/health/live", 200)):
            answer = await client.get(path, headers={"origin": PAGE})
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
            assert "x-request-id" in answer.headers["access-control-expose-headers"]


async def test_nothing_is_said_where_nobody_is_listed() -> None:
    """As it is unless it is set."""
    async with served() as (_, client):
        answer = await client.get("/v1/notifications", headers={"origin": PAGE})
        assert not [name for name in answer.headers if name.startswith(("access-control", "vary"))]


@pytest.mark.parametrize("origin", ["*", "app.example.com", f"{PAGE}/", f"{PAGE}/path", "https://*.example.com", ""])
async def test_an_origin_is_given_in_full(origin: str) -> None:
    """As a browser sends it: no path, no pattern."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"cors_origins": [origin]}, RestSettings)

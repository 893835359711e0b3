"""REST beside callers who are slow, many, or never done: others are answered all along, the cost is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.adapters.rest.service import shown
from tests.adapters.rest.test_wire import Listening, answer, listening
from tests.hostile.crowds import crowd, weight_kib
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = pytest.mark.asyncio

KIB_A_CONNECTION = 24
SLACK_KIB = 20_000


@asynccontextmanager
async def lively(server: Listening) -> AsyncIterator[list[int]]:
    """Somebody who calls again and again until the block ends, each time on a new connection: how often in vain."""
    stop, failed = asyncio.Event(), [0]

    async def call() -> None:
        while not stop.is_set():
            async with asyncio.timeout(60), server.connected() as (reader, writer):
                writer.write(request(server))
                status, _, _ = await answer(reader)
                failed[0] += status not in (200, 202)

    calling = asyncio.create_task(call())
    try:
        yield failed
    finally:
        stop.set()
        await calling


def request(server: Listening) -> bytes:
    """A good one."""
    body = json.dumps(shown()).encode()
    head = server.head("/v1/notifications", "content-type: application/json", f"content-length: {len(body)}")
    return head + b"\r\n" + body


@pytest.mark.parametrize(
    ("count", "said"),
    [
        pytest.param(500, b"", id="silent"),
        pytest.param(500, b"POST /v1/notifications HTTP/1.1\r\nhost: ", id="half a head"),
        pytest.param(500, b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n", id="idle after a request"),
        pytest.param(10_000, b"", id="10,000 silent", marks=[pytest.mark.long, pytest.mark.timeout(600)]),
    ],
)
async def test_a_crowd_holds_up_nobody_and_is_closed(count: int, said: bytes) -> None:
    """By the time a head may take, or an idle connection is kept."""
    settings = RestSettings(
        head_timeout_s=2.0 if count < 10_000 else 30.0, keep_alive_s=1, connections_limit=count + 10
    )
    async with listening(settings) as server, lively(server) as failed:
        before = weight_kib()
        async with crowd(server.port, count, said) as held:
            await held.said("open")
            assert weight_kib() - before < count * KIB_A_CONNECTION + SLACK_KIB
            await held.said(f"closed {count}")
    assert failed == [0]


async def test_past_the_most_connections_the_idle_make_room() -> None:
    """Whoever has been idle for the longest goes first; a caller with a request in hand stays, new ones are let in."""
    async with listening(RestSettings(connections_limit=20)) as server, server.connected() as (reader, writer):
        good = request(server)
        writer.write(good[:-1])
        async with crowd(server.port, 200) as held:
            await held.said("open")
            await server.until_at_most(20)
            for _ in range(40):
                async with server.connected() as (other, writing):
                    writing.write(good)
                    assert (await answer(other))[0] in (200, 202)
        writer.write(good[-1:])
        assert (await answer(reader))[0] == 200


CHUNKED = ("content-type: application/json", "transfer-encoding: chunked")


async def test_fields_behind_a_body_are_never_heard() -> None:
    """They could say what a proxy would not let through: a key that is heard would make it another notification."""
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        body = json.dumps(shown()).encode()
        chunk = b"\r\n%x\r\n%s\r\n0\r\nidempotency-key: mine\r\n\r\n" % (len(body), body)
        writer.write(server.head("/v1/notifications", *CHUNKED) + chunk)
        first = await answer(reader)
        writer.write(request(server))
        second = await answer(reader)
        assert (first[0], second[0], first[2]["id"]) == (202, 200, second[2]["id"])


@pytest.mark.parametrize("endless", [b"y" * 1_000, b"x-a: b\r\n" * 100], ids=["one field", "many fields"])
async def test_fields_behind_a_body_are_bounded(endless: bytes) -> None:
    """The parser keeps a field until it is whole, and would keep all of them."""
    async with listening(RestSettings()) as server, server.connected() as (_, writer):
        writer.write(server.head("/v1/notifications", *CHUNKED) + b"\r\n2\r\n{}\r\n0\r\nx-a: b")
        before = weight_kib()
        with contextlib.suppress(ConnectionError):
            for _ in range(50_000):
                writer.write(endless)
                await writer.drain()
        await server.until_at_most(0)
        assert weight_kib() - before < SLACK_KIB


async def test_a_flood_of_requests_on_one_connection_is_cut_off() -> None:
    """Nobody waits for so many answers."""
    async with listening(RestSettings()) as server:
        async with server.connected() as (_, writer):
            writer.write(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n" * 5_000)
            await server.until_at_most(0)
        async with server.connected() as (reader, writer):
            writer.write(request(server))
            assert (await answer(reader))[0] == 202


async def test_a_client_that_takes_no_answers_is_cut_off() -> None:
    """What is written for it is not kept for ever, nor is the next one made."""
    async with listening(RestSettings(keep_alive_s=1)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1_024)
        try:
            writer.write(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 90)
            await writer.drain()
            await server.until_at_most(0)
            assert not reader.at_eof()
        finally:
            writer.close()


async def test_dripping_bodies_hold_up_nobody() -> None:
    """Each ends at the time that a body may take."""
    settings = RestSettings(body_timeout_s=1.0, linger_s=0.01)
    async with listening(settings) as server, lively(server) as failed:
        part = server.head("/v1/notifications", "content-type: application/json", "content-length: 100") + b'\r\n{"us'
        async with crowd(server.port, 200, part) as held:
            await held.said("open")
            await held.said("closed 200")
    assert failed == [0]

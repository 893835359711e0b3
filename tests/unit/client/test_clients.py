"""What the clients promise whatever the API does; the API itself answers them in the journeys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain, repeat

import pytest

from waypost.client import ApiError, AsyncClient, Client, ConnectionLost, Submission, calls

NOBODY = "http://127.0.0.1:9"
"""The discard port; nothing listens there."""


@asynccontextmanager
async def answering(*raws: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that reads request heads and answers *raws* in turn, the last for ever; what it read."""
    heads: list[bytes] = []
    turns = chain(raws, repeat(raws[-1]))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(next(turns))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


def http(status: str, body: bytes) -> bytes:
    """One whole answer."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


async def both(url: str) -> list[object]:
    """What each client makes of ``GET /v1/devices/u``."""
    async with AsyncClient(url, "key", timeout_s=5.0, retry_s=0) as client:
        waiting = asyncio.to_thread(Client(url, "key", timeout_s=5.0, retry_s=0).devices, "u")
        return list(await asyncio.gather(client.devices("u"), waiting, return_exceptions=True))


@pytest.mark.asyncio
async def test_nobody_there_is_a_lost_connection() -> None:
    assert [type(each) for each in await both(NOBODY)] == [ConnectionLost, ConnectionLost]


@pytest.mark.asyncio
@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b"nonsense\r\n\r\n"])
async def test_a_broken_answer_is_a_lost_connection(raw: bytes) -> None:
    async with answering(raw) as (url, _):
        assert [type(each) for each in await both(url)] == [ConnectionLost, ConnectionLost]


@pytest.mark.asyncio
async def test_a_problem_keeps_its_code_faults_and_when_to_come_back() -> None:
    problem = {"code": "backlog_full", "detail": "the low backlog is full", "retry_after": 5}
    problem["faults"] = [{"path": "title", "why": "too long"}]
    async with answering(http("429 Too Many Requests", json.dumps(problem).encode())) as (url, heads):
        for error in await both(url):
            assert isinstance(error, ApiError)
            assert (error.status, error.code, error.retry_after_s) == (429, "backlog_full", 5)
            assert error.faults[0]["path"] == "title"
    assert all(b"Authorization: Bearer key" in head for head in heads)


@pytest.mark.asyncio
async def test_an_error_that_is_no_problem_is_an_api_error_all_the_same() -> None:
    """Such as a proxy's page."""
    async with answering(http("502 Bad Gateway", b"<html>")) as (url, _):
        errors = await both(url)
    assert [(error.status, error.code) for error in errors if isinstance(error, ApiError)] == [(502, "internal")] * 2


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://"])
def test_a_url_of_another_kind_is_refused_at_once(url: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(ValueError, match="begins with http"):
            client(url, None)


@pytest.mark.asyncio
@pytest.mark.parametrize("body", [b"<html>", b"[]", b'"hello"'])
async def test_an_answer_that_is_not_waypost_s_is_an_api_error_that_says_so(body: bytes) -> None:
    """Such as a web server at a mistyped port."""
    async with answering(http("200 OK", body)) as (url, _):
        for error in await both(url):
            assert isinstance(error, ApiError)
            assert "not as Waypost answers" in error.detail


def test_a_service_that_is_not_ready_says_which_check_fails() -> None:
    health = {"ready": False, "checks": {"store": "storage_full", "worker 0": "ok"}}
    with pytest.raises(ApiError, match=r"not_ready: store: storage_full$"):
        calls.read(503, json.dumps(health).encode())


@pytest.mark.parametrize("key", ["wp_abc\n", "wp_abc\r", "wp abc", "wp_…"])
def test_a_key_that_cannot_be_one_is_refused_at_once_and_not_quoted(key: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(ValueError, match="characters that no key has") as refused:
            client("http://127.0.0.1:1", key)
        assert key not in str(refused.value)


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_port_that_is_none_is_refused_at_once(client: type[Client | AsyncClient]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        client("http://127.0.0.1:99999", None)


BUSY = http("503 Service Unavailable", b'{"code": "backlog_full", "detail": "full", "retry_after": 0}')
DONE = http("202 Accepted", b'{"id": "1"}')
KEYED: Submission = {"user_id": "u", "title": "Hi", "idempotency_key": "k"}


@pytest.mark.asyncio
@pytest.mark.parametrize("trouble", [b"", BUSY])
async def test_what_has_a_key_is_repeated_until_it_is_taken(trouble: bytes) -> None:
    async with answering(trouble, trouble, DONE) as (url, heads):
        assert dict(await asyncio.to_thread(Client(url, "key").send, KEYED)) == {"id": "1"}
    assert len(heads) == 3
    async with answering(trouble, DONE) as (url, heads), AsyncClient(url, "key") as client:
        assert dict(await client.send_batch([KEYED, KEYED])) == {"id": "1"}
    assert len(heads) == 2


@pytest.mark.asyncio
async def test_what_has_no_key_gets_one_that_its_attempts_share() -> None:
    """Two calls are two things, and each may be tried again."""
    keyless: Submission = {"user_id": "u", "title": "Hi"}
    async with answering(b"", DONE) as (url, heads):
        assert dict(await asyncio.to_thread(Client(url, "key").send, keyless)) == {"id": "1"}
    assert len(heads) == 2
    keys = [json.loads(calls.send(keyless).body)["idempotency_key"] for _ in range(2)]  # type: ignore[arg-type] # bytes
    assert len(set(keys)) == 2
    assert "idempotency_key" not in keyless, "the caller's own is left as it was"
    (first, second) = json.loads(calls.send_batch([KEYED, keyless]).body)["notifications"]  # type: ignore[arg-type] # bytes
    assert first == KEYED
    assert second["idempotency_key"]


@pytest.mark.asyncio
async def test_what_might_come_twice_or_can_never_be_is_not_repeated() -> None:
    async with answering(b"", DONE) as (url, _):
        with pytest.raises(ConnectionLost):
            await asyncio.to_thread(Client(url, "key").replay, "1")
    async with answering(http("400 Bad Request", b'{"code": "invalid_request"}'), DONE) as (url, _):
        with pytest.raises(ApiError):
            await asyncio.to_thread(Client(url, "key").send, KEYED)
    async with answering(BUSY, DONE) as (url, _):
        with pytest.raises(ApiError):
            await asyncio.to_thread(Client(url, "key", retry_s=0).send, KEYED)


@pytest.mark.asyncio
async def test_each_goes_over_all_pages() -> None:
    pages = [{"notifications": [{"id": "1"}, {"id": "2"}], "next": "c d"}, {"notifications": [{"id": "3"}]}]
    raws = [http("200 OK", json.dumps(page).encode()) for page in pages]
    async with answering(*raws) as (url, heads):
        client = Client(url, "key")
        found = await asyncio.to_thread(lambda: list(client.each(client.history, user_id="ann")))
    assert [each["id"] for each in found] == ["1", "2", "3"]
    assert b"user_id=ann&cursor=c+d" in heads[1]
    async with answering(*raws) as (url, heads), AsyncClient(url, "key") as waypost:
        assert [each["id"] async for each in waypost.each(waypost.history)] == ["1", "2", "3"]


def test_ids_travel_as_one_part_of_the_path() -> None:
    assert calls.devices("a/b c?").path == "/v1/devices/a%2Fb%20c%3F"
    assert calls.dead(code="X Y", user_id=None, limit=3).path == "/v1/dead?code=X+Y&limit=3"

"""The link to a primary: replies in order, deadlines, bounds, and a way back from every loss."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from scripts.services.redis import Redis
from tests.adapters.redis.noted import Noted
from waypost.stores.redis import connection
from waypost.stores.redis.commands import RedisAway, Script
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Event, Silent

pytestmark = pytest.mark.asyncio

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def linked(url: str, timeout_s: float = 5, sentinels: tuple[str, ...] = ()) -> AsyncIterator[SinglePrimary]:
    """A link with settings of its own."""
    wire = SinglePrimary(RedisSettings(url=url, timeout_s=timeout_s, sentinels=sentinels), Silent())
    await wire.start()
    try:
        yield wire
    finally:
        await wire.stop()


@contextlib.asynccontextmanager
async def pretender(answer: Answer) -> AsyncIterator[str]:
    """A server that is no Redis; its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]  # there is one here
        try:
            with contextlib.suppress(ConnectionError):
                await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    server.close()


def said(server: Redis, line: str) -> str:
    """The answer to a command on a connection of its own."""
    return server.ask(server.node(1), line)


async def eventually(wire: SinglePrimary) -> None:
    """Return when the link answers again."""
    while True:
        with contextlib.suppress(RedisAway):
            await wire.execute([("PING",)])
            return
        await asyncio.sleep(0.01)  # nothing tells when the server is there again


async def test_replies_come_in_the_order_of_their_commands(wire: SinglePrimary) -> None:
    replies = await wire.execute([("SET", "a", b"\0\r\n"), ("GET", "a"), ("INCRBY", "n", 7), ("GET", "none")])
    assert replies == [b"OK", b"\0\r\n", 7, None]


async def test_no_commands_wait_for_no_replies(wire: SinglePrimary) -> None:
    """There is nothing that the server could answer."""
    assert await wire.execute([]) == []


async def test_many_callers_share_one_connection(wire: SinglePrimary, server: Redis) -> None:
    answers = await asyncio.gather(*(wire.execute([("ECHO", f"{n}")] * 3) for n in range(200)))
    assert answers == [[b"%d" % n] * 3 for n in range(200)]
    assert said(server, "CLIENT LIST").count(" fd=") == 2, "the question itself is the other"


async def test_an_error_reply_is_told_without_what_was_sent_and_the_rest_was_done(wire: SinglePrimary) -> None:
    with pytest.raises(RedisAway) as told:
        await wire.execute([("SET", "a", "1"), ("LPUSH", "a", "secret"), ("NO", "secret"), ("SET", "b", "2")])
    assert str(told.value) == "Redis answers WRONGTYPE"
    assert await wire.execute([("GET", "b")]) == [b"2"]


async def test_a_script_is_told_to_a_server_that_does_not_know_it(wire: SinglePrimary) -> None:
    add = Script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert await wire.execute([("PING",), add(["n"], 2), add(["n"], 3)]) == [b"PONG", 2, 5]
    await wire.execute([("SCRIPT", "FLUSH")])
    assert await wire.execute([add(["n"], 4)]) == [9]


async def test_name_password_and_database_are_said_first(server: Redis) -> None:
    said(server, "ACL SETUSER way on >p@ss/w ~* +@all")
    place = f"127.0.0.1:{server.ports[0]}"
    async with linked(f"redis://way:p%40ss%2Fw@{place}/3") as wire:
        (shown,) = await wire.execute([("CLIENT", "INFO")])
        assert b" db=3 " in shown and b" user=way " in shown
    async with linked(f"redis://way:wrong@{place}") as wire:
        with pytest.raises(RedisAway, match="WRONGPASS"):
            await wire.execute([("PING",)])


async def test_a_killed_server_is_told_once_and_found_again(wire: SinglePrimary, server: Redis, noted: Noted) -> None:
    await wire.execute([("PING",)])
    server.kill()
    await noted.saw(Event.REDIS_AWAY)
    with pytest.raises(RedisAway):
        await wire.execute([("PING",)])
    server.start()
    await noted.saw(Event.REDIS_BACK)
    assert await wire.execute([("PING",)]) == [b"PONG"]
    assert noted.events == [Event.REDIS_AWAY, Event.REDIS_BACK]


async def test_a_connection_that_is_cut_is_made_anew_before_anybody_is_refused(
    wire: SinglePrimary, server: Redis, noted: Noted
) -> None:
    for _ in range(3):
        said(server, "CLIENT KILL TYPE normal SKIPME yes")
        with contextlib.suppress(RedisAway):  # it may have been on its way
            await wire.execute([("PING",)])
        await eventually(wire)
    assert Event.REDIS_AWAY not in noted.events


async def test_a_frozen_server_fails_what_waits_when_its_time_is_over(server: Redis) -> None:
    async with linked(server.url, timeout_s=0.2) as wire:
        server.freeze()
        waiting = [asyncio.create_task(wire.execute([("PING",)])) for _ in range(10)]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(answer, RedisAway) for answer in answers), answers
        server.thaw()
        await eventually(wire)


async def test_a_redis_that_is_away_does_not_fail_the_start_and_is_found_later(server: Redis) -> None:
    server.stop()
    async with linked(server.url) as wire:
        with pytest.raises(RedisAway):
            await wire.execute([("PING",)])
        server.start()
        await eventually(wire)


async def test_what_waits_is_bounded(wire: SinglePrimary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PENDING_LIMIT", 10)
    first = asyncio.create_task(wire.execute([("PING",)] * 10))
    await asyncio.sleep(0)
    with pytest.raises(RedisAway, match="too much"):
        await wire.execute([("PING",)])
    assert len(await first) == 10
    assert await wire.execute([("PING",)]) == [b"PONG"]


async def test_what_is_no_redis_is_left() -> None:
    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    async with pretender(http) as url, linked(url) as wire:
        with pytest.raises(RedisAway, match="no Redis"):
            await wire.execute([("PING",)])


async def test_what_never_answers_is_left_in_time() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with pretender(silence) as url, linked(url, timeout_s=0.1) as wire:
        with pytest.raises(RedisAway):
            await wire.execute([("PING",)])


async def test_after_the_stop_nothing_waits(wire: SinglePrimary, server: Redis) -> None:
    server.freeze()
    slow = asyncio.create_task(wire.execute([("PING",)]))
    await asyncio.sleep(0)
    await wire.stop()
    with pytest.raises(RedisAway):
        await slow
    with pytest.raises(RedisAway):
        await wire.execute([("PING",)])
    await wire.stop()

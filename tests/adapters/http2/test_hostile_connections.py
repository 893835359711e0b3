"""The pool against connections that fail, fall silent, or are none: over TLS on loopback."""

import asyncio
import ssl
from typing import Any

import pytest
from hyperframe.frame import PingFrame

from tests.adapters.http2.client import Tls, client
from tests.adapters.http2.scripted import Served, ordinary, scripted
from tests.strict_tls import refusing
from tests.unit.http2 import peer
from waypost.http2 import (
    Answer,
    ConnectFailed,
    ConnectionClosed,
    ConnectionOpened,
    Unknown,
    Unsent,
)

OK = Answer(200, (), b"ok")


@pytest.mark.asyncio
async def test_a_silent_connection_is_asked_and_left(tls: Tls) -> None:
    """No byte although a request waits: PING; no answer to it: the next one goes over another, the first is kept."""
    back = asyncio.Event()

    async def falls_silent(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        await served.until(PingFrame)
        await back.wait()
        served.say(peer.answer(1))
        await served.read_to_end()

    settings: dict[str, Any] = {"ping_after_silence_s": 0.1, "ping_timeout_s": 0.1}
    async with scripted(tls.server("h2"), falls_silent, ordinary) as port, client(port, tls, **settings) as one:
        kept = one.ask()
        await one.saw(ConnectionOpened, 2)
        assert await one.ask() == OK and not kept.done()
        back.set()
        assert await kept == OK
        assert "PING not answered" in (await one.saw(ConnectionClosed)).reason


@pytest.mark.asyncio
async def test_a_black_hole_is_given_up_though_no_request_waits_for_long(tls: Tls) -> None:
    """Each deadline is shorter than the silence that is borne: after two in a row the connection is left."""

    async def swallows_all(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        served.say(peer.answer(await served.request()))
        await served.read_to_end()

    async with scripted(tls.server("h2"), swallows_all, ordinary) as port, client(port, tls) as one:
        assert await one.ask() == OK
        for _ in range(2):
            assert isinstance(await one.ask(deadline_s=0.1), Unknown)
        assert await one.ask() == OK
        assert "not answered before their deadlines" in (await one.saw(ConnectionClosed)).reason


@pytest.mark.asyncio
async def test_a_connection_that_answers_pings_is_kept(tls: Tls) -> None:
    """Slow is not dead."""

    async def is_slow(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        stream_id = await served.request()
        for _ in range(3):
            asked = await served.until(PingFrame)
            served.say(peer.raw(6, 1, 0, asked.opaque_data))
        served.say(peer.answer(stream_id))
        await served.read_to_end()

    settings: dict[str, Any] = {"ping_after_silence_s": 0.05, "ping_timeout_s": 5.0}
    async with scripted(tls.server("h2"), is_slow) as port, client(port, tls, **settings) as one:
        assert await one.ask() == OK and one.pool.stats.opened_total == 1


@pytest.mark.asyncio
async def test_a_connection_cut_inside_an_answer(tls: Tls) -> None:
    """What was written is Unknown, what still waited goes over the next connection."""

    async def cuts(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=1)
        stream_id = await served.request()
        served.say(peer.head(stream_id), peer.data(stream_id, b"half"))
        await served.writer.drain()
        served.writer.close()

    async with scripted(tls.server("h2"), cuts, ordinary) as port, client(port, tls) as one:
        written, waiting = one.ask(), one.ask()
        assert isinstance(await written, Unknown) and await waiting == OK


@pytest.mark.asyncio
@pytest.mark.parametrize("protocols", [(), ("http/1.1",)], ids=["no ALPN", "HTTP/1.1 alone"])
async def test_a_server_without_http2_is_named(tls: Tls, protocols: tuple[str, ...]) -> None:
    """Unsent with a reason that an operator understands."""
    async with scripted(tls.server(*protocols), Served.read_to_end) as port, client(port, tls) as one:
        result = await one.ask()
        assert isinstance(result, Unsent)
        assert "does not speak HTTP/2: ALPN agreed on nothing" in result.reason or "NO_APPLICATION" in result.reason
        assert (await one.saw(ConnectFailed)).reason == result.reason


@pytest.mark.asyncio
async def test_a_certificate_that_is_not_trusted_is_named(tls: Tls) -> None:
    """The name does not match: Unsent, and the reason says certificate."""
    async with scripted(tls.server("h2"), ordinary) as port, client(port, tls, server_name="elsewhere.test") as one:
        result = await one.ask()
        assert isinstance(result, Unsent) and "certificate" in result.reason.lower()


@pytest.mark.asyncio
async def test_a_server_that_is_away_comes_back(tls: Tls) -> None:
    """Nobody listens: Unsent with the reason; when it listens again the pool finds it by itself."""
    async with scripted(tls.server("h2"), ordinary) as port:
        pass
    async with client(port, tls) as one:
        result = await one.ask()
        assert isinstance(result, Unsent) and "cannot connect" in result.reason
        assert (await one.saw(ConnectFailed, 3)).next_attempt_s == pytest.approx(0.04)
        async with scripted(tls.server("h2"), ordinary, port=port):
            await one.saw(ConnectionOpened)
            assert await one.ask() == OK


@pytest.mark.asyncio
async def test_a_clear_text_server_that_is_not_http2(tls: Tls) -> None:
    """With prior knowledge there is no ALPN; the first bytes tell."""

    async def speaks_http1(served: Served) -> None:
        await served.reader.readuntil(b"hello")
        served.say(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        await served.reader.read()

    async with scripted(None, speaks_http1) as port, client(port, None) as one:
        await one.saw(ConnectionOpened)
        result = await one.ask(deadline_s=0.5, answer_within_s=20.0)
        assert isinstance(result, Unsent | Unknown) and "not HTTP/2" in result.reason


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_that_is_refused_is_told_by_its_alert(tls: Tls, version: ssl.TLSVersion) -> None:
    """In TLS 1.3 after the client's part of the handshake: what was written by then was not taken, so it is Unsent.

    What is on the wire at the deadline is waited for: the alert ends it, however late the machine lets it come.
    """
    strict = tls.server("h2")
    strict.verify_mode = ssl.CERT_REQUIRED
    strict.load_verify_locations(tls.cert_file)
    strict.maximum_version = version
    with refusing(strict) as port:
        async with client(port, tls) as one:
            result = await one.ask(deadline_s=0.5, answer_within_s=20.0)
            assert isinstance(result, Unsent)
            told: ConnectFailed | ConnectionClosed
            if version is ssl.TLSVersion.TLSv1_3:
                told = await one.saw(ConnectionClosed)
                assert told.alert == "certificate_required"
            else:
                told = await one.saw(ConnectFailed)
                assert told.alert == "handshake_failure"

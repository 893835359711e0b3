"""Key sets: how they are rotated, what is not taken from them, and what is believed while their source is away."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.adapters.rest.issuers import ec_key, jwk, key_set, rsa_key
from tests.adapters.rest.service import Noticed
from tests.contract.clock import StoppedClock
from waypost.adapters.jwt.fetching import LIMIT_BYTES, from_file, over_http
from waypost.adapters.jwt.key_set import parsed
from waypost.adapters.jwt.key_source import BELIEVED_S, PAUSE_S, FetchedKeys
from waypost.adapters.jwt.settings import Algorithm
from waypost.bench.kernel import certificate
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.telemetry import Event

RS256, ES256, ES384 = Algorithm.RS256, Algorithm.ES256, Algorithm.ES384
SECOND = 1_000
GOOD = jwk(rsa_key(), "a")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ([GOOD], {("a", RS256), (None, RS256)}),
        ([GOOD, jwk(rsa_key(n=1), "b")], {("a", RS256), ("b", RS256)}),
        ([GOOD, jwk(ec_key(), "a")], {("a", RS256), (None, RS256), ("a", ES256), (None, ES256)}),
        ([jwk(rsa_key(), None)], {(None, RS256)}),
        ([GOOD | {"use": "enc"}], set()),
        ([GOOD | {"key_ops": ["encrypt"]}], set()),
        ([GOOD | {"alg": "RS512"}], set()),
        ([GOOD | {"alg": "HS256"}], set()),
        ([GOOD | {"n": "!"}], set()),
        ([GOOD | {"x5u": "http://evil.example", "d": "AQAB"}], {("a", RS256), (None, RS256)}),
        ([jwk(rsa_key(1024), "short")], set()),
        ([jwk(ec_key(), "e") | {"crv": "P-384"}], set()),
        ([jwk(ec_key(), "e") | {"x": "AAAA"}], set()),
        ([{"kty": "oct", "kid": "a", "k": "c2VjcmV0" * 8}], set()),
        ([{"kty": "a new kind", "kid": "n"}, GOOD], {("a", RS256), (None, RS256)}),
        ([], set()),
    ],
)
def test_which_keys_are_taken_from_a_set(keys: list[dict[str, Any]], found: set[tuple[str | None, Algorithm]]) -> None:
    """Each verifies one algorithm; a secret in a public set, a short key and one for another use verify none."""
    assert parsed(key_set(*keys), (RS256, ES256, ES384)).keys() == found


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"keys": 1}',
        b'{"keys": [1]}',
        b'{"keys": [' + b"[" * 10_000,
        b'{"keys": [{"kty": "RSA", "kid": "\xff"}]}',
        key_set(GOOD, jwk(rsa_key(n=1), "a")),
        key_set(jwk(rsa_key(), None), jwk(rsa_key(n=1), None)),
        key_set(*(jwk(rsa_key(), f"{n}") for n in range(65))),
    ],
)
def test_what_is_no_set_or_names_two_keys_alike_is_refused_whole(text: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        parsed(text, (RS256,))


class Source:
    """Answers what a test says, and counts."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = key_set(GOOD)
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.was_asked = asyncio.Event()
        self.clock = StoppedClock()
        self.noticed = Noticed()
        self.keys = FetchedKeys("demo/login", self.fetch, (RS256,), 300.0, self.clock, self.noticed)

    async def fetch(self) -> bytes:
        """The answer, once it may be given."""
        self.asked += 1
        self.was_asked.set()
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def knows(self, kid: str) -> bool:
        """Whether a token that names this key finds it."""
        return await self.keys.find(kid, RS256) is not None

    def events(self) -> list[Event]:
        """What an operator was told."""
        return [event for event, _ in self.noticed.events]


@pytest.mark.asyncio
async def test_a_new_key_is_found_when_a_token_names_it() -> None:
    source = Source()
    assert await source.knows("a")
    source.answer = key_set(GOOD, jwk(rsa_key(n=1), "b"))
    source.clock.advance(int(PAUSE_S) * SECOND)
    assert await source.knows("b")
    assert await source.knows("a")
    assert source.asked == 2


@pytest.mark.asyncio
async def test_tokens_with_made_up_ids_ask_no_more_than_once_in_a_while() -> None:
    source = Source()
    for n in range(100):
        assert not await source.knows(f"made up {n}")
    assert source.asked == 1
    assert await source.knows("a")


@pytest.mark.asyncio
async def test_many_at_once_wait_for_one_answer() -> None:
    source = Source()
    source.may_answer.clear()
    waiting = [asyncio.create_task(source.knows("a")) for _ in range(50)]
    await source.was_asked.wait()
    waiting[0].cancel()
    source.may_answer.set()
    assert await asyncio.gather(*waiting[1:]) == [True] * 49
    assert source.asked == 1


@pytest.mark.asyncio
async def test_a_withdrawn_key_is_believed_until_the_set_was_asked_for_again() -> None:
    """The answer to a token is not held up by that question."""
    source = Source()
    assert await source.knows("a")
    source.answer = key_set(jwk(rsa_key(n=1), "b"))
    source.clock.advance(299 * SECOND)
    assert await source.knows("a")
    assert source.asked == 1
    source.clock.advance(SECOND)
    assert await source.knows("a")
    assert await source.knows("b")
    assert not await source.knows("a")
    assert source.asked == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", [OSError("answered 500"), b"<html>", key_set(GOOD, jwk(rsa_key(n=1), "a"))])
async def test_the_last_set_is_believed_for_a_day_while_there_is_no_other(answer: bytes | Exception) -> None:
    """Whoever can put an outage or nonsense in its place takes nothing away and adds nothing; it is told once."""
    source = Source()
    assert await source.knows("a")
    source.answer = answer
    source.clock.advance(int(BELIEVED_S - 1) * SECOND)
    assert not await source.knows("unknown")
    assert await source.knows("a")
    source.clock.advance(int(PAUSE_S) * SECOND)
    with pytest.raises(Unavailable) as away:
        await source.knows("a")
    assert away.value.code is ErrorCode.ISSUER_AWAY
    assert source.events() == [Event.TOKEN_KEYS_AWAY]
    source.answer = key_set(GOOD)
    source.clock.advance(int(PAUSE_S) * SECOND)
    assert await source.knows("a")
    assert source.events() == [Event.TOKEN_KEYS_AWAY, Event.TOKEN_KEYS_BACK]


@pytest.mark.asyncio
async def test_without_any_set_a_token_is_503_and_not_401() -> None:
    source = Source()
    source.answer = OSError("answered 500")
    with pytest.raises(Unavailable):
        await source.knows("a")


@pytest.mark.asyncio
async def test_a_question_that_is_open_ends_with_the_process() -> None:
    source = Source()
    source.may_answer.clear()
    await source.keys.start()
    await source.was_asked.wait()
    await source.keys.stop()
    assert not source.events()


@asynccontextmanager
async def served(answer: Callable[[web.Request], Any], tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A web server of this answer; its origin."""

    async def handle(request: web.Request) -> web.StreamResponse:
        answered: web.StreamResponse = answer(request)
        return answered

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"{'https' if tls else 'http'}://localhost:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda _: web.Response(status=302, headers={"location": "/elsewhere"}), "answered 302"),
        (lambda _: web.Response(status=500), "answered 500"),
        (lambda _: web.Response(body=b" " * (LIMIT_BYTES + 1)), "larger than"),
    ],
)
async def test_what_is_no_plain_200_is_no_key_set(answer: Callable[[web.Request], Any], why: str) -> None:
    """A redirect would name another place than the operator did."""
    asked: list[str] = []

    def noting(request: web.Request) -> Any:
        asked.append(request.path)
        return answer(request)

    async with served(noting) as origin:
        with pytest.raises(OSError, match=why):
            await over_http(f"{origin}/keys", None)
    assert asked == ["/keys"]


@pytest.mark.asyncio
async def test_a_compressed_answer_is_not_unpacked() -> None:
    """A small answer stays small."""

    def compressed(_request: web.Request) -> web.Response:
        return web.Response(body=b"\x1f\x8b", headers={"content-encoding": "gzip"})

    async with served(compressed) as origin:
        assert await over_http(f"{origin}/keys", None) == b"\x1f\x8b"


@pytest.mark.asyncio
async def test_an_unknown_authority_is_not_believed(tmp_path: Path) -> None:
    """Who stands between serves no keys with a certificate of their own."""
    ca_file, key_file = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca_file, key_file)
    async with served(lambda _: web.Response(body=key_set(GOOD)), tls) as origin:
        assert json.loads(await over_http(f"{origin}/keys", str(ca_file)))["keys"] == [GOOD]
        with pytest.raises(OSError, match="cannot be reached"):
            await over_http(f"{origin}/keys", None)


@pytest.mark.asyncio
async def test_nobody_there_is_an_os_error_in_our_words() -> None:
    with pytest.raises(OSError, match="cannot be reached"):
        await over_http("http://127.0.0.1:1/keys", None)


@pytest.mark.asyncio
async def test_a_file_is_read_within_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(key_set(GOOD))
    assert await from_file(str(file)) == key_set(GOOD)
    file.write_bytes(b" " * (LIMIT_BYTES + 1))
    with pytest.raises(OSError, match="larger than"):
        await from_file(str(file))

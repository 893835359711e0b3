"""The ways to the providers: names, connections, TLS and HTTP/2 of each server that the configuration names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from waypost.bootstrap.doctor.clock import beside
from waypost.bootstrap.doctor.findings import Finding, ok, problem, skipped
from waypost.bootstrap.senders import sections_of
from waypost.channels.push.origin import authority_of, origin_of, read_proxy, trust
from waypost.config import Config
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.http2 import (
    Answer,
    DialError,
    NotHttp2,
    Origin,
    Pool,
    PoolSettings,
    Result,
    Unknown,
    Unsent,
    dial,
    encode_headers,
)
from waypost.ports.plugin import Gateway

PROVIDERS: Final = "providers"
TIMEOUT_S: Final = 5.0
_AT_ONCE: Final = 16
_PORTS: Final = {"https": 443, "http": 80, "smtp": 25}
_DO: Final = "let this machine's firewall, proxy and resolver allow it, or mend `endpoint`, `proxy` or `ca_file`"


class Reached(Struct, frozen=True):
    """A server that answered; *date* is its clock, where it says that."""

    took_s: float
    date: str | None = None


def gateways_of(config: Config) -> dict[Gateway, list[CredentialId]]:
    """Name each server once, with the credentials that are used there."""
    found: dict[Gateway, list[CredentialId]] = {}
    for credential, (plugin, section) in sections_of(config).items():
        for gateway in plugin.gateways(section):
            found.setdefault(gateway, []).append(credential)
    return found


async def look_at_providers(config: Config, *, offline: bool) -> list[Finding]:
    """Connect to each server, and compare its clock with ours; nothing is sent to anybody's device."""
    gateways = gateways_of(config)
    if offline:
        return [skipped(PROVIDERS, _place(each), "--offline") for each in gateways]
    turns = asyncio.Semaphore(_AT_ONCE)

    async def look(gateway: Gateway, used_by: list[CredentialId]) -> list[Finding]:
        async with turns:
            return await _look(gateway, used_by)

    return [finding for found in await asyncio.gather(*map(look, gateways, gateways.values())) for finding in found]


async def _look(gateway: Gateway, used_by: list[CredentialId]) -> list[Finding]:
    place, who = _place(gateway), _named(used_by)
    try:
        reached = await _reach(used_by[0].section, gateway)
    except (DialError, ConfigurationError) as why:
        return [problem(PROVIDERS, place, f"{why} (for {who})", _DO)]
    through = "" if gateway.proxy is None else " through the proxy"
    return [
        ok(PROVIDERS, place, f"answers{through} in {reached.took_s * 1_000:.0f} ms, for {who}"),
        *_clock(place, reached),
    ]


async def _reach(section: str, gateway: Gateway) -> Reached:
    """Connect and, over HTTP/2, ask for nothing; DialError says why that does not work."""
    began = time.monotonic()
    origin = _origin(section, gateway)
    if gateway.http2:
        date = await _asked(origin)
        return Reached(time.monotonic() - began, date)
    with suppress(NotHttp2):  # it is there, and its certificate is good: it speaks something else, as it should
        (await dial(origin, _Hearing, TIMEOUT_S)).transport.abort()
    return Reached(time.monotonic() - began)


def _origin(section: str, gateway: Gateway) -> Origin:
    if gateway.http2:
        return origin_of(section, gateway.url, gateway.ca_file, gateway.proxy)
    parts = urlsplit(gateway.url)
    tls = trust(section, gateway.ca_file, "http/1.1") if parts.scheme == "https" else None
    port = parts.port or _PORTS[parts.scheme]
    return Origin(parts.hostname or "", port, tls, proxy=read_proxy(section, gateway.proxy))


class _Hearing(asyncio.Protocol):
    """A connection on which nothing is said."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport


async def _asked(origin: Origin) -> str | None:
    """Ask for the root of a server, whatever it answers; its Date."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Result] = loop.create_future()
    pool = Pool(origin, PoolSettings(max_connections=1, connect_timeout_s=TIMEOUT_S))
    block = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", authority_of(origin).encode())]
    await pool.start()
    try:
        block.append((b":path", b"/"))
        pool.request(encode_headers(block), b"", loop.time() + TIMEOUT_S, answered.set_result)
        match await answered:
            case Answer(_, headers):
                fields: Mapping[bytes, bytes] = dict(headers)
                date = fields.get(b"date")
                return None if date is None else date.decode("latin-1")
            case Unsent(reason) | Unknown(reason):
                raise DialError(reason)
    finally:
        await pool.close()


def _clock(place: str, reached: Reached) -> Iterator[Finding]:
    """Compare with the Date of its answer, which it wrote about half of the time ago that all of it took."""
    if reached.date is None:
        return
    try:
        theirs_s = parsedate_to_datetime(reached.date).timestamp()
    except ValueError:
        return
    yield beside(place, theirs_s + 0.5 - (time.time() - reached.took_s / 2))  # it says whole seconds, cut off


def _place(gateway: Gateway) -> str:
    return urlsplit(gateway.url).netloc.rpartition("@")[2]


def _named(credentials: list[CredentialId]) -> str:
    first = ", ".join(map(str, credentials[:3]))
    return first if len(credentials) <= 3 else f"{first} and {len(credentials) - 3} more"

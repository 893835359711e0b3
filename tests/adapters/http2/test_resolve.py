"""What a caller may decide about the addresses of an origin, and how it learns that HTTP/2 is not spoken."""

import asyncio
import ssl
from collections.abc import Sequence

import pytest

from tests.adapters.http2.client import Tls
from tests.adapters.http2.scripted import ordinary, scripted
from waypost.http2 import Address, DialError, NotHttp2, Origin, addresses, dial


@pytest.mark.asyncio
async def test_what_the_resolver_gives_is_dialed_and_nothing_else(tls: Tls) -> None:
    """The name exists nowhere; the certificate is checked against the name all the same."""
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> Sequence[Address]:
        asked.append((host, port))
        return await addresses("127.0.0.1", port)

    async with scripted(tls.server("h2"), ordinary) as port:
        origin = Origin("nowhere.invalid", port, _h2(tls), server_name="localhost")
        connected = await dial(origin, _Connected, 5, resolve)
        assert connected.transport.get_extra_info("peername")[:2] == ("127.0.0.1", port)
        connected.transport.abort()
        with pytest.raises(DialError, match="TLS"):
            await dial(Origin("nowhere.invalid", port, _h2(tls)), _Connected, 5, resolve)
    assert asked == [("nowhere.invalid", port)] * 2


@pytest.mark.asyncio
async def test_a_resolver_that_refuses_ends_the_attempt_before_any_byte() -> None:
    async def refuse(_host: str, _port: int) -> Sequence[Address]:
        raise DialError("not there")

    with pytest.raises(DialError, match="not there"):
        await dial(Origin("localhost", 9, None), _Connected, 5, refuse)


@pytest.mark.asyncio
@pytest.mark.parametrize("offered", [["http/1.1"], []], ids=["HTTP/1.1 alone", "no ALPN"])
async def test_a_server_without_http2_is_told_apart(tls: Tls, offered: list[str]) -> None:
    async with scripted(tls.server(*offered), ordinary) as port:
        with pytest.raises(NotHttp2):
            await dial(Origin("localhost", port, _h2(tls)), _Connected, 5)


class _Connected(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "abort")
        self.transport = transport  # type: ignore[assignment] # uvloop's own class


def _h2(tls: Tls) -> ssl.SSLContext:
    context = tls.client()
    context.set_alpn_protocols(["h2"])
    return context

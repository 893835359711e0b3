"""A gateway that holds all requests until it has so many, and then answers them together."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from waypost.bench.gateway import ReceivedCount, WaypostConnection
from waypost.channels.push import patience
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome
from waypost.lab.credentials import SERVER
from waypost.ports.sender import Sender

PATIENCE_S = 600.0


class Held:
    """The requests that a gateway has and answers together, once they are all there."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.requests: list[tuple[HoldingConnection, int, bytes, bytes]] = []
        self.received = ReceivedCount()

    def answer(self) -> None:
        """Answer all."""
        for connection, stream, path, body in self.requests:
            connection.answer_now(stream, path, body)


class HoldingConnection(WaypostConnection):
    """A connection that answers its first request, by which Waypost sees that it is of use, and holds the others."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.received)
        self._held = held
        self._is_new = True

    def _answer(self, stream: int, path: bytes, body: bytes, out: list[bytes]) -> None:
        if self._is_new:
            self._is_new = False
            super()._answer(stream, path, body, out)
            return
        self._held.requests.append((self, stream, path, body))
        if len(self._held.requests) == self._held.wanted:
            self._held.answer()

    def answer_now(self, stream: int, path: bytes, body: bytes) -> None:
        """Answer a request that was held."""
        out: list[bytes] = []
        super()._answer(stream, path, body, out)
        self._transport.write(b"".join(out))


@asynccontextmanager
async def holding(
    credentials: Path, wanted: int, protocols: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Held, int]]:
    """Serve a gateway that holds *wanted* requests, and its port; senders wait as long as it takes."""
    monkeypatch.setattr(patience, "EXPECTED_S", PATIENCE_S)
    monkeypatch.setattr(patience, "ANSWER_BY_S", PATIENCE_S)
    held, tls = Held(wanted), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(credentials / SERVER)
    tls.set_alpn_protocols(list(protocols))
    server = await asyncio.get_running_loop().create_server(lambda: HoldingConnection(held), "127.0.0.1", 0, ssl=tls)
    try:
        yield held, server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ends_of(sender: Sender, deliveries: Sequence[Delivery]) -> set[type[Outcome]]:
    """Send all at once, and return the kinds of their outcomes when each has one."""
    outcomes, ended = [], asyncio.Event()

    def report(_: Delivery, outcome: Outcome) -> None:
        outcomes.append(type(outcome))
        if len(outcomes) == len(deliveries):
            ended.set()

    sender.send(deliveries, report)
    await ended.wait()
    return set(outcomes)

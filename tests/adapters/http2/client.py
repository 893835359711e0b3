"""What every test of the pool needs: TLS contexts, a pool that remembers its events, requests as futures."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from waypost.http2 import Origin, Pool, PoolEvent, PoolSettings, Proxy, Result, Sockets, encode_headers

HEAD = encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/")])


@dataclass(frozen=True)
class Tls:
    """A certificate for localhost and its key."""

    cert_file: Path
    key_file: Path

    def server(self, *protocols: str) -> ssl.SSLContext:
        """A server's context that offers *protocols* by ALPN."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert_file, self.key_file)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def client(self) -> ssl.SSLContext:
        """A client's context that trusts the certificate."""
        return ssl.create_default_context(cafile=str(self.cert_file))


E = TypeVar("E", bound=PoolEvent)


class Client:
    """A pool under test."""

    def __init__(self, origin: Origin, settings: PoolSettings, sockets: Sockets | None) -> None:
        self.events: list[PoolEvent] = []
        self._news = asyncio.Event()
        self.pool = Pool(origin, settings, on_event=self._note, jitter=lambda: 0.0, sockets=sockets)

    def _note(self, event: PoolEvent) -> None:
        self.events.append(event)
        self._news.set()

    def ask(
        self, body: bytes = b"hello", deadline_s: float = 20.0, answer_within_s: float = 0.0
    ) -> asyncio.Future[Result]:
        """A request; the loop reports an InvalidStateError if it ended twice.

        It is not sent after *deadline_s*, and answered until then, or within *answer_within_s* where that is given.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Result] = loop.create_future()
        returned = False

        def on_result(result: Result) -> None:
            assert returned, "on_result was called before request() returned"
            ended.set_result(result)

        now = loop.time()
        self.pool.request(HEAD, body, now + deadline_s, on_result, now + answer_within_s if answer_within_s else 0.0)
        returned = True
        return ended

    async def saw(self, kind: type[E], count: int = 1) -> E:
        """Wait for the *count*-th event of a kind."""
        while len(found := [event for event in self.events if isinstance(event, kind)]) < count:
            self._news.clear()
            await self._news.wait()
        return found[count - 1]


@contextlib.asynccontextmanager
async def client(
    port: int,
    tls: Tls | None,
    server_name: str = "localhost",
    host: str = "127.0.0.1",
    proxy: Proxy | None = None,
    sockets: Sockets | None = None,
    **changed: Any,
) -> AsyncIterator[Client]:
    """A started pool with quick backoff; what a callback raised fails the test."""
    raised: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    origin = Origin(host, port, tls.client() if tls else None, server_name, proxy)
    settings = PoolSettings(**{"max_connections": 1, "backoff_base_s": 0.02, "backoff_cap_s": 0.1, **changed})
    under_test = Client(origin, settings, sockets)
    await under_test.pool.start()
    try:
        yield under_test
    finally:
        await under_test.pool.close()
    stats = under_test.pool.stats
    assert stats.requests_total == stats.answers_total + stats.unsent_total + stats.unknown_total
    assert not stats.connections and not stats.in_flight and not stats.queued
    assert not raised, raised

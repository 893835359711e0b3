"""The pool against servers that others wrote: 2,000 requests of mixed sizes each, no wrong answer."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from benchmarks.kernel import nghttpd
from tests.adapters.http2.client import Tls, client
from waypost.http2 import Answer, Result, encode_headers

REQUESTS = 2000


class Echo(asyncio.Protocol):
    """A server on the h2 library: answers with the request's body, and its length in a field."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # the loop gives a narrower class than the protocol says
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.bodies: dict[int, bytearray] = {}
        self.unsent: dict[int, bytes] = {}
        self.h2.initiate_connection()
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        """Act on each event."""
        for event in self.h2.receive_data(data):
            match event:
                case h2.events.RequestReceived():
                    self.bodies[event.stream_id] = bytearray()
                case h2.events.DataReceived():
                    self.bodies[event.stream_id] += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case h2.events.StreamEnded():
                    body = bytes(self.bodies.pop(event.stream_id))
                    length = str(len(body))
                    self.h2.send_headers(event.stream_id, [(":status", "200"), ("content-length", length)])
                    self.unsent[event.stream_id] = body
                case _:
                    pass  # the library itself acts on the others
        self._write_on()

    def _write_on(self) -> None:
        for stream_id in list(self.unsent):
            body = self.unsent[stream_id]
            while stream_id in self.unsent:
                size = min(self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size)
                if size >= len(body):
                    self.h2.send_data(stream_id, body, end_stream=True)
                    del self.unsent[stream_id]
                elif size <= 0:
                    break
                else:
                    self.h2.send_data(stream_id, body[:size])
                    body = self.unsent[stream_id] = body[size:]
        self.transport.write(self.h2.data_to_send())


@contextlib.asynccontextmanager
async def echo(tls: Tls) -> AsyncIterator[int]:
    """Serve."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, ssl=tls.server("h2"))
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.asyncio
async def test_the_h2_library_gets_and_gives_every_body(tls: Tls) -> None:
    """Empty, small, and larger than a frame or a window; each comes back whole."""
    sizes = [0, 1, 400, 4096, 16_384, 16_385, 40_000]
    async with echo(tls) as port, client(port, tls, max_connections=2) as one:
        bodies = [bytes([number % 251]) * sizes[number % len(sizes)] for number in range(REQUESTS)]
        results = await asyncio.gather(*[one.ask(body, 100) for body in bodies])
        for body, result in zip(bodies, results, strict=True):
            length = str(len(body)).encode()
            assert result == Answer(200, ((b"content-length", length),), body)


@pytest.mark.asyncio
@pytest.mark.skipif(not shutil.which("nghttpd"), reason="nghttpd (Debian: nghttp2-server) is not installed")
async def test_nghttpd_answers_every_request(tls: Tls, tmp_path: Path) -> None:
    """Pages of several sizes, compressed and padded heads, one that is missing."""
    sizes = {b"/a": 0, b"/b": 10, b"/c": 20_000, b"/d": 65_536}
    for path, size in sizes.items():
        (tmp_path / path[1:].decode()).write_bytes(path[1:] * size)
    paths = [*sizes, b"/missing"]
    common = encode_headers([(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost")])
    with nghttpd(tmp_path, tls.cert_file, tls.key_file, "--padding=20", "--trailer=a: b") as port:
        async with client(port, tls, max_connections=2) as one:
            loop = asyncio.get_running_loop()
            results: list[tuple[bytes, Result]] = []
            all_ended = loop.create_future()

            def note(path: bytes) -> Callable[[Result], None]:
                def on_result(result: Result) -> None:
                    results.append((path, result))
                    if len(results) == REQUESTS:
                        all_ended.set_result(None)

                return on_result

            for number in range(REQUESTS):
                path = paths[number % len(paths)]
                head = common + encode_headers([(b":path", path)])
                one.pool.request(head, b"", loop.time() + 100, note(path))
            await all_ended
    for path, result in results:
        assert isinstance(result, Answer)
        assert result.status == (200 if path in sizes else 404)
        assert path not in sizes or (result.body == path[1:] * sizes[path] and result.trailers == ((b"a", b"b"),))

"""Two servers in Python that answer with the SHA-256 of the body in hexadecimal, then the body.

`python -m tests.interop.answering h2 CERT KEY` is HTTP/2 on the h2 library, `… http1` is what nginx and HAProxy have
behind them. Both print their port.
"""

import asyncio
import contextlib
import hashlib
import ssl
import sys

import h2.config
import h2.connection
import h2.events
import httptools
import uvloop


def answer_to(body: bytes) -> bytes:
    """What every server here answers."""
    return hashlib.sha256(body).hexdigest().encode() + body


class Http2(asyncio.Protocol):
    """A server on the h2 library."""

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
                    body = answer_to(bytes(self.bodies.pop(event.stream_id)))
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


class Http1(asyncio.Protocol):
    """A server on httptools, with connections that are kept."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # the loop gives a narrower class than the protocol says
        self.parser = httptools.HttpRequestParser(self)
        self.body = bytearray()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self.parser.feed_data(data)

    def on_body(self, piece: bytes) -> None:
        """Called by the parser."""
        self.body += piece

    def on_message_complete(self) -> None:
        """Called by the parser."""
        answer = answer_to(bytes(self.body))
        self.body.clear()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


async def _serve(kind: str, files: list[str]) -> None:
    tls = None
    if kind == "h2":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*files)
        tls.set_alpn_protocols(["h2"])
    protocol = Http2 if kind == "h2" else Http1
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_serve(sys.argv[1], sys.argv[2:]))

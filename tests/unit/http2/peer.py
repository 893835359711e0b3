"""A server's side of a connection, written with hyperframe and hpack: bytes for a test to feed, frames to read."""

from collections.abc import Iterable
from typing import Any

import hpack
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from waypost.http2 import Result, encode_headers
from waypost.http2.connection import Connection
from waypost.http2.frames import PREFACE
from waypost.http2.opening import ConnectionLimits
from waypost.http2.stream import Batch, Stream

HEAD = encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"test")])
BATCH = Batch(0.0, 0.0, lambda ended: None, 1)
LIMITS = ConnectionLimits(first_streams=1, most_streams=1000, max_response_bytes=1000, max_header_list_bytes=2000)


def settings(**values: int) -> bytes:
    """SETTINGS by the RFC's names: settings(MAX_CONCURRENT_STREAMS=1)."""
    return SettingsFrame(
        0, settings={getattr(SettingsFrame, name): value for name, value in values.items()}
    ).serialize()


def block(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A header block by an encoder that knows of no table."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    encoded: bytes = encoder.encode(list(fields))
    return encoded


def head(stream_id: int, status: bytes = b"200", *fields: tuple[bytes, bytes], end: bool = False) -> bytes:
    """The head of an answer."""
    flags = ["END_HEADERS", "END_STREAM"] if end else ["END_HEADERS"]
    return HeadersFrame(stream_id, block([(b":status", status), *fields]), flags=flags).serialize()


def data(stream_id: int, body: bytes = b"", *, end: bool = False, padding: int = 0) -> bytes:
    """A piece of an answer's body."""
    flags = (["END_STREAM"] if end else []) + (["PADDED"] if padding else [])
    return DataFrame(stream_id, body, flags=flags, pad_length=padding).serialize()


def answer(stream_id: int, body: bytes = b"ok") -> bytes:
    """A whole answer."""
    return head(stream_id) + data(stream_id, body, end=True)


def rst(stream_id: int, code: int) -> bytes:
    """RST_STREAM."""
    return RstStreamFrame(stream_id, error_code=code).serialize()


def goaway(last_stream_id: int, code: int = 0, debug: bytes = b"") -> bytes:
    """GOAWAY."""
    return GoAwayFrame(0, last_stream_id=last_stream_id, error_code=code, additional_data=debug).serialize()


def window(stream_id: int, increment: int) -> bytes:
    """WINDOW_UPDATE."""
    return WindowUpdateFrame(stream_id, window_increment=increment).serialize()


def ping(opaque: bytes) -> bytes:
    """PING."""
    return PingFrame(0, opaque).serialize()


def raw(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    """A frame that no library would write."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload


def read(written: bytes) -> list[Any]:
    """The frames in what the client wrote."""
    view = memoryview(written.removeprefix(PREFACE))
    found: list[Any] = []
    while view:
        frame, length = Frame.parse_frame_header(view[:9])
        frame.parse_body(view[9 : 9 + length])
        found.append(frame)
        view = view[9 + length :]
    return found


class Driven:
    """A `Connection` under test, greeted by its server, with its output read after each step."""

    def __init__(self, greeting: bytes | None = None, limits: ConnectionLimits = LIMITS) -> None:
        self.connection = Connection(limits)
        self.written = read(self.connection.take_output())
        self.hear(settings(MAX_CONCURRENT_STREAMS=100) if greeting is None else greeting)

    def hear(self, *pieces: bytes) -> list[Any]:
        """Feed the client, and read what it says to that."""
        for piece in pieces:
            self.connection.receive(piece)
        self.written = read(self.connection.take_output())
        return self.written

    def send(self, body: bytes = b"", *, flush: bool = True, head_block: bytes = HEAD) -> Stream:
        """Start a request."""
        stream = Stream(head_block, body, BATCH, None)
        self.connection.send_all([stream])
        if flush:
            self.written = read(self.connection.take_output())
        return stream

    def ended(self) -> list[Result | None]:
        """The results since the last call."""
        ended = [stream.result for stream in self.connection.ended]
        self.connection.ended.clear()
        return ended

    def refused(self) -> list[Stream]:
        """The refused since the last call."""
        refused = list(self.connection.refused)
        self.connection.refused.clear()
        return refused

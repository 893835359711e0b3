"""What a server may not do, case by case; in each, requests wait for answers on the streams 1 and 3."""

from dataclasses import dataclass

from tests.unit.http2.peer import answer, block, data, head, ping, raw, rst, settings, window


@dataclass(frozen=True)
class Fault:
    """A row of the table."""

    name: str
    pieces: list[bytes]
    reason: str
    """What the result of the request says, or a part of it."""


# Against a client that takes 1,000 bytes of body and 2,000 of header list.
OF_A_STREAM = (
    Fault("no head", [data(1, b"x", end=True)], "body before the head"),
    Fault("status of two digits", [head(1, b"20")], "status"),
    Fault("no status", [raw(1, 5, 1, block([(b"a", b"b")]))], ":status"),
    Fault("upper case", [raw(1, 4, 1, block([(b":status", b"200"), (b"A", b"b")]))], "field name"),
    Fault("pseudo field", [raw(1, 4, 1, block([(b":status", b"200"), (b":x", b"b")]))], "field name"),
    Fault("HTTP/1.1 field", [head(1, b"200", (b"connection", b"close"))], "connection-specific"),
    Fault("line break in a value", [head(1, b"200", (b"a", b"b\r\nc: d"))], "line break"),
    Fault("1xx that ends the stream", [head(1, b"100", end=True)], "interim"),
    Fault("101", [head(1, b"101")], "interim"),
    Fault("trailers without an end", [head(1), head(1)], "trailers"),
    Fault("short", [head(1, b"200", (b"content-length", b"3")), data(1, b"x", end=True)], "content-length"),
    Fault("length without a body", [head(1, b"200", (b"content-length", b"10"), end=True)], "content-length"),
    Fault("empty body", [head(1, b"200", (b"content-length", b"10")), data(1, end=True)], "content-length"),
    Fault(
        "trailers instead of a body",
        [head(1, b"200", (b"content-length", b"10")), raw(1, 5, 1, block([(b"a", b"b")]))],
        "content-length",
    ),
    Fault("204 with another body", [head(1, b"204", (b"content-length", b"3")), data(1, b"x", end=True)], "length"),
    Fault("1xx without end", [head(1, b"103", (b"a", b"%d" % n)) for n in range(17)], "interim"),
    Fault("length that is none", [head(1, b"200", (b"content-length", b"-1"))], "content-length"),
    Fault("header list too large", [head(1, b"200", (b"a", b"b" * 2000))], "above 2000 bytes"),
    Fault("body too large", [head(1), data(1, b"x" * 1001)], "above 1000 bytes"),
    Fault("window update of zero", [raw(8, 0, 1, bytes(4))], "of nothing"),
    Fault("stream window overflow", [window(1, 2**31 - 1)], "2^31-1"),
)
OF_THE_CONNECTION = (
    Fault("frame too large", [raw(0, 0, 1, b"x" * 16_385)], "FRAME_SIZE_ERROR"),
    Fault("push", [raw(5, 4, 1, bytes(8))], "PUSH_PROMISE"),
    Fault("push enabled by a server", [settings(ENABLE_PUSH=1)], "enables push"),
    Fault("SETTINGS of 7 bytes", [raw(4, 0, 0, bytes(7))], "broken length"),
    Fault("SETTINGS acknowledgement with values", [raw(4, 1, 0, bytes(6))], "FRAME_SIZE_ERROR"),
    Fault("SETTINGS on a stream", [raw(4, 0, 1, b"")], "SETTINGS on a stream"),
    Fault("initial window of 2^31", [raw(4, 0, 0, b"\0\4\x80\0\0\0")], "FLOW_CONTROL_ERROR"),
    Fault("MAX_FRAME_SIZE of 16383", [raw(4, 0, 0, b"\0\5\0\0\x3f\xff")], "frame size"),
    Fault("overflow", [window(1, 2**31 - 1 - 65_534), settings(INITIAL_WINDOW_SIZE=2**31 - 1)], "2^31-1"),
    Fault(
        "overflow by a window that is taken back at once",
        [window(1, 2**31 - 1 - 65_534), raw(4, 0, 0, b"\0\4\x7f\xff\xff\xff" + b"\0\4\0\0\0\0")],
        "2^31-1",
    ),
    Fault("connection window overflow", [window(0, 2**31 - 1)], "connection window"),
    Fault("connection window update of zero", [raw(8, 0, 0, bytes(4))], "of nothing"),
    Fault("WINDOW_UPDATE of 3 bytes", [raw(8, 0, 0, bytes(3))], "FRAME_SIZE_ERROR"),
    Fault("PING of 7 bytes", [raw(6, 0, 0, bytes(7))], "FRAME_SIZE_ERROR"),
    Fault("PING on a stream", [raw(6, 0, 1, bytes(8))], "PING on a stream"),
    Fault("RST_STREAM of 5 bytes", [raw(3, 0, 1, bytes(5))], "FRAME_SIZE_ERROR"),
    Fault("PRIORITY of 4 bytes", [raw(2, 0, 1, bytes(4))], "FRAME_SIZE_ERROR"),
    Fault("GOAWAY of 7 bytes", [raw(7, 0, 0, bytes(7))], "GOAWAY too short"),
    Fault("GOAWAY on a stream", [raw(7, 0, 1, bytes(8))], "GOAWAY on a stream"),
    Fault("padding longer than the frame", [raw(0, 8, 1, b"\5abc")], "padding"),
    Fault("HEADERS too short for priority", [raw(1, 0x24, 1, b"abcd")], "priority"),
    Fault("CONTINUATION out of place", [raw(9, 4, 1, b"")], "CONTINUATION"),
    Fault("header block interrupted", [raw(1, 0, 1, b"\x88"), data(1)], "interrupted"),
    Fault("CONTINUATION of another stream", [raw(1, 0, 1, b"\x88"), raw(9, 4, 3, b"")], "CONTINUATION"),
    Fault("CONTINUATION flood", [raw(1, 0, 1, b"\x88"), *[raw(9, 0, 1, b"")] * 65], "endless"),
    Fault("CONTINUATION flood of a byte each", [raw(1, 0, 1, b"\x88"), *[raw(9, 0, 1, b"\x88")] * 80], "endless"),
    Fault("header block above 64 KiB", [raw(1, 0, 1, b""), *[raw(9, 0, 1, b"\x88" * 16_384)] * 5], "endless"),
    Fault("index behind the dynamic table", [raw(1, 4, 1, b"\x88\x40\1a\1b\xbf")], "COMPRESSION_ERROR"),
    Fault("header table size above 4096", [raw(1, 4, 1, b"\x3f\xe2\x1f\x88")], "COMPRESSION_ERROR"),
    Fault("header block cut", [raw(1, 4, 1, b"\xff")], "COMPRESSION_ERROR"),
    Fault("index of the dynamic table", [raw(1, 4, 1, b"\xbe")], "COMPRESSION_ERROR"),
    Fault("DATA on an idle stream", [data(9, b"x")], "never opened"),
    Fault("HEADERS on a server's stream", [head(2)], "never opened"),
    Fault("DATA on stream 0", [raw(0, 0, 0, b"x")], "never opened"),
    Fault("RST_STREAM on an idle stream", [rst(9, 0)], "never opened"),
    Fault("DATA after the end of the stream", [answer(1), data(1)], "STREAM_CLOSED"),
    Fault("HEADERS after the end of the stream", [answer(1), head(1)], "STREAM_CLOSED"),
    Fault("PING flood", [ping(bytes(8)) * 1001], "without reading"),
)

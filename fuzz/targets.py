"""What the fuzzer feeds, and what must hold whatever the bytes: also run on the corpus by the unit tests."""

from collections.abc import Callable, Mapping

import hpack

from waypost.http2.connection import Connection
from waypost.http2.frames import ConnectionFault
from waypost.http2.frames import settings as settings_frame
from waypost.http2.hpack import HeaderListTooLarge, decode_headers, encode_headers
from waypost.http2.opening import ConnectionLimits
from waypost.http2.stream import Batch, Stream

LIMITS = ConnectionLimits(first_streams=10, most_streams=10, max_response_bytes=1000, max_header_list_bytes=2000)
HEAD = encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"fuzz")])
# A server's bytes make at most so many of ours: the bodies, and a reply to each frame of nine bytes.
MOST_WRITTEN = 3 * 70_000
NO_LIMIT = 1 << 30


def frames(data: bytes) -> None:
    """Any bytes from a server: each request ends once or is still open, and what is kept and written is bounded.

    The first byte says whether the server has greeted and in which pieces the rest arrives.
    """
    connection = Connection(LIMITS)
    written = connection.take_output()
    if not data:
        return
    if data[0] & 1:
        connection.receive(settings_frame([]))
    batch = Batch(0.0, 0.0, lambda ended: None, 3)
    streams = [Stream(HEAD, b"x" * size, batch, None) for size in (0, 10, 70_000)]
    for stream in streams:
        connection.send_all([stream])
    connection.take_output()
    step = (data[0] >> 1) + 1
    for start in range(1, len(data), step):
        connection.receive(data[start : start + step])
        written += connection.take_output()
    open_now = list(connection.streams.values())
    connection.lost("end")
    given_back = connection.ended + connection.refused
    assert len(given_back) == len(streams) and {id(stream) for stream in given_back} == {id(s) for s in streams}
    assert all(stream.received <= LIMITS.max_response_bytes for stream in open_now)
    assert len(written) <= MOST_WRITTEN + 2 * len(data)


def headers(data: bytes) -> None:
    """Any bytes as a header block: a fault, or the fields that the hpack library reads, too."""
    try:
        ours = list(decode_headers(data, NO_LIMIT))
    except ConnectionFault:
        return
    judge = hpack.Decoder(max_header_list_size=NO_LIMIT)
    theirs = [(bytes(name), bytes(value)) for name, value in judge.decode(data, raw=True)]
    assert ours == theirs
    assert list(decode_headers(encode_headers(ours), NO_LIMIT)) == ours
    size = sum(len(name) + len(value) + 32 for name, value in ours)
    assert list(decode_headers(data, size)) == ours
    try:
        decode_headers(data, size - 1)
    except HeaderListTooLarge:
        return
    assert not ours


TARGETS: Mapping[str, Callable[[bytes], None]] = {"frames": frames, "headers": headers}

"""What a server may not do, case by case: what ends its stream alone, and what ends the connection."""

import pytest
from hyperframe.frame import PriorityFrame, RstStreamFrame

from tests.unit.http2.peer import (
    Driven,
    answer,
    block,
    data,
    head,
    ping,
    raw,
    rst,
    settings,
    window,
)
from waypost.http2 import Answer, Lost, Unknown
from waypost.http2.frames import CANCEL


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        pytest.param([data(1, b"x", end=True)], "body before the head", id="no head"),
        pytest.param([head(1, b"20")], "status", id="status of two digits"),
        pytest.param([raw(1, 5, 1, block([(b"a", b"b")]))], ":status", id="no status"),
        pytest.param([raw(1, 4, 1, block([(b":status", b"200"), (b"A", b"b")]))], "field name", id="upper case"),
        pytest.param([raw(1, 4, 1, block([(b":status", b"200"), (b":x", b"b")]))], "field name", id="pseudo field"),
        pytest.param([head(1, b"200", (b"connection", b"close"))], "connection-specific", id="HTTP/1.1 field"),
        pytest.param([head(1, b"200", (b"a", b"b\r\nc: d"))], "line break", id="line break in a value"),
        pytest.param([head(1, b"100", end=True)], "interim", id="1xx that ends the stream"),
        pytest.param([head(1, b"101")], "interim", id="101"),
        pytest.param([head(1), head(1)], "trailers", id="trailers without an end"),
        pytest.param(
            [head(1, b"200", (b"content-length", b"3")), data(1, b"x", end=True)], "content-length", id="short"
        ),
        pytest.param([head(1, b"200", (b"content-length", b"-1"))], "content-length", id="length that is none"),
        pytest.param([head(1, b"200", (b"a", b"b" * 2000))], "above 2000 bytes", id="header list too large"),
        pytest.param([head(1), data(1, b"x" * 1001)], "above 1000 bytes", id="body too large"),
        pytest.param([raw(8, 0, 1, bytes(4))], "of nothing", id="window update of zero"),
        pytest.param([window(1, 2**31 - 1)], "2^31-1", id="stream window overflow"),
    ],
)
def test_a_broken_answer_ends_its_stream_alone(pieces: list[bytes], reason: str) -> None:
    """RFC 9113, 5.4.2: the stream is reset, the result unknown, the connection goes on."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    driven.hear(*pieces)
    (result,) = driven.ended()
    assert isinstance(result, Unknown) and reason in result.reason and result.kind is Lost.BAD_ANSWER
    assert any(isinstance(frame, RstStreamFrame) and frame.stream_id == 1 for frame in driven.written)
    driven.hear(answer(3))
    assert driven.ended() == [Answer(200, (), b"ok")]


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        pytest.param([raw(0, 0, 1, b"x" * 16_385)], "FRAME_SIZE_ERROR", id="frame too large"),
        pytest.param([raw(5, 4, 1, bytes(8))], "PUSH_PROMISE", id="push"),
        pytest.param([settings(ENABLE_PUSH=1)], "enables push", id="push enabled by a server"),
        pytest.param([raw(4, 0, 0, bytes(7))], "broken length", id="SETTINGS of 7 bytes"),
        pytest.param([raw(4, 1, 0, bytes(6))], "FRAME_SIZE_ERROR", id="SETTINGS acknowledgement with values"),
        pytest.param([raw(4, 0, 1, b"")], "SETTINGS on a stream", id="SETTINGS on a stream"),
        pytest.param([raw(4, 0, 0, b"\0\4\x80\0\0\0")], "FLOW_CONTROL_ERROR", id="initial window of 2^31"),
        pytest.param([raw(4, 0, 0, b"\0\5\0\0\x3f\xff")], "frame size", id="MAX_FRAME_SIZE of 16383"),
        pytest.param([window(1, 2**31 - 1 - 65_534), settings(INITIAL_WINDOW_SIZE=2**31 - 1)], "2^31-1", id="overflow"),
        pytest.param([window(0, 2**31 - 1)], "connection window", id="connection window overflow"),
        pytest.param([raw(8, 0, 0, bytes(4))], "of nothing", id="connection window update of zero"),
        pytest.param([raw(8, 0, 0, bytes(3))], "FRAME_SIZE_ERROR", id="WINDOW_UPDATE of 3 bytes"),
        pytest.param([raw(6, 0, 0, bytes(7))], "FRAME_SIZE_ERROR", id="PING of 7 bytes"),
        pytest.param([raw(6, 0, 1, bytes(8))], "PING on a stream", id="PING on a stream"),
        pytest.param([raw(3, 0, 1, bytes(5))], "FRAME_SIZE_ERROR", id="RST_STREAM of 5 bytes"),
        pytest.param([raw(2, 0, 1, bytes(4))], "FRAME_SIZE_ERROR", id="PRIORITY of 4 bytes"),
        pytest.param([raw(7, 0, 0, bytes(7))], "GOAWAY too short", id="GOAWAY of 7 bytes"),
        pytest.param([raw(7, 0, 1, bytes(8))], "GOAWAY on a stream", id="GOAWAY on a stream"),
        pytest.param([raw(0, 8, 1, b"\5abc")], "padding", id="padding longer than the frame"),
        pytest.param([raw(1, 0x24, 1, b"abcd")], "priority", id="HEADERS too short for priority"),
        pytest.param([raw(9, 4, 1, b"")], "CONTINUATION", id="CONTINUATION out of place"),
        pytest.param([raw(1, 0, 1, b"\x88"), data(1)], "interrupted", id="header block interrupted"),
        pytest.param([raw(1, 0, 1, b"\x88"), raw(9, 4, 3, b"")], "CONTINUATION", id="CONTINUATION of another stream"),
        pytest.param([raw(1, 0, 1, b"\x88"), *[raw(9, 0, 1, b"")] * 65], "endless", id="CONTINUATION flood"),
        pytest.param([raw(1, 4, 1, b"\xff")], "COMPRESSION_ERROR", id="header block cut"),
        pytest.param([raw(1, 4, 1, b"\xbe")], "COMPRESSION_ERROR", id="index of the dynamic table"),
        pytest.param([data(9, b"x")], "never opened", id="DATA on an idle stream"),
        pytest.param([head(2)], "never opened", id="HEADERS on a server's stream"),
        pytest.param([raw(0, 0, 0, b"x")], "never opened", id="DATA on stream 0"),
        pytest.param([rst(9, 0)], "never opened", id="RST_STREAM on an idle stream"),
        pytest.param([answer(1), data(1)], "STREAM_CLOSED", id="DATA after the end of the stream"),
        pytest.param([answer(1), head(1)], "STREAM_CLOSED", id="HEADERS after the end of the stream"),
        pytest.param([ping(bytes(8)) * 1001], "without reading", id="PING flood"),
    ],
)
def test_a_fault_of_the_connection_ends_it(pieces: list[bytes], reason: str) -> None:
    """RFC 9113, 5.4.1: GOAWAY is written, and what was in flight ends as unknown, once."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    driven.hear(*pieces)
    result = driven.ended()[-1]
    assert isinstance(result, Unknown) and reason in result.reason and result.kind is Lost.CONNECTION_LOST
    assert driven.written[-1].type == 7
    assert driven.connection.room() == 0 and driven.connection.failure == result.reason
    driven.hear(answer(1))
    driven.connection.lost("closed")
    assert driven.ended() == [] and driven.refused() == []


def test_what_comes_late_on_a_stream_that_was_reset_is_let_pass() -> None:
    """RFC 9113, 5.1: it was sent before the server knew; whoever reset the stream, and however many there were."""
    driven = Driven()
    for number in range(1500):
        stream = driven.send(b"x")
        if number % 2:
            driven.connection.cancel(stream, "late")
        else:
            driven.hear(rst(stream.stream_id, CANCEL))
    driven.hear(*[answer(stream_id) for stream_id in range(1, 3000, 2)])
    assert not driven.connection.failure and len(driven.ended()) == 1500


def test_what_may_follow_the_end_of_a_stream_is_let_pass() -> None:
    """RFC 9113, 5.1: WINDOW_UPDATE, RST_STREAM and PRIORITY."""
    driven = Driven()
    driven.send(b"x")
    driven.hear(answer(1), window(1, 5), rst(1, 0), PriorityFrame(1, depends_on=3).serialize())
    assert not driven.connection.failure


def test_a_server_that_speaks_something_else_is_named() -> None:
    """An HTTP/1.1 server's answer is no frame."""
    driven = Driven(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert "not HTTP/2" in driven.connection.failure

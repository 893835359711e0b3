"""One connection against a scripted server: answers, flow control, settings, and how streams end."""

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.unit.http2.peer import (
    HEAD,
    LIMITS,
    Driven,
    answer,
    block,
    data,
    goaway,
    head,
    ping,
    raw,
    rst,
    settings,
    window,
)
from waypost.http2 import Answer, Lost, Unknown
from waypost.http2.connection import Connection
from waypost.http2.frames import CANCEL, ENHANCE_YOUR_CALM, LARGEST_STREAM_ID, PREFACE, REFUSED_STREAM
from waypost.http2.opening import RECEIVE_WINDOW, Limits


def sizes(driven: Driven) -> list[int]:
    """The body bytes in each DATA frame written last."""
    return [len(frame.data) for frame in driven.written if isinstance(frame, DataFrame)]


def test_the_first_bytes_are_the_preface_and_our_settings() -> None:
    """No table, no push, a window of what we take and one byte."""
    written = Connection(LIMITS).take_output()
    assert written.startswith(PREFACE)
    first = SettingsFrame(0)
    first.parse_body(memoryview(written[len(PREFACE) + 9 : len(PREFACE) + 9 + 24]))
    assert first.settings == {1: 0, 2: 0, 4: LIMITS.max_response_bytes + 1, 6: LIMITS.max_header_list_bytes}


def test_a_request_and_its_answer() -> None:
    """HEADERS and DATA out; status, fields and body back."""
    driven = Driven()
    driven.send(b"hello")
    headers, body = driven.written
    assert (
        isinstance(headers, HeadersFrame) and headers.data == b"\x20" + HEAD and set(headers.flags) == {"END_HEADERS"}
    )
    assert isinstance(body, DataFrame) and body.data == b"hello" and set(body.flags) == {"END_STREAM"}
    driven.hear(head(1, b"200", (b"apns-id", b"7")), data(1, b"a"), data(1, b"b"), data(1, end=True))
    assert driven.ended() == [Answer(200, ((b"apns-id", b"7"),), b"ab")]


def test_the_table_size_is_said_once() -> None:
    """Later blocks go as they are."""
    driven = Driven()
    driven.send()
    driven.send()
    assert driven.written[0].data == HEAD


def test_an_answer_split_at_every_byte_is_the_same() -> None:
    """TCP knows no frames."""
    driven = Driven()
    driven.send(b"x")
    whole = head(1, b"404", (b"a", b"b")) + data(1, b"gone", padding=3) + data(1, end=True)
    driven.hear(*[whole[at : at + 1] for at in range(len(whole))])
    assert driven.ended() == [Answer(404, ((b"a", b"b"),), b"gone")]


def test_interim_answers_are_skipped_and_trailers_kept() -> None:
    """RFC 9113, 8.1."""
    driven = Driven()
    driven.send(b"x")
    trailers = HeadersFrame(1, block([(b"grpc-status", b"0")]), flags=["END_HEADERS", "END_STREAM"]).serialize()
    driven.hear(head(1, b"100"), head(1, b"103"), head(1), data(1, b"x"), trailers)
    assert driven.ended() == [Answer(200, (), b"x", ((b"grpc-status", b"0"),))]


def test_continuation_padding_priority_and_unknown_frames() -> None:
    """A head in three frames with padding and priority, between frames nobody knows."""
    driven = Driven()
    driven.send(b"x")
    encoded = block([(b":status", b"200"), (b"a", b"b" * 100)])
    first = HeadersFrame(1, encoded[:10], flags=["PADDED", "PRIORITY"], pad_length=20, depends_on=3).serialize()
    driven.hear(
        raw(0xBE, 0xFF, 1, b"?" * 30),
        PriorityFrame(1, depends_on=5, stream_weight=3).serialize(),
        first,
        ContinuationFrame(1, encoded[10:20]).serialize(),
        ContinuationFrame(1, encoded[20:], flags=["END_HEADERS"]).serialize(),
        data(1, end=True),
    )
    assert driven.ended() == [Answer(200, ((b"a", b"b" * 100),), b"")]


def test_our_own_long_head_is_continued() -> None:
    """A block above the peer's frame size goes in CONTINUATION frames."""
    driven = Driven()
    long_head = HEAD * (60_000 // len(HEAD))
    driven.send(head_block=long_head)
    assert [type(frame) for frame in driven.written] == [HeadersFrame] + [ContinuationFrame] * 3
    assert b"".join([frame.data for frame in driven.written]) == b"\x20" + long_head
    assert "END_HEADERS" in driven.written[-1].flags and "END_STREAM" in driven.written[0].flags


def test_the_stream_limit_follows_every_change() -> None:
    """1 before SETTINGS, then 1 → 1000 → 10 while requests are in flight; never below zero."""
    driven = Driven(b"")
    assert driven.connection.room() == 1
    driven.hear(settings(MAX_CONCURRENT_STREAMS=1))
    driven.send()
    assert driven.connection.room() == 0
    driven.hear(settings(MAX_CONCURRENT_STREAMS=1000))
    assert driven.connection.room() == 999
    for _ in range(20):
        driven.send()
    driven.hear(settings(MAX_CONCURRENT_STREAMS=10))
    assert driven.connection.room() == 0
    driven.hear(*[answer(stream_id) for stream_id in range(1, 32, 2)])
    assert driven.connection.room() == 5


def test_without_a_limit_of_the_server_ours_holds() -> None:
    """RFC 9113, 6.5.2: no MAX_CONCURRENT_STREAMS is no limit."""
    assert Driven(settings()).connection.room() == LIMITS.most_streams


def test_settings_and_pings_are_answered() -> None:
    """An acknowledgement each; the PING's bytes come back."""
    driven = Driven()
    (ack,) = driven.hear(settings(HEADER_TABLE_SIZE=0))
    assert isinstance(ack, SettingsFrame) and "ACK" in ack.flags
    (pong,) = driven.hear(ping(b"12345678"))
    assert isinstance(pong, PingFrame) and "ACK" in pong.flags and pong.opaque_data == b"12345678"


def test_a_body_waits_for_its_streams_window_and_for_the_connections() -> None:
    """65,535 for the connection; more goes out as each window opens, in frames of the peer's size."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=100_000))
    driven.send(b"x" * 70_000)
    assert sizes(driven) == [16_384] * 3 + [16_383]
    assert driven.connection.room() == 0
    driven.hear(window(0, 10))
    assert sizes(driven) == [10]
    driven.hear(window(0, 100_000))
    assert sizes(driven) == [4455] and "END_STREAM" in driven.written[0].flags
    assert driven.connection.room() > 0


def test_a_stream_that_waits_for_its_own_window_holds_no_other() -> None:
    """Its window is spent, the connection's is not."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=5))
    driven.send(b"0123456789")
    assert sizes(driven) == [5]
    driven.send(b"abc")
    assert sizes(driven) == [3]
    driven.hear(window(1, 100))
    assert sizes(driven) == [5]


def test_a_lowered_initial_window_makes_windows_negative() -> None:
    """RFC 9113, 6.9.2: nothing is sent until the window is above zero again."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=50))
    stream = driven.send(b"x" * 100)
    driven.hear(settings(INITIAL_WINDOW_SIZE=10))
    assert sizes(driven) == [] and stream.window == -40
    driven.hear(window(1, 40))
    assert sizes(driven) == []
    driven.hear(window(1, 1))
    assert sizes(driven) == [1]
    driven.hear(settings(INITIAL_WINDOW_SIZE=59))
    assert sizes(driven) == [49]


def test_a_larger_frame_size_is_used() -> None:
    """One frame where the peer takes it."""
    driven = Driven(settings(MAX_FRAME_SIZE=60_000))
    driven.send(b"x" * 50_000)
    assert sizes(driven) == [50_000]


def test_the_connections_receive_window_is_given_back() -> None:
    """After half of it, also for streams nobody waits for any more, padding included."""
    driven = Driven(limits=Limits(1, 1000, 1 << 30, 2000))
    driven.send(b"x")
    driven.hear(head(1))
    given_back = 0
    for _ in range(100):
        driven.hear(data(1, b"x" * 16_000, padding=200))
        given_back += sum(
            [f.window_increment for f in driven.written if isinstance(f, WindowUpdateFrame) and not f.stream_id]
        )
    assert RECEIVE_WINDOW // 2 < given_back <= 100 * 16_201


def test_an_early_answer_ends_the_request_and_its_body() -> None:
    """RFC 9113, 8.1: the server does not want the rest."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=5))
    driven.send(b"0123456789")
    driven.hear(head(1, b"413", end=True))
    assert driven.ended() == [Answer(413, (), b"")]
    assert [(type(frame), frame.stream_id) for frame in driven.written] == [(RstStreamFrame, 1)]
    assert driven.hear(window(1, 100), rst(1, 0)) == []


def test_a_refused_stream_is_given_back() -> None:
    """REFUSED_STREAM says that nothing was processed (RFC 9113, 8.7); any other code does not."""
    driven = Driven()
    refused, broken = driven.send(b"x"), driven.send(b"x")
    driven.hear(rst(1, REFUSED_STREAM), rst(3, CANCEL))
    assert driven.refused() == [refused]
    assert driven.ended() == [Unknown("the server reset the stream: CANCEL", Lost.RESET)] and broken.result is not None


def test_refused_after_the_answer_began_is_no_refusal() -> None:
    """A server that answered has processed something."""
    driven = Driven()
    driven.send(b"x")
    driven.hear(head(1), rst(1, REFUSED_STREAM))
    assert driven.refused() == [] and isinstance(driven.ended()[0], Unknown)


def test_goaway_in_two_steps() -> None:
    """First "no more", then the true last stream: only what is above it comes back, the rest is still answered."""
    driven = Driven()
    streams = [driven.send(b"x") for _ in range(3)]
    driven.hear(goaway(LARGEST_STREAM_ID))
    assert driven.connection.room() == 0 and driven.refused() == []
    driven.hear(goaway(3, 0, b'{"reason":"Shutdown"}'))
    assert driven.refused() == [streams[2]]
    assert [goaway.debug for goaway in driven.connection.goaways] == [b"", b'{"reason":"Shutdown"}']
    driven.hear(answer(1), answer(3))
    assert [type(result) for result in driven.ended()] == [Answer, Answer]


def test_a_raised_goaway_takes_nothing_back() -> None:
    """The last stream id must not grow; what was given back stays given back, and nothing comes twice."""
    driven = Driven()
    driven.send(b"x")
    second = driven.send(b"x")
    driven.hear(goaway(1), goaway(99), answer(1))
    assert driven.refused() == [second] and len(driven.ended()) == 1


def test_a_lost_connection_tells_written_from_unwritten() -> None:
    """What was never taken out for writing is refused, the rest unknown."""
    driven = Driven()
    driven.send(b"x")
    unwritten = driven.send(b"x", flush=False)
    driven.connection.lost("gone")
    assert driven.ended() == [Unknown("gone")] and driven.refused() == [unwritten]


def test_a_cancelled_request_is_reset_and_its_answer_ignored() -> None:
    """The deadline passed; late frames are no fault."""
    driven = Driven()
    stream = driven.send(b"x")
    driven.connection.cancel(stream, "late")
    assert driven.ended() == [Unknown("late", Lost.TIMEOUT)]
    (reset,) = driven.hear(answer(1), window(1, 5), rst(1, 0))
    assert isinstance(reset, RstStreamFrame) and reset.error_code == CANCEL
    assert not driven.connection.failure and driven.ended() == []


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


def test_when_stream_ids_run_out_there_is_no_more_room() -> None:
    """RFC 9113, 5.1.1: a new connection is needed."""
    driven = Driven()
    driven.connection._next_id = LARGEST_STREAM_ID
    assert driven.connection.room() == 100
    driven.send(b"x")
    assert driven.connection.room() == 0 and driven.connection.finished


def test_replies_are_not_gathered_without_bound() -> None:
    """A server that asks and does not read is told to calm down."""
    driven = Driven()
    driven.connection.receive(settings() * 1001)
    assert driven.hear()[-1].error_code == ENHANCE_YOUR_CALM

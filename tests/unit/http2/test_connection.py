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
from waypost.http2 import Answer, Lost, Unknown, encode_headers
from waypost.http2.connection import Connection
from waypost.http2.frames import CANCEL, ENHANCE_YOUR_CALM, LARGEST_STREAM_ID, PREFACE, REFUSED_STREAM
from waypost.http2.opening import ConnectionLimits


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


@pytest.mark.parametrize("size", [16, 100, 1000])
def test_a_long_head_may_come_in_many_small_frames(size: int) -> None:
    """12 KB of header list, within the limit, as a server with small buffers sends it."""
    driven = Driven(limits=ConnectionLimits(1, 1000, 1000, 16_384))
    driven.send(b"x")
    fields = [(b"x-%d" % number, b"\x7f" * 83) for number in range(100)]
    encoded = encode_headers([(b":status", b"200"), *fields])
    first, *rest = [encoded[at : at + size] for at in range(0, len(encoded), size)]
    driven.hear(raw(1, 1, 1, first), *[raw(9, 0, 1, part) for part in rest[:-1]], raw(9, 4, 1, rest[-1]))
    assert driven.ended() == [Answer(200, tuple(fields), b"")]


@pytest.mark.parametrize("status", [b"204", b"304"])
def test_a_status_without_a_body_may_announce_a_length(status: bytes) -> None:
    """RFC 9113, 8.1.1: it is that of a body which does not come."""
    driven = Driven()
    driven.send(b"x")
    driven.hear(head(1, status, (b"content-length", b"10"), end=True))
    assert driven.ended() == [Answer(int(status), ((b"content-length", b"10"),), b"")]


@pytest.mark.parametrize("length", [[], [(b"content-length", b"0")]])
def test_an_answer_may_be_nothing_but_a_head_or_trailers(length: list[tuple[bytes, bytes]]) -> None:
    """Of no length, or of zero."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    trailers = raw(1, 5, 3, block([(b"grpc-status", b"0")]))
    driven.hear(head(1, b"200", *length, end=True), head(3, b"200", *length), trailers)
    assert driven.ended() == [
        Answer(200, tuple(length), b""),
        Answer(200, tuple(length), b"", ((b"grpc-status", b"0"),)),
    ]


def test_as_many_interim_answers_as_are_sensible_are_skipped() -> None:
    """On each stream anew."""
    driven = Driven()
    for stream_id in (1, 3):
        driven.send(b"x")
        driven.hear(*[head(stream_id, b"103")] * 16, answer(stream_id))
    assert driven.ended() == [Answer(200, (), b"ok")] * 2


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


def test_what_is_being_answered_when_the_server_goes_away_is_not_given_back() -> None:
    """It has read the request, whatever the last stream is that it names."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    driven.hear(head(3), goaway(1))
    (result,) = driven.ended()
    assert isinstance(result, Unknown) and result.kind is Lost.RESET
    assert driven.refused() == []


def test_what_was_refused_begins_anew_on_the_next_connection() -> None:
    """The whole body goes out again, not what was left of it."""
    driven, other = (Driven(settings(INITIAL_WINDOW_SIZE=5)) for _ in range(2))
    stream = driven.send(b"0123456789")
    driven.hear(rst(1, REFUSED_STREAM))
    assert driven.refused() == [stream]
    other.connection.send_all([stream])
    _, begun = other.hear()
    (rest,) = other.hear(window(1, 100))
    assert [frame.data for frame in (begun, rest)] == [b"01234", b"56789"]
    other.hear(answer(1))
    assert [type(result) for result in other.ended()] == [Answer]

"""The `h2` library as an independent judge: of what we write, as our server, and of what we read, beside us."""

import hashlib
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.frame import HeadersFrame, RstStreamFrame
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.http2 import peer
from waypost.http2 import Answer
from waypost.http2.connection import Connection
from waypost.http2.opening import ConnectionLimits
from waypost.http2.stream import Stream

LIMITS = ConnectionLimits(first_streams=1, most_streams=50, max_response_bytes=200_000, max_header_list_bytes=16_384)
SIZES = st.sampled_from([0, 1, 500, 16_384, 16_385, 70_000])


class Answering:
    """A server on the library: answers with the hash of the body and so many bytes, as its windows let it."""

    def __init__(self, answer_sizes: list[int]) -> None:
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.h2.initiate_connection()
        self.answer_sizes = answer_sizes
        self.bodies: dict[int, bytearray] = {}
        self.unsent: dict[int, bytes] = {}

    def hear(self, data: bytes) -> None:
        """ProtocolError if the client breaks a rule."""
        for event in self.h2.receive_data(data):
            match event:
                case h2.events.RequestReceived():
                    self.bodies[event.stream_id] = bytearray()
                case h2.events.DataReceived():
                    self.bodies[event.stream_id] += event.data
                    self.give_back(event.flow_controlled_length, None)
                    if event.stream_ended is None:
                        self.give_back(event.flow_controlled_length, event.stream_id)
                case h2.events.StreamEnded():
                    self.h2.send_headers(event.stream_id, [(":status", "200"), ("x-padded", "yes")])
                    self.unsent[event.stream_id] = expected(self.answer_sizes, event.stream_id, self.bodies)
                case h2.events.RemoteSettingsChanged() | h2.events.SettingsAcknowledged() | h2.events.WindowUpdated():
                    pass  # the library itself acts on them
                case _:
                    raise AssertionError(f"what did the client do? {event}")
        self.write_on()

    def give_back(self, size: int, stream_id: int | None) -> None:
        """At once: the library's own way waits for ever where a window was lowered below what is open."""
        if size:
            self.h2.increment_flow_control_window(size, stream_id)

    def write_on(self) -> None:
        """Send as much as the windows allow, with padding."""
        for stream_id in list(self.unsent):
            while stream_id in self.unsent:
                body = self.unsent[stream_id]
                size = min(self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size) - 11
                if size <= 0 and body:
                    break
                self.h2.send_data(stream_id, body[:size], end_stream=size >= len(body), pad_length=10)
                self.unsent[stream_id] = body[size:]
                if size >= len(body):
                    del self.unsent[stream_id]


def expected(sizes: list[int], stream_id: int, bodies: dict[int, bytearray]) -> bytes:
    """The answer to a request."""
    return hashlib.sha256(bytes(bodies[stream_id])).digest() + b"y" * sizes[stream_id // 2 % len(sizes)]


@given(
    st.lists(SIZES, min_size=1, max_size=8),
    st.lists(SIZES, min_size=1, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(["INITIAL_WINDOW_SIZE", "MAX_CONCURRENT_STREAMS"]), st.integers(1_000, 70_000)),
        max_size=4,
    ),
    st.lists(st.sampled_from([50, 1_000, 9_000, 30_000]), min_size=1, max_size=3),
)
@settings(max_examples=40)
def test_the_library_takes_every_byte_and_every_answer_is_right(
    sizes: list[int], answer_sizes: list[int], changes: list[tuple[str, int]], pieces: list[int]
) -> None:
    """Bodies of any size, settings that change on the way, bytes that arrive in any pieces."""
    server = Answering(answer_sizes)
    client = Connection(LIMITS)
    bodies = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    waiting = [Stream(peer.HEAD, body, peer.BATCH, None) for body in bodies]
    streams = list(waiting)
    turn = 0
    while len(client.ended) < len(streams):
        turn += 1
        assert turn < 10_000, "the conversation stands still"
        while waiting and client.room():
            client.send_all([waiting.pop(0)])
        if changes and turn % 2:
            name, value = changes.pop()
            server.h2.update_settings({h2.settings.SettingCodes[name]: min(value, 100) if "MAX" in name else value})
        server.hear(client.take_output())
        said = server.h2.data_to_send()
        at = 0
        while at < len(said):
            step = pieces[at % len(pieces)]
            client.receive(said[at : at + step])
            at += step
        assert not client.failure and not client.refused
    for stream, body in zip(streams, bodies, strict=True):
        answer_size = answer_sizes[stream.stream_id // 2 % len(answer_sizes)]
        whole = hashlib.sha256(body).digest() + b"y" * answer_size
        assert stream.result == Answer(200, ((b"x-padded", b"yes"),), whole)


FRAMES = st.sampled_from(
    [
        peer.head,
        lambda n: peer.head(n, b"404", (b"a", b"b")),
        lambda n: peer.head(n, b"103"),
        lambda n: peer.head(n, b"204", end=True),
        lambda n: peer.data(n, b"hello", padding=5),
        lambda n: peer.data(n, b"world"),
        lambda n: peer.data(n, end=True),
        peer.answer,
        lambda n: HeadersFrame(n, peer.block([(b"t", b"1")]), flags=["END_HEADERS", "END_STREAM"]).serialize(),
        lambda n: peer.window(n, 10),
        lambda n: peer.window(0, 10),
        lambda n: peer.settings(INITIAL_WINDOW_SIZE=n * 1000),
        lambda n: peer.ping(b"12345678"),
        lambda n: peer.rst(n, 8),
        lambda n: peer.raw(2, 0, n, b"\0\0\0\0\1"),
        lambda n: peer.raw(0xBE, 0xFF, n, b"?"),
    ]
)


@given(st.lists(st.tuples(FRAMES, st.sampled_from([1, 3, 5])), max_size=14))
def test_what_the_library_reads_we_read(detail: list[tuple[Any, int]]) -> None:
    """The same frames to both: as long as the library has nothing against them, both have the same whole answers."""
    theirs = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=None))
    theirs.initiate_connection()
    ours = peer.Driven(peer.settings(MAX_CONCURRENT_STREAMS=10))
    theirs.receive_data(peer.settings(MAX_CONCURRENT_STREAMS=10))
    streams = {}
    for stream_id in (1, 3, 5):
        theirs.send_headers(stream_id, [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")])
        theirs.end_stream(stream_id)
        streams[stream_id] = ours.send()
    theirs.data_to_send()
    bodies = dict.fromkeys(streams, b"")
    ended: dict[int, bytes] = {}
    for frame, stream_id in detail:
        data = frame(stream_id)
        try:
            events = theirs.receive_data(data)
        except h2.exceptions.ProtocolError:
            return
        if any(isinstance(written, RstStreamFrame) for written in peer.read(theirs.data_to_send())):
            return
        ours.hear(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                bodies[event.stream_id] += event.data
            elif isinstance(event, h2.events.StreamEnded):
                ended[event.stream_id] = bodies[event.stream_id]
    assert not ours.connection.failure
    answers = {stream_id: stream.result for stream_id, stream in streams.items() if isinstance(stream.result, Answer)}
    assert {stream_id: answer.body for stream_id, answer in answers.items()} == ended

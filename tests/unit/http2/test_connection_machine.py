"""Random life of a connection: each request ends once and truthfully, windows add up, memory is bounded."""

from hyperframe.frame import DataFrame, HeadersFrame
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.http2 import peer
from waypost.http2 import Answer, Lost, Unknown
from waypost.http2.frames import DEFAULT_FRAME_SIZE, DEFAULT_WINDOW, HEADER_BYTES, REFUSED_STREAM
from waypost.http2.stream import Stream

CODES = st.sampled_from([0, 2, 7, 8, 11])


class ConnectionLife(RuleBasedStateMachine):
    """A client with a server that keeps its own account of the windows."""

    def __init__(self) -> None:
        super().__init__()
        self.driven = peer.Driven(peer.settings(MAX_CONCURRENT_STREAMS=5))
        self.sent: list[Stream] = []
        self.ended: list[Stream] = []
        self.window = DEFAULT_WINDOW
        self.initial = DEFAULT_WINDOW
        self.windows: dict[int, int] = {}
        # What could explain an end.
        self.cancelled: set[int] = set()
        self.resets: dict[int, list[int]] = {}
        self.heads: set[int] = set()
        self.last_processed = 2**31 - 1
        self.babbled = False

    def note(self) -> None:
        """Read what the client wrote, as its server: no frame may exceed a window."""
        for frame in self.driven.written:
            if isinstance(frame, HeadersFrame):
                self.windows[frame.stream_id] = self.initial
            elif isinstance(frame, DataFrame):
                size = len(frame.data)
                self.window -= size
                self.windows[frame.stream_id] -= size
                assert not size or (self.window >= 0 and self.windows[frame.stream_id] >= 0)
        self.driven.written = []
        for stream in self.driven.connection.ended:
            self.explain(stream)
        for stream in self.driven.connection.refused:
            self.excuse(stream)
        self.ended += self.driven.connection.ended + self.driven.connection.refused
        self.driven.ended()
        self.driven.refused()

    def explain(self, stream: Stream) -> None:
        """A result says what happened."""
        match stream.result:
            case Answer():
                assert stream.stream_id in self.heads or self.babbled
            case Unknown(_, Lost.TIMEOUT):
                assert stream.stream_id in self.cancelled
            case Unknown(_, Lost.RESET):
                told = stream.stream_id in self.resets or stream.stream_id > self.last_processed
                assert told or self.babbled
            case Unknown(_, Lost.CONNECTION_LOST):
                assert self.driven.connection.failure and stream.stream_id in self.windows
            case Unknown(_, Lost.BAD_ANSWER):
                assert stream.stream_id in self.windows
            case _:
                raise AssertionError(f"ended without a result: {stream.result}")

    def excuse(self, stream: Stream) -> None:
        """What is given back was never written, or the server said that it took nothing, and never answered."""
        refused = REFUSED_STREAM in self.resets.get(stream.stream_id, []) or stream.stream_id > self.last_processed
        assert stream.stream_id not in self.windows or (refused and stream.stream_id not in self.heads) or self.babbled

    def hear(self, *pieces: bytes) -> None:
        """The server says something."""
        self.driven.hear(*pieces)
        self.note()

    def some_id(self, choice: int) -> int:
        """A stream that was opened, open or not."""
        return self.sent[choice % len(self.sent)].stream_id

    @precondition(lambda self: self.driven.connection.room() > 0)
    @rule(size=st.integers(0, 40_000), flush=st.booleans())
    def request(self, size: int, flush: bool) -> None:
        """The client sends."""
        self.sent.append(self.driven.send(b"x" * size, flush=flush))
        if flush:
            self.note()

    @precondition(lambda self: self.driven.connection.streams)
    @rule(choice=st.integers(0, 9))
    def cancel(self, choice: int) -> None:
        """The client gives up."""
        streams = list(self.driven.connection.streams.values())
        stream = streams[choice % len(streams)]
        self.cancelled.add(stream.stream_id)
        self.driven.connection.cancel(stream, "late")
        self.hear()

    @precondition(lambda self: self.sent and self.driven.connection.streams)
    @rule(choice=st.integers(0, 30), parts=st.lists(st.sampled_from(["head", "interim", "data", "end", "trailers"])))
    def speak(self, choice: int, parts: list[str]) -> None:
        """Pieces of an answer, sensible or not, on any stream that was opened."""
        stream_id = self.some_id(choice)
        if "head" in parts:
            self.heads.add(stream_id)
        frames = {
            "head": peer.head(stream_id),
            "interim": peer.head(stream_id, b"103"),
            "data": peer.data(stream_id, b"y" * 300, padding=7),
            "end": peer.data(stream_id, end=True),
            "trailers": HeadersFrame(
                stream_id, peer.block([(b"a", b"b")]), flags=["END_HEADERS", "END_STREAM"]
            ).serialize(),
        }
        self.hear(*[frames[part] for part in parts])

    @precondition(lambda self: self.sent)
    @rule(choice=st.integers(0, 30))
    def answer(self, choice: int) -> None:
        """A whole answer."""
        self.heads.add(self.some_id(choice))
        self.hear(peer.answer(self.some_id(choice)))

    @precondition(lambda self: self.sent)
    @rule(choice=st.integers(0, 30), code=CODES)
    def reset(self, choice: int, code: int) -> None:
        """RST_STREAM, refusing or not."""
        self.resets.setdefault(self.some_id(choice), []).append(code)
        self.hear(peer.rst(self.some_id(choice), code))

    @precondition(lambda self: self.sent)
    @rule(choice=st.integers(0, 30), increment=st.integers(1, 50_000))
    def open_window(self, choice: int, increment: int) -> None:
        """WINDOW_UPDATE of a stream that the server has seen."""
        self.hear()
        stream_id = self.some_id(choice)
        if stream_id in self.windows:
            self.windows[stream_id] += increment
        self.hear(peer.window(stream_id, increment))

    @rule(increment=st.integers(1, 50_000))
    def open_connection_window(self, increment: int) -> None:
        """WINDOW_UPDATE of the connection."""
        self.window += increment
        self.hear(peer.window(0, increment))

    @rule(initial=st.integers(0, 100_000), limit=st.integers(0, 10))
    def change_settings(self, initial: int, limit: int) -> None:
        """Windows and stream limit, up and down, once the server has seen what was sent."""
        self.hear()
        for stream_id in self.windows:
            self.windows[stream_id] += initial - self.initial
        self.initial = initial
        self.hear(peer.settings(INITIAL_WINDOW_SIZE=initial, MAX_CONCURRENT_STREAMS=limit))

    @precondition(lambda self: len(self.sent) > 3)
    @rule(last=st.integers(0, 20), code=CODES)
    def go_away(self, last: int, code: int) -> None:
        """GOAWAY, rising or falling."""
        self.last_processed = min(self.last_processed, last)
        self.hear(peer.goaway(last, code))

    @precondition(lambda self: len(self.sent) > 4)
    @rule(rubbish=st.binary(max_size=30))
    def babble(self, rubbish: bytes) -> None:
        """Bytes that may be anything."""
        self.babbled = True
        self.hear(rubbish)

    @precondition(lambda self: len(self.sent) > 4)
    @rule()
    def lose(self) -> None:
        """The connection is gone."""
        self.driven.connection.lost("gone")
        self.note()

    @invariant()
    def ends_once(self) -> None:
        """Each request is open or ended, never both, never twice; a finished one keeps nothing in the connection."""
        connection = self.driven.connection
        ended = [id(stream) for stream in self.ended]
        assert len(ended) == len(set(ended))
        opened = {id(stream) for stream in connection.streams.values()}
        assert opened.isdisjoint(ended)
        assert opened | set(ended) == {id(stream) for stream in self.sent}
        out = connection._out
        assert out.waiting.keys() | out.stalled.keys() == {
            stream_id for stream_id, stream in connection.streams.items() if not stream.all_framed
        }
        assert out.waiting.keys().isdisjoint(out.stalled)
        for stream in (*out.waiting.values(), *out.stalled.values()):
            assert out.window <= 0 or out.initial_window + stream.credit <= 0

    @invariant()
    def keeps_little(self) -> None:
        """At most a frame, a header block, and what the streams in flight may have."""
        connection = self.driven.connection
        assert len(connection._reader._rest) < DEFAULT_FRAME_SIZE + HEADER_BYTES
        assert len(connection._reader._block) <= 1 << 16
        assert len(connection.goaways) <= 8
        assert all(stream.received <= peer.LIMITS.max_response_bytes for stream in connection.streams.values())

    def teardown(self) -> None:
        """At the latest with the connection all have ended."""
        self.driven.connection.lost("end of test")
        self.note()
        assert len(self.ended) == len(self.sent)


ConnectionLife.TestCase.settings = hypothesis_settings(max_examples=150, stateful_step_count=40)
TestConnectionLife = ConnectionLife.TestCase

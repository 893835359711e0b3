"""The protocol state of one client connection, without I/O: bytes in, ended requests and bytes out (RFC 9113)."""

from typing import Final

from . import control, frames
from .abandoned import Abandoned, must_have_been
from .answer_head import HeadReader, MalformedAnswer
from .control import GoAway
from .frames import (
    DATA,
    DEFAULT_FRAME_SIZE,
    END_HEADERS,
    END_STREAM,
    HEADER_BYTES,
    HEADERS,
    PROTOCOL_ERROR,
    ConnectionFault,
)
from .opening import RECEIVE_WINDOW, ConnectionLimits, opening
from .outbound import Outbound
from .reader import FrameReader
from .results import Answer, Lost, Result, Unknown
from .stream import Stream

# Their answers have no body, whatever length it would have (RFC 9110, 8.6 and 15.4.5).
_WITHOUT_BODY: Final = (204, 304)
# Answers to PING and SETTINGS that wait because the server does not read.
_MOST_UNREAD_REPLIES: Final = 1000


class Connection:
    """A client connection; whoever drives it writes `take_output()` after each call and reads `ended` and `refused`.

    A stream given to `send_all` comes back exactly once: in `ended` with its result, or in `refused` when the server
    provably took nothing of it. `lost` gives back all that are left.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.streams: dict[int, Stream] = {}
        self.ended: list[Stream] = []
        self.refused: list[Stream] = []
        self.refusals = 0  # answers that are no 200, since the driver looked last
        self.failure = ""
        self.greeted = False
        self.goaways: list[GoAway] = []  # not yet taken up by the driver
        self.finished = False  # no request can be sent on this connection any more
        self.pong_awaited = b""
        self.stream_limit = limits.first_streams
        self._limits = limits
        self._next_id = 1
        self._flushed_below = 1
        self._abandoned = Abandoned()
        self._replies = 0
        self._reader = FrameReader(self)
        self._unacknowledged = 0
        self._heads = HeadReader(limits.max_header_list_bytes)
        self._out = Outbound()
        self._out.pieces.append(opening(limits))

    # What the driver asks for

    def room(self) -> int:
        """Return how many requests may be sent now."""
        if self._out.window <= 0 or self.finished:
            return 0
        room = self.stream_limit - len(self.streams)
        return room if room > 0 else 0

    def send_all(self, streams: list[Stream]) -> int:
        """Start requests, at most as many as there is `room` for; return how many before the window was used up."""
        room = (frames.LARGEST_STREAM_ID - self._next_id) // 2 + 1
        started = self._out.request_all(streams[:room] if room < len(streams) else streams, self._next_id)
        stream_id = self._next_id
        open_streams = self.streams
        for stream in streams if started == len(streams) else streams[:started]:
            open_streams[stream_id] = stream
            stream_id += 2
        self._next_id = stream_id
        if stream_id > frames.LARGEST_STREAM_ID:
            self.finished = True
        return started

    def cancel(self, stream: Stream, reason: str) -> None:
        """Give up a request: the server is told, the result is Unknown."""
        self._break(stream, frames.CANCEL, Unknown(reason, Lost.TIMEOUT))

    def ping(self, opaque: bytes) -> None:
        """Send a PING to see whether the server is alive; `pong_awaited` is empty again when it answered."""
        self.pong_awaited = opaque
        self._out.pieces.append(frames.ping(opaque))

    def say_goodbye(self) -> None:
        """Tell the server that this side closes."""
        self._out.pieces.append(frames.goaway(0, frames.NO_ERROR))

    def has_output(self) -> bool:
        """Tell whether `take_output` would give something."""
        return bool(self._out.pieces)

    def take_output(self) -> bytes:
        """Take what is to be written now; a request taken out here counts as written."""
        pieces = self._out.pieces
        if not pieces:
            return b""
        self._out.pieces = []
        self._flushed_below = self._next_id
        self._replies = 0
        return b"".join(pieces)

    def lost(self, reason: str, *, nothing_taken: bool = False) -> None:
        """End all streams of a lost connection: what was written is Unknown, unless nothing was taken."""
        self.failure = self.failure or reason
        self.finished = True
        for stream in self.streams.values():
            if nothing_taken or stream.stream_id >= self._flushed_below:
                self._refuse(stream, reason)
            else:
                stream.result = Unknown(reason)
                self.ended.append(stream)
        self.streams.clear()
        self._out.forget_all()

    # What the server says

    def receive(self, data: bytes) -> None:
        """Process what was read; after a fault of the server `failure` is set and the connection is of no more use."""
        if self.failure:
            return
        try:
            self._reader.read(data)
            self._out.resume()
        except ConnectionFault as fault:
            # Instead of what still waits to be written: its requests are given back.
            self._out.pieces = [frames.goaway(0, fault.code)]
            self.lost(f"{frames.error_name(fault.code)}: {fault.reason}")

    def on_plain(self, data: bytes, at: int) -> int:
        """Take in the frames of *data* from *at* on that are plain, one behind the other; return where they end.

        Plain are a whole head of a known form, and a body in one frame that ends its stream, where the stream waits for
        nothing else. A server may send them in turn, or all heads before the bodies. What is anything more is left to
        the other methods, which judge it: nothing of it is taken in here.
        """
        end = len(data)
        unpack = frames.HEADER.unpack_from
        streams = self.streams
        seen = self._heads.seen
        ended = self.ended
        largest = min(self._limits.max_response_bytes, DEFAULT_FRAME_SIZE)
        window = (RECEIVE_WINDOW >> 1) - self._unacknowledged  # what needs no WINDOW_UPDATE
        while end - at >= HEADER_BYTES:
            header: tuple[int, int, int] = unpack(data, at)
            size_and_kind, flags, stream_id = header
            size = size_and_kind >> 8
            start = at + HEADER_BYTES
            stop = start + size
            stream = streams.get(stream_id)
            if stop > end or stream is None or not stream.all_framed:
                break
            head = stream.answer_head
            if head is None:
                if size_and_kind & 0xFF != HEADERS or flags & ~END_STREAM != END_HEADERS:
                    break
                block = data[start:stop]
                head = seen.get(block) or self._heads.alike(block)
                if head is None or head.status < 200:
                    break
                if not flags & END_STREAM:
                    stream.answer_head = head
                    at = stop
                    continue
                size = 0
            elif size_and_kind & 0xFF != DATA or flags != END_STREAM or stream.received:
                break
            if head.content_length not in (-1, size) or size > largest or size > window:
                break
            del streams[stream_id]
            stream.result = Answer(head.status, head.fields, data[start:stop] if size else b"")
            self.refusals += head.status != 200
            ended.append(stream)
            window -= size
            at = stop
        self._unacknowledged = (RECEIVE_WINDOW >> 1) - window
        return at

    def on_data(self, stream_id: int, flags: int, payload: bytes, size: int) -> None:
        """Keep a piece of an answer, and give the window back (padding counts, RFC 9113, 6.1)."""
        self._unacknowledged += size
        if self._unacknowledged > RECEIVE_WINDOW >> 1:
            self._reply(frames.window_update(0, self._unacknowledged))
            self._unacknowledged = 0
        stream = self.streams.get(stream_id)
        if stream is None:
            self._abandoned.check(stream_id, self._next_id)
        elif stream.answer_head is None:
            self._broken(stream, PROTOCOL_ERROR, "body before the head of the answer")
        elif stream.received + len(payload) > self._limits.max_response_bytes:
            self._broken(stream, frames.CANCEL, f"answer above {self._limits.max_response_bytes} bytes")
        else:
            if not stream.received:
                stream.first_chunk = payload
                stream.received = len(payload)
            elif payload:
                stream.append(payload)
            if flags & END_STREAM:
                self._answered(stream)
            elif size != len(payload):
                self._reply(frames.window_update(stream_id, size - len(payload)))

    def on_header_block(self, stream_id: int, flags: int, block: bytes) -> None:
        """Read the head of an answer, an interim one, or trailers."""
        stream = self.streams.get(stream_id)
        if stream is None:
            self._abandoned.check_header_block(stream_id, self._next_id)
            self._heads.pass_over(block)
            return
        try:
            if stream.answer_head is None:
                head = self._heads.seen.get(block) or self._heads.read(block)
                if head.status >= 200:
                    stream.answer_head = head
                elif flags & END_STREAM or head.status == 101:
                    raise MalformedAnswer("interim answer that ends the stream or switches protocols")
                else:
                    stream.count_interim()
            elif flags & END_STREAM:
                stream.trailers = self._heads.read_trailers(block)
            else:
                self._heads.pass_over(block)
                raise MalformedAnswer("trailers that do not end the stream")
        except MalformedAnswer as malformed:
            self._broken(stream, PROTOCOL_ERROR, f"malformed answer: {malformed}")
            return
        if flags & END_STREAM:
            self._answered(stream)

    def on_control(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """Act on a frame that carries no answer; kinds the RFC does not know are ignored (RFC 9113, 4.1)."""
        if kind == frames.WINDOW_UPDATE:
            self._window_update(stream_id, control.read_window_update(payload))
        elif kind == frames.RST_STREAM:
            self._reset(stream_id, control.read_reset(payload))
        elif kind == frames.SETTINGS:
            if flags & frames.ACK:
                control.check_settings_ack(stream_id, payload, self.greeted)
            else:
                self._settings(control.read_settings(stream_id, payload))
        elif kind == frames.PING:
            self._ping(flags, control.read_ping(stream_id, payload))
        elif kind == frames.GOAWAY:
            self._goaway(control.read_goaway(stream_id, payload))
        elif kind == frames.PUSH_PROMISE:
            raise ConnectionFault(PROTOCOL_ERROR, "PUSH_PROMISE although push is off")
        elif kind == frames.PRIORITY:
            control.check_priority(stream_id, payload)

    def _ping(self, flags: int, opaque: bytes) -> None:
        if not flags & frames.ACK:
            self._reply(frames.ping(opaque, frames.ACK))
        elif opaque == self.pong_awaited:
            self.pong_awaited = b""

    def _reset(self, stream_id: int, code: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            must_have_been(stream_id, self._next_id)
            return
        reason = f"the server reset the stream: {frames.error_name(code)}"
        del self.streams[stream_id]
        self._out.forget(stream_id)
        self._abandoned.add(stream_id, self._next_id)
        if code == frames.REFUSED_STREAM and stream.answer_head is None:
            self._refuse(stream, reason)
        else:
            self._end(stream, Unknown(reason, Lost.RESET))

    def _window_update(self, stream_id: int, increment: int) -> None:
        if stream_id == 0:
            if increment == 0:
                raise ConnectionFault(PROTOCOL_ERROR, "WINDOW_UPDATE of nothing")
            self._out.widen(increment)
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            must_have_been(stream_id, self._next_id)
        elif increment == 0:
            self._broken(stream, PROTOCOL_ERROR, "WINDOW_UPDATE of nothing")
        elif not self._out.widen_stream(stream, increment):
            self._broken(stream, frames.FLOW_CONTROL_ERROR, "stream window above 2^31-1")

    def _settings(self, values: list[tuple[int, int]]) -> None:
        if not self.greeted:
            self.greeted = True
            self.stream_limit = self._limits.most_streams
        for name, value in values:
            if name == frames.MAX_CONCURRENT_STREAMS:
                self.stream_limit = min(value, self._limits.most_streams)
            elif name == frames.INITIAL_WINDOW_SIZE:
                self._out.set_initial_window(value, self.streams)
            elif name == frames.MAX_FRAME_SIZE:
                self._out.frame_size = value
        # What the new values allow comes after the acknowledgement: some servers hold us to the old ones until then.
        self._reply(frames.SETTINGS_ACK)

    def _reply(self, frame: bytes) -> None:
        self._replies += 1
        if self._replies > _MOST_UNREAD_REPLIES:
            raise ConnectionFault(frames.ENHANCE_YOUR_CALM, "asks without reading the answers")
        self._out.pieces.append(frame)

    def _goaway(self, goaway: GoAway) -> None:
        self.finished = True
        self.goaways = [*self.goaways[-7:], goaway]
        above: list[Stream] = []
        for stream_id in reversed(self.streams):  # their ids rise: no other is looked at
            if stream_id <= goaway.last_stream_id:
                break
            above.append(self.streams[stream_id])
        for stream in reversed(above):
            del self.streams[stream.stream_id]
            self._out.forget(stream.stream_id)
            self._abandoned.add(stream.stream_id, self._next_id)
            reason = f"the server went away before this request: {frames.error_name(goaway.code)}"
            if stream.answer_head is None:
                self._refuse(stream, reason)
            else:
                self._end(stream, Unknown(reason, Lost.RESET))

    # How a stream ends

    def _answered(self, stream: Stream) -> None:
        head = stream.answer_head
        assert head is not None
        length = head.content_length
        if length not in (-1, stream.received) and (stream.received or head.status not in _WITHOUT_BODY):
            self._broken(stream, PROTOCOL_ERROR, "malformed answer: body shorter or longer than its content-length")
            return
        del self.streams[stream.stream_id]
        if not stream.all_framed:
            # The server answered without waiting for the rest (RFC 9113, 8.1): it does not want it.
            self._out.forget(stream.stream_id)
            self._abandon(stream.stream_id, frames.CANCEL)
        body = stream.first_chunk if stream.more is None else bytes(stream.more)
        stream.result = Answer(head.status, head.fields, body, stream.trailers)
        self.refusals += head.status != 200
        self.ended.append(stream)

    def _broken(self, stream: Stream, code: int, reason: str) -> None:
        self._break(stream, code, Unknown(reason, Lost.BAD_ANSWER))

    def _break(self, stream: Stream, code: int, result: Result) -> None:
        del self.streams[stream.stream_id]
        self._out.forget(stream.stream_id)
        self._abandon(stream.stream_id, code)
        self._end(stream, result)

    def _abandon(self, stream_id: int, code: int) -> None:
        self._out.pieces.append(frames.rst_stream(stream_id, code))
        self._abandoned.add(stream_id, self._next_id)

    def _end(self, stream: Stream, result: Result) -> None:
        stream.result = result
        self.ended.append(stream)

    def _refuse(self, stream: Stream, reason: str) -> None:
        stream.refusal = reason
        self.refused.append(stream)

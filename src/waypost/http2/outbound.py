"""The sending half of a connection: framing of requests under the peer's flow control (RFC 9113, section 5.2).

A frame of the peer makes as much work as it lets us send, however many streams are open. A stream's window is kept as
the initial window, which all share, and a credit of its own, so that a change of the first touches no stream.
"""

from .frames import (
    CONTINUATION,
    DATA,
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    HEADER,
    HEADERS,
    LARGEST_WINDOW,
    ConnectionFault,
    frame_header,
)
from .hpack import TABLE_SIZE_ZERO
from .stream import Stream

_pack = HEADER.pack


class Outbound:
    """The bytes to write, and the bodies that wait for window."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.window = DEFAULT_WINDOW
        self.initial_window = DEFAULT_WINDOW
        self.frame_size = DEFAULT_FRAME_SIZE
        # Bodies that wait for the connection's window, in the order in which they came to that, and for their stream's.
        self.waiting: dict[int, Stream] = {}
        self.stalled: dict[int, Stream] = {}
        self._initial_window_raised = False
        # No open stream has more.
        self._most_credit = 0
        self._said_table_size = False

    def request_all(self, streams: list[Stream], stream_id: int) -> int:
        """Frame requests from *stream_id* on, until the window is used up; return how many, the last maybe in part."""
        pieces = self.pieces
        frame_size = self.frame_size
        largest = min(frame_size, self.initial_window)
        window = self.window
        started = 0
        for stream in streams:
            if stream.stream_id:
                stream.begin_again()
            stream.stream_id = stream_id
            head = stream.head
            body = stream.body
            if not self._said_table_size:
                self._said_table_size = True
                head = TABLE_SIZE_ZERO + head
            size = len(head)
            length = len(body)
            if size > frame_size:
                self._long_head(head, stream_id, not body)
            elif length and length <= window and length <= largest:
                pieces += (
                    _pack(size << 8 | HEADERS, END_HEADERS, stream_id),
                    head,
                    _pack(length << 8 | DATA, END_STREAM, stream_id),
                    body,
                )
                window -= length
                stream.credit = -length
                stream.all_framed = True
            else:
                pieces += (
                    _pack(size << 8 | HEADERS, END_HEADERS if body else END_HEADERS | END_STREAM, stream_id),
                    head,
                )
            if not stream.all_framed:
                self._rest_of(stream, window)
                window = self.window
            started += 1
            stream_id += 2
            if window <= 0:
                break
        self.window = window
        return started

    def _rest_of(self, stream: Stream, window: int) -> None:
        """Frame what *window* and the stream's own let through of a body whose head is framed."""
        self.window = window
        if stream.body:
            self._continue(stream)
        else:
            stream.all_framed = True

    def _long_head(self, head: bytes, stream_id: int, ends: bool) -> None:
        step = self.frame_size
        self.pieces.append(frame_header(step, HEADERS, END_STREAM if ends else 0, stream_id) + head[:step])
        for start in range(step, len(head), step):
            part = head[start : start + step]
            flags = END_HEADERS if start + step >= len(head) else 0
            self.pieces.append(frame_header(len(part), CONTINUATION, flags, stream_id) + part)

    def forget(self, stream_id: int) -> None:
        """Forget the rest of a body that is not to be sent any more."""
        self.waiting.pop(stream_id, None)
        self.stalled.pop(stream_id, None)

    def _continue(self, stream: Stream) -> None:
        """Frame what the windows let through of a body, and note what its rest waits for."""
        body = stream.body
        stream_id = stream.stream_id
        while not stream.all_framed:
            own = self.initial_window + stream.credit
            if own <= 0:
                self.waiting.pop(stream_id, None)
                self.stalled[stream_id] = stream
                return
            if self.window <= 0:
                self.stalled.pop(stream_id, None)
                self.waiting[stream_id] = stream
                return
            start = stream.framed
            size = min(len(body) - start, self.window, own, self.frame_size)
            stream.framed = start + size
            stream.all_framed = stream.framed == len(body)
            flags = END_STREAM if stream.all_framed else 0
            self.pieces.append(frame_header(size, DATA, flags, stream_id))
            self.pieces.append(body[start : start + size])
            self.window -= size
            stream.credit -= size
        self.forget(stream_id)

    def widen(self, increment: int) -> None:
        """Widen the connection's window, and send on what waited for it, in turn."""
        self.window += increment
        if self.window > LARGEST_WINDOW:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "connection window above 2^31-1")
        while self.window > 0 and self.waiting:
            self._continue(next(iter(self.waiting.values())))

    def widen_stream(self, stream: Stream, increment: int) -> bool:
        """Widen one stream's window; False if by too much."""
        stream.credit += increment
        if self.initial_window + stream.credit > LARGEST_WINDOW:
            return False
        self._most_credit = max(self._most_credit, stream.credit)
        if stream.stream_id in self.stalled:
            self._continue(stream)
        return True

    def set_initial_window(self, size: int, streams: dict[int, Stream]) -> None:
        """Change the initial window: every open stream's window moves by the difference (RFC 9113, 6.9.2).

        What that allows is left to `resume`.
        """
        if size + self._most_credit > LARGEST_WINDOW:
            # Perhaps whoever had that much has used it, or is closed.
            self._most_credit = max([0, *[stream.credit for stream in streams.values()]])
            if size + self._most_credit > LARGEST_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "stream window above 2^31-1")
        self._initial_window_raised |= size > self.initial_window
        self.initial_window = size

    def forget_all(self) -> None:
        """Forget every body: nothing more is to be sent."""
        self.waiting.clear()
        self.stalled.clear()

    def resume(self) -> None:
        """Send on the streams to which raised initial windows gave room; called once for all that was read."""
        if self._initial_window_raised:
            self._initial_window_raised = False
            for stream in list(self.stalled.values()):
                if self.initial_window + stream.credit > 0:
                    self._continue(stream)

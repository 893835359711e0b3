"""The sending half of a connection: framing of requests under the peer's flow control (RFC 9113, section 5.2)."""

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


class Outbound:
    """Bytes to write, and the bodies that wait for window."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.window = DEFAULT_WINDOW
        self.initial_window = DEFAULT_WINDOW
        self.frame_size = DEFAULT_FRAME_SIZE
        # In the order of their requests; each is served as far as its own and the connection's window go.
        self.blocked: dict[int, Stream] = {}
        self._said_table_size = False

    def request(self, stream: Stream, stream_id: int) -> None:
        """Frame a whole request, or as much of its body as the windows let through; the rest follows by itself."""
        stream.begin(stream_id, self.initial_window)
        pieces = self.pieces
        head = stream.head
        if not self._said_table_size:
            self._said_table_size = True
            head = TABLE_SIZE_ZERO + head
        body = stream.body
        size = len(head)
        if size <= self.frame_size:
            flags = END_HEADERS if body else END_HEADERS | END_STREAM
            pieces.append(HEADER.pack(size << 8 | HEADERS, flags, stream_id))
            pieces.append(head)
        else:
            self._long_head(head, stream_id, not body)
        size = len(body)
        if not size:
            stream.all_framed = True
        elif size <= self.window and size <= stream.window and size <= self.frame_size:
            pieces.append(HEADER.pack(size << 8 | DATA, END_STREAM, stream_id))
            pieces.append(body)
            self.window -= size
            stream.window -= size
            stream.all_framed = True
        else:
            self.blocked[stream_id] = stream
            self.pump()

    def _long_head(self, head: bytes, stream_id: int, ends: bool) -> None:
        step = self.frame_size
        self.pieces.append(frame_header(step, HEADERS, END_STREAM if ends else 0, stream_id) + head[:step])
        for start in range(step, len(head), step):
            part = head[start : start + step]
            flags = END_HEADERS if start + step >= len(head) else 0
            self.pieces.append(frame_header(len(part), CONTINUATION, flags, stream_id) + part)

    def pump(self) -> None:
        """Frame what the windows let through of the waiting bodies, oldest request first."""
        for stream in list(self.blocked.values()):
            if self.window <= 0:
                return
            self._continue(stream)
            if stream.all_framed:
                del self.blocked[stream.stream_id]

    def _continue(self, stream: Stream) -> None:
        body = stream.body
        while not stream.all_framed:
            size = min(len(body) - stream.framed, self.window, stream.window, self.frame_size)
            if size <= 0:
                return
            start = stream.framed
            stream.framed = start + size
            stream.all_framed = stream.framed == len(body)
            flags = END_STREAM if stream.all_framed else 0
            self.pieces.append(frame_header(size, DATA, flags, stream.stream_id))
            self.pieces.append(body[start : start + size])
            self.window -= size
            stream.window -= size

    def widen(self, increment: int) -> None:
        """The peer opened the connection's window."""
        self.window += increment
        if self.window > LARGEST_WINDOW:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "connection window above 2^31-1")
        self.pump()

    def set_initial_window(self, size: int, streams: dict[int, Stream]) -> None:
        """The peer changed its initial window: every open stream's moves by the difference (RFC 9113, 6.9.2).

        What that allows is left to `pump`.
        """
        difference = size - self.initial_window
        self.initial_window = size
        for stream in streams.values():
            stream.window += difference
            if stream.window > LARGEST_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "stream window above 2^31-1")

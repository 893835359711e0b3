"""One request and what came back of it so far."""

from collections.abc import Callable

from .answer_head import AnswerHead
from .hpack import Field
from .results import Result


class Stream:
    """A request on its way: queued, then one HTTP/2 stream, on a second connection if it was refused.

    Made once a request, so its defaults live in the class and creation writes only what differs.
    """

    stream_id: int = 0
    window: int = 0  # body bytes that the peer still lets this stream send; below zero after a lowered setting
    framed: int = 0  # body bytes already framed
    all_framed: bool = False
    answer_head: AnswerHead | None = None
    first_chunk: bytes = b""
    more: bytearray | None = None  # the whole body, once it came in several frames
    received: int = 0
    trailers: tuple[Field, ...] = ()
    refusal: str = ""  # why the peer, or our side, took nothing of it
    refused_by: object = None  # the connection that refused it
    answer_by: float = 0.0  # the deadline, where this is before it
    tick: int = 0
    overdue: bool = False  # its deadline passed in flight; a late answer is waited for

    def __init__(
        self,
        head: bytes,
        body: bytes,
        deadline: float,
        on_result: Callable[[Result], None],
        answer_by: float = 0.0,
    ) -> None:
        self.head = head
        self.body = body
        self.deadline = deadline
        self.on_result = on_result
        if answer_by:
            self.answer_by = answer_by
        self.result: Result | None = None  # here, since mypyc sets no class default of a union with three members

    def begin(self, stream_id: int, window: int) -> None:
        """Start (again) as stream *stream_id*, with nothing framed and nothing received."""
        began_before = self.stream_id != 0
        self.stream_id = stream_id
        self.window = window
        if began_before:
            self.framed = 0
            self.all_framed = False
            self.answer_head = None
            self.first_chunk = b""
            self.more = None
            self.received = 0
            self.trailers = ()

    def append(self, chunk: bytes) -> None:
        """Keep a piece of the answer's body."""
        if not self.received:
            self.first_chunk = chunk
        else:
            if self.more is None:
                self.more = bytearray(self.first_chunk)
            self.more += chunk
        self.received += len(chunk)

    def answer_body(self) -> bytes:
        """The body received so far."""
        return self.first_chunk if self.more is None else bytes(self.more)

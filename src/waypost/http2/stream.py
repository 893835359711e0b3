"""A request and its answer so far."""

from collections.abc import Callable
from typing import Any, Final

from .answer_head import AnswerHead, MalformedAnswer
from .hpack import Field
from .results import Result

# More (1xx) than this before the answer is a server that does not mean to answer.
MOST_INTERIM_ANSWERS: Final = 16


class Batch:
    """Requests that were handed over together: by when they end, and who is told how."""

    def __init__(
        self, deadline: float, answer_by: float, on_results: Callable[[list[tuple[Any, Result]]], None], left: int
    ) -> None:
        self.deadline = deadline
        self.answer_by = answer_by  # the deadline, where this is before it
        self.on_results = on_results
        self.left = left  # how many have not ended
        self.tick = 0
        self.extended = False  # its deadline passed with some in flight; late answers are waited for


class Stream:
    """A request on its way: queued, then one HTTP/2 stream, on a second connection if it was refused.

    Made once a request, so its defaults live in the class and creation writes only what differs.
    """

    stream_id: int = 0
    credit: int = 0  # what the peer let this stream send beyond its initial window, less what was sent
    framed: int = 0  # body bytes already framed
    all_framed: bool = False
    interim_answers: int = 0
    answer_head: AnswerHead | None = None
    first_chunk: bytes = b""
    more: bytearray | None = None  # the whole body, once it came in several frames
    received: int = 0
    trailers: tuple[Field, ...] = ()
    refusal: str = ""  # why the peer, or our side, took nothing of it
    refused_by: object = None  # the connection that refused it
    overdue: bool = False  # its deadline passed in flight; a late answer is waited for

    def __init__(self, head: bytes, body: bytes, batch: Batch, tag: object) -> None:
        self.head = head
        self.body = body
        self.batch = batch
        self.tag = tag  # what the caller knows it by
        self.result: Result | None = None  # here, since mypyc sets no class default of a union with three members

    def begin_again(self) -> None:
        """Forget what was framed and received: it starts again, as another stream."""
        self.credit = 0
        self.framed = 0
        self.all_framed = False
        self.interim_answers = 0
        self.answer_head = None
        self.first_chunk = b""
        self.more = None
        self.received = 0
        self.trailers = ()

    def count_interim(self) -> None:
        """Note an interim answer; MalformedAnswer if it is one too many."""
        self.interim_answers += 1
        if self.interim_answers > MOST_INTERIM_ANSWERS:
            raise MalformedAnswer(f"more than {MOST_INTERIM_ANSWERS} interim answers")

    def append(self, chunk: bytes) -> None:
        """Keep a further piece of the answer's body."""
        if self.more is None:
            self.more = bytearray(self.first_chunk)
        self.more += chunk
        self.received += len(chunk)

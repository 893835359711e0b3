"""A server that uses its header table although ours has no room, as h2o 2.2 does: each block is read in its turn."""

from collections.abc import Callable

import hpack
import pytest

from tests.unit.http2.peer import Driven, raw, rst
from waypost.http2 import Answer, Unknown
from waypost.http2.frames import END_HEADERS, END_STREAM

STATUS = (b":status", b"200")
SERVER = (b"server", b"h2o/2.2.5")


class Indexing:
    """A client with requests in flight, and the encoder of a server that never heard of its table size."""

    def __init__(self, requests: int) -> None:
        self.encoder = hpack.Encoder()
        self.driven = Driven()
        for _ in range(requests):
            self.driven.send(b"x")

    def answer(self, stream_id: int, *fields: tuple[bytes, bytes], flags: int = END_HEADERS | END_STREAM) -> bytes:
        """The head of an answer, with all its fields put into the table."""
        return raw(1, flags, stream_id, self.encoder.encode([STATUS, *fields]))


def test_a_field_of_an_earlier_answer_is_found_again() -> None:
    """Only the first block spells it out; the same block again means the same."""
    server = Indexing(3)
    first, second, third = (server.answer(stream_id, SERVER) for stream_id in (1, 3, 5))
    assert len(second) == len(third) < len(first)
    server.driven.hear(first, second, third)
    assert server.driven.ended() == [Answer(200, (SERVER,), b"")] * 3


def test_the_same_bytes_mean_what_the_table_says_now() -> None:
    """A block that was seen before is not taken for what it meant then."""
    server = Indexing(4)
    first, again = server.answer(1, (b"x-id", b"1")), server.answer(3, (b"x-id", b"1"))
    second, now = server.answer(5, (b"x-id", b"2")), server.answer(7, (b"x-id", b"2"))
    assert again[9:] == now[9:]
    server.driven.hear(first, again, second, now)
    assert [result.headers for result in server.driven.ended() if isinstance(result, Answer)] == [
        ((b"x-id", b"1"),),
        ((b"x-id", b"1"),),
        ((b"x-id", b"2"),),
        ((b"x-id", b"2"),),
    ]


LOST: dict[str, Callable[[Indexing], object]] = {
    "cancelled": lambda server: server.driven.connection.cancel(server.driven.connection.streams[1], "late"),
    "reset": lambda server: server.driven.hear(rst(1, 8)),
    "too large": lambda server: server.driven.hear(server.answer(1, (b"x-large", b"a" * 2100))),
    "trailers without an end": lambda server: server.driven.hear(server.answer(1, flags=END_HEADERS)),
    "not proper": lambda server: server.driven.hear(server.answer(1, (b"Server", b"x"))),
}
"""What makes the next block on stream 1 one that nobody waits for, or that is not taken."""


@pytest.mark.parametrize("lost", LOST)
def test_what_an_answer_nobody_keeps_put_into_the_table_is_found(lost: str) -> None:
    """Every block is decoded, whatever becomes of its request."""
    server = Indexing(2)
    LOST[lost](server)
    server.driven.hear(server.answer(1, SERVER, flags=END_HEADERS))
    (result,) = server.driven.ended()
    assert isinstance(result, Unknown)
    server.driven.hear(server.answer(3, SERVER))
    assert server.driven.ended() == [Answer(200, (SERVER,), b"")]


def test_what_an_interim_answer_put_into_the_table_is_found() -> None:
    """It is a block like any other."""
    server = Indexing(1)
    interim = raw(1, END_HEADERS, 1, server.encoder.encode([(b":status", b"103"), SERVER]))
    server.driven.hear(interim, server.answer(1, SERVER))
    assert server.driven.ended() == [Answer(200, (SERVER,), b"")]


def test_a_list_too_large_is_taken_into_the_table_whole() -> None:
    """Behind the limit, too."""
    server = Indexing(2)
    server.driven.hear(server.answer(1, (b"x-large", b"a" * 2100), SERVER), server.answer(3, SERVER))
    assert server.driven.ended()[1] == Answer(200, (SERVER,), b"")

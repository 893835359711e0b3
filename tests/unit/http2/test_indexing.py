"""A server that uses its header table although ours has no room, as h2o 2.2 does: each block is read in its turn."""

import hpack
import pytest

from tests.unit.http2.peer import Driven, raw, rst
from waypost.http2 import Answer, Unknown

STATUS = (b":status", b"200")
SERVER = (b"server", b"h2o/2.2.5")
HEADERS_WHOLE = 0x5
"""END_STREAM and END_HEADERS."""


class Indexing:
    """A client with requests in flight, and the encoder of a server that never heard of its table size."""

    def __init__(self, requests: int) -> None:
        self.encoder = hpack.Encoder()
        self.driven = Driven()
        for _ in range(requests):
            self.driven.send(b"x")

    def answer(self, stream_id: int, *fields: tuple[bytes, bytes], flags: int = HEADERS_WHOLE) -> bytes:
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


@pytest.mark.parametrize(
    "lost", ["cancelled", "reset", "too large", "trailers without an end", "interim answer", "not proper"]
)
def test_what_an_answer_nobody_keeps_put_into_the_table_is_found(lost: str) -> None:
    """Every block is decoded, whatever becomes of its request."""
    server = Indexing(2)
    driven = server.driven
    match lost:
        case "cancelled":
            driven.connection.cancel(driven.connection.streams[1], "late")
            driven.hear(server.answer(1, SERVER))
        case "reset":
            driven.hear(rst(1, 8), server.answer(1, SERVER))
        case "too large":
            driven.hear(server.answer(1, (b"x-large", b"a" * 2100), SERVER))
        case "trailers without an end":
            driven.hear(server.answer(1, flags=4), server.answer(1, SERVER, flags=4))
        case "interim answer":
            driven.hear(raw(1, 4, 1, server.encoder.encode([(b":status", b"103"), SERVER])), server.answer(1))
        case "not proper":
            driven.hear(server.answer(1, (b"Server", b"x"), SERVER))
    (result,) = driven.ended()
    assert isinstance(result, Unknown) or lost == "interim answer"
    driven.hear(server.answer(3, SERVER))
    assert driven.ended() == [Answer(200, (SERVER,), b"")]

"""Plain frames are taken in together, in whatever order a server sends them, and end as they do one by one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.http2 import peer
from waypost.http2.connection import Connection
from waypost.http2.frames import DEFAULT_FRAME_SIZE, DEFAULT_WINDOW
from waypost.http2.opening import ConnectionLimits
from waypost.http2.reader import FrameReader
from waypost.http2.results import Answer, Result
from waypost.http2.stream import Stream

STREAMS = 5


def asked(body: bytes = b"hello", limits: ConnectionLimits = peer.LIMITS) -> Connection:
    """Make a connection that knows the usual heads, and waits for the answers to five requests."""
    driven = peer.Driven(limits=limits)
    for n, kind in enumerate(["plain", "dead", "bare", "interim", "interim", "plain"]):
        driven.send(b"hello")
        driven.hear(*frames_of(2 * n + 1, kind))
    driven.connection.ended.clear()
    driven.connection.refusals = 0
    for _ in range(STREAMS):
        driven.send(body)
    return driven.connection


class OneByOne:
    """The connection as a reader's sink that counts what it takes frame by frame: all, or what is not plain."""

    def __init__(self, connection: Connection, *, takes_plain: bool = False) -> None:
        self.counted = 0
        self._connection = connection
        self._takes_plain = takes_plain
        self.on_control = connection.on_control

    def on_plain(self, data: bytes, at: int) -> int:
        """Take what is plain together, or leave all to the other methods."""
        return self._connection.on_plain(data, at) if self._takes_plain else at

    def on_data(self, stream_id: int, flags: int, payload: bytes, size: int) -> None:
        """Count and pass on."""
        self.counted += 1
        self._connection.on_data(stream_id, flags, payload, size)

    def on_header_block(self, stream_id: int, flags: int, block: bytes) -> None:
        """Count and pass on."""
        self.counted += 1
        self._connection.on_header_block(stream_id, flags, block)


def ids() -> range:
    """The ids of the streams that wait."""
    return range(13, 13 + 2 * STREAMS, 2)


@pytest.mark.parametrize(("status", "kind"), [(200, "bare"), (410, "dead")])
def test_heads_may_come_before_all_bodies(status: int, kind: str) -> None:
    """As hyper sends them where many answers are ready; heads of that kind were read before."""
    connection = asked()
    answers = [frames_of(each, kind) for each in ids()]
    sent = b"".join([head for head, _ in answers] + [body for _, body in answers])
    assert connection.on_plain(sent, 0) == len(sent)
    assert results(connection) == [(each, Answer(status, (), b"body")) for each in ids()]
    assert connection.refusals == (STREAMS if status == 410 else 0)


def test_what_follows_an_answer_that_is_not_plain_is_plain_again() -> None:
    """The pieces of an answer in two alone are taken one by one."""
    connection = asked()
    sink = OneByOne(connection, takes_plain=True)
    reader = FrameReader(sink)
    reader.read(peer.settings())
    reader.read(b"".join([frame for each in ids() for frame in frames_of(each, "pieces" if each == 15 else "bare")]))
    assert results(connection) == [(each, Answer(200, (), b"body")) for each in ids()]
    assert sink.counted == 2


def frames_of(stream_id: int, kind: str) -> list[bytes]:
    """Return an answer of some kind, as frames."""
    length, own_id = (b"content-length", b"4"), (b"id", b"%d" % stream_id)
    bare, sized = peer.head(stream_id), peer.head(stream_id, b"200", length)
    last = peer.data(stream_id, b"body", end=True)
    kinds = {
        "plain": [sized, last],
        "bare": [bare, last],
        "dead": [peer.head(stream_id, b"410"), last],
        "head alone": [peer.head(stream_id, b"200", own_id, end=True)],
        "wrong length": [sized, peer.data(stream_id, b"longer", end=True)],
        "no body": [peer.head(stream_id, b"200", length, end=True)],
        "padded": [bare, peer.data(stream_id, b"body", end=True, padding=9)],
        "too large": [bare, peer.data(stream_id, b"x" * 1001, end=True)],
        "pieces": [bare, peer.data(stream_id, b"bo"), peer.data(stream_id, b"dy", end=True)],
        "interim": [peer.head(stream_id, b"103"), sized, last],
        "two heads": [bare, bare, last],
    }
    return kinds[kind]


def test_an_answer_before_the_request_is_all_sent_is_left_to_the_general_way() -> None:
    """It ends the stream, and what is left of the request is not sent any more."""
    too_long = b"x" * (DEFAULT_WINDOW // 2)
    ends_alike(asked(too_long), asked(too_long), b"".join(peer.answer(each) for each in ids()))


def test_windows_are_given_back_as_often_however_bodies_are_taken_in() -> None:
    """A server that is given no window sends nothing any more."""
    limits = replace(peer.LIMITS, max_response_bytes=1 << 20)
    together, apart = asked(limits=limits), asked(limits=limits)
    for _ in range(20):
        sent = [peer.answer(each, b"x" * DEFAULT_FRAME_SIZE) for each in sorted(together.streams)]
        ends_alike(together, apart, b"".join(sent))
        for each in (together, apart):
            each.ended.clear()
            each.send_all([Stream(peer.HEAD, b"hello", peer.BATCH, None) for _ in range(STREAMS)])


def ends_alike(together: Connection, apart: Connection, sent: bytes) -> None:
    """Hold what is taken in together to the same taken frame by frame."""
    reader = FrameReader(OneByOne(apart))
    reader.read(peer.settings())
    apart.take_output()
    together.take_output()
    together.receive(sent)
    reader.read(sent)
    assert results(together) == results(apart)
    assert together.take_output() == apart.take_output()


KINDS = ["dead", "head alone", "wrong length", "no body", "padded", "too large", "pieces", "interim", "two heads"]
kinds = st.one_of(st.just("plain"), st.sampled_from(KINDS))


@given(st.data(), st.lists(kinds, min_size=STREAMS, max_size=STREAMS))
def test_answers_end_as_they_do_one_by_one(data: st.DataObject, answers: list[str]) -> None:
    """In any order of their frames, in reads that end anywhere."""
    left = [frames_of(each, kind) for each, kind in zip(ids(), answers, strict=True)]
    sent = b""
    while any(left):
        sent += data.draw(st.sampled_from([each for each in left if each])).pop(0)
    together, apart = asked(), asked()
    reader = FrameReader(OneByOne(apart))
    reader.read(peer.settings())
    apart.take_output()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=4)))
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        together.receive(sent[begin:end])
        reader.read(sent[begin:end])
    assert results(together) == results(apart)
    assert together.refusals == apart.refusals
    assert together.take_output() == apart.take_output()


def results(connection: Connection) -> list[tuple[int, Result | None]]:
    """Return who ended, in order, and how."""
    return [(stream.stream_id, stream.result) for stream in connection.ended]

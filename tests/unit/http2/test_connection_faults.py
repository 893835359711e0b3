"""What a server may not do, case by case: what ends its stream alone, and what ends the connection."""

import pytest
from hyperframe.frame import GoAwayFrame, PriorityFrame, RstStreamFrame

from tests.unit.http2.faults import OF_A_STREAM, OF_THE_CONNECTION, Fault
from tests.unit.http2.peer import (
    Driven,
    answer,
    goaway,
    head,
    raw,
    rst,
    window,
)
from waypost.http2 import Answer, Lost, Unknown
from waypost.http2.frames import CANCEL, ENHANCE_YOUR_CALM


@pytest.mark.parametrize("fault", OF_A_STREAM, ids=lambda fault: fault.name)
def test_a_broken_answer_ends_its_stream_alone(fault: Fault) -> None:
    """RFC 9113, 5.4.2: the stream is reset, the result unknown, the connection goes on."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    driven.hear(*fault.pieces)
    (result,) = driven.ended()
    assert isinstance(result, Unknown) and fault.reason in result.reason and result.kind is Lost.BAD_ANSWER
    assert any(isinstance(frame, RstStreamFrame) and frame.stream_id == 1 for frame in driven.written)
    driven.hear(answer(3))
    assert driven.ended() == [Answer(200, (), b"ok")]


@pytest.mark.parametrize("fault", OF_THE_CONNECTION, ids=lambda fault: fault.name)
def test_a_fault_of_the_connection_ends_it(fault: Fault) -> None:
    """RFC 9113, 5.4.1: GOAWAY is written, and what was in flight ends as unknown, once."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    driven.hear(*fault.pieces)
    result = driven.ended()[-1]
    assert isinstance(result, Unknown) and fault.reason in result.reason and result.kind is Lost.CONNECTION_LOST
    assert driven.written[-1].type == 7
    assert driven.connection.room() == 0 and driven.connection.failure == result.reason
    driven.hear(answer(1))
    driven.connection.lost("closed")
    assert driven.ended() == [] and driven.refused() == []


def test_what_is_given_back_after_a_fault_is_not_written() -> None:
    """A request that waits to be written when the server breaks the protocol is refused; its bytes go nowhere."""
    driven = Driven()
    driven.send(b"x")
    waiting = driven.send(b"x", flush=False)
    (goaway,) = driven.hear(raw(5, 4, 1, bytes(4)))
    assert isinstance(goaway, GoAwayFrame)
    assert driven.refused() == [waiting]


def test_what_comes_late_on_a_stream_that_was_reset_is_let_pass() -> None:
    """RFC 9113, 5.1: it was sent before the server knew; whoever reset the stream, and however many there were."""
    driven = Driven()
    for number in range(1500):
        stream = driven.send(b"x")
        if number % 2:
            driven.connection.cancel(stream, "late")
        else:
            driven.hear(rst(stream.stream_id, CANCEL))
    driven.hear(*[answer(stream_id) for stream_id in range(1, 3000, 2)])
    assert not driven.connection.failure and len(driven.ended()) == 1500


@pytest.mark.parametrize("how", ["reset", "given back"])
def test_heads_that_come_late_are_let_pass_as_far_as_one_answer_goes(how: str) -> None:
    """Sixteen interim ones, its own, and trailers for each stream; a server that goes on is told to calm down."""
    driven = Driven()
    for _ in range(3):
        driven.send(b"x")
    driven.hear(rst(1, CANCEL) + rst(3, CANCEL) if how == "reset" else goaway(0))
    late = 36 if how == "reset" else 54
    driven.hear(*[head(1, b"103")] * late)
    assert not driven.connection.failure
    driven.hear(head(3, b"103"))
    assert driven.written[-1].error_code == ENHANCE_YOUR_CALM and "endless heads" in driven.connection.failure


def test_what_may_follow_the_end_of_a_stream_is_let_pass() -> None:
    """RFC 9113, 5.1: WINDOW_UPDATE, RST_STREAM and PRIORITY."""
    driven = Driven()
    driven.send(b"x")
    driven.hear(answer(1), window(1, 5), rst(1, 0), PriorityFrame(1, depends_on=3).serialize())
    assert not driven.connection.failure


def test_a_server_that_speaks_something_else_is_named() -> None:
    """An HTTP/1.1 server's answer is no frame."""
    driven = Driven(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert "not HTTP/2" in driven.connection.failure

"""What a frame costs does not grow with the streams that are open: instructions are counted, no time."""

import sys
from types import FrameType
from typing import Any

import pytest

from tests.unit.http2.peer import Driven, goaway, ping, raw, settings, window
from waypost.http2 import COMPILED
from waypost.http2.frames import LARGEST_STREAM_ID, LARGEST_WINDOW
from waypost.http2.opening import ConnectionLimits

pytestmark = pytest.mark.skipif(COMPILED, reason="compiled code has no instructions of Python")

STREAMS = 1000
FRAMES = 500
INSTRUCTIONS_A_FRAME = 400
INSTRUCTIONS_A_STREAM = 100
"""Of the interpreter; a read may look at each stream once, whatever is in it."""
LIMITS = ConnectionLimits(first_streams=1, most_streams=STREAMS, max_response_bytes=1000, max_header_list_bytes=2000)
BODY = b"x" * 4000


def with_bodies(*, initial_window: int, connection_window: int = 1 << 20) -> Driven:
    """A client whose requests wait for a window."""
    greeting = settings(MAX_CONCURRENT_STREAMS=STREAMS, INITIAL_WINDOW_SIZE=initial_window)
    driven = Driven(greeting + window(0, connection_window), limits=LIMITS)
    for _ in range(STREAMS):
        driven.send(BODY, flush=False)
    driven.connection.take_output()
    return driven


def stalled() -> Driven:
    """All wait for their own window."""
    return with_bodies(initial_window=0)


def waiting() -> Driven:
    """All but a few wait for the connection's."""
    return with_bodies(initial_window=10_000, connection_window=1)


def instructions(driven: Driven, data: bytes) -> int:
    """How many instructions of the interpreter it takes to read *data*."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        driven.connection.receive(data)
    finally:
        sys.settrace(before)
    return count


def initial_windows(*sizes: int) -> bytes:
    """SETTINGS with one value after the other."""
    return raw(4, 0, 0, b"".join([b"\0\4" + size.to_bytes(4, "big") for size in sizes]))


LAST = 2 * STREAMS - 1
FLOODS = {
    "windows of one stream": (stalled, window(LAST, 1) * FRAMES),
    "windows of each stream": (stalled, b"".join([window(2 * n + 1, 1) for n in range(FRAMES)])),
    "the connection's window while streams wait for theirs": (stalled, window(0, 1) * FRAMES),
    "the connection's window": (waiting, window(0, 1) * FRAMES),
    "windows of one stream while all wait for the connection's": (waiting, window(LAST, 1) * FRAMES),
    "initial windows in one frame": (stalled, initial_windows(*[1, 0] * FRAMES)),
    "initial windows in many frames": (stalled, initial_windows(1, 0) * FRAMES),
    "initial windows and the connection's": (waiting, (initial_windows(0, 10_000) + window(0, 1)) * (FRAMES // 2)),
    "initial windows near the largest": (
        stalled,
        (window(1, 1) + initial_windows(LARGEST_WINDOW - FRAMES, 0)) * (FRAMES // 2),
    ),
    "GOAWAY, the same": (stalled, goaway(LARGEST_STREAM_ID) * FRAMES),
    "GOAWAY, falling": (stalled, b"".join([goaway(LARGEST_STREAM_ID - n) for n in range(FRAMES)])),
    "GOAWAY, one stream each": (stalled, b"".join([goaway(LAST - 2 * n) for n in range(FRAMES)])),
    "GOAWAY, up and down": (stalled, (goaway(LARGEST_STREAM_ID) + goaway(LAST)) * (FRAMES // 2)),
    "RST_STREAM": (stalled, b"".join([raw(3, 0, 2 * n + 1, bytes(4)) for n in range(FRAMES)])),
    "PING": (stalled, ping(bytes(8)) * FRAMES),
    "PRIORITY": (stalled, raw(2, 0, 1, b"\0\0\0\3\1") * FRAMES),
    "interim answers": (stalled, b"".join([raw(1, 4, 2 * n + 1, b"\x08\x03103") for n in range(FRAMES)])),
    "empty DATA": (stalled, raw(1, 4, 1, b"\x88") + raw(0, 0, 1, b"") * FRAMES),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_frame_costs_the_same_however_many_streams_are_open(flood: str) -> None:
    """Of each kind, in the order that would cost most, with a thousand requests whose bodies wait."""
    prepare, data = FLOODS[flood]
    driven = prepare()
    count = instructions(driven, data)
    assert not driven.connection.failure
    assert count < FRAMES * INSTRUCTIONS_A_FRAME + STREAMS * INSTRUCTIONS_A_STREAM

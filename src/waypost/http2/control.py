"""Control frames, read and held to the rules of RFC 9113, section 6; the connection acts on what they change."""

from dataclasses import dataclass
from typing import Final

from . import frames
from .frames import DEFAULT_FRAME_SIZE, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR, ConnectionFault

_LOW_31_BITS: Final = 0x7FFF_FFFF


@dataclass(frozen=True)
class GoAway:
    """A GOAWAY frame as it was received."""

    code: int
    last_stream_id: int
    debug: bytes


def read_settings(stream_id: int, payload: bytes) -> list[tuple[int, int]]:
    """Read the values of a server's SETTINGS in the order sent, each within its bounds (6.5.2)."""
    _on_the_connection(stream_id, "SETTINGS")
    values = frames.settings_of(payload)
    for name, value in values:
        if name == frames.INITIAL_WINDOW_SIZE and value > frames.LARGEST_WINDOW:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "initial window above 2^31-1")
        if name == frames.MAX_FRAME_SIZE and not DEFAULT_FRAME_SIZE <= value <= frames.LARGEST_FRAME_SIZE:
            raise ConnectionFault(PROTOCOL_ERROR, "frame size out of range")
        if name == frames.ENABLE_PUSH and value != 0:
            raise ConnectionFault(PROTOCOL_ERROR, "a server that enables push")
    return values


def check_settings_ack(stream_id: int, payload: bytes, greeted: bool) -> None:
    """Check that an acknowledgement is empty (6.5), and comes after the server's own SETTINGS (3.4)."""
    _on_the_connection(stream_id, "SETTINGS")
    _must_be(0, payload)
    if not greeted:
        raise ConnectionFault(PROTOCOL_ERROR, "SETTINGS acknowledged before they were sent")


def read_ping(stream_id: int, payload: bytes) -> bytes:
    """Read the eight bytes of a PING or of its answer (6.7)."""
    _must_be(8, payload)
    _on_the_connection(stream_id, "PING")
    return payload


def read_goaway(stream_id: int, payload: bytes) -> GoAway:
    """Read a GOAWAY (6.8)."""
    _on_the_connection(stream_id, "GOAWAY")
    if len(payload) < 8:
        raise ConnectionFault(FRAME_SIZE_ERROR, "GOAWAY too short")
    return GoAway(frames.u32(payload, 4), frames.u32(payload) & _LOW_31_BITS, payload[8:])


def read_reset(payload: bytes) -> int:
    """Read the error code of a RST_STREAM (6.4)."""
    _must_be(4, payload)
    return frames.u32(payload)


def read_window_update(payload: bytes) -> int:
    """Read the increment of a WINDOW_UPDATE (6.9); zero is a fault of the stream or of the connection."""
    if len(payload) != 4:
        _must_be(4, payload)
    return int.from_bytes(payload, "big") & _LOW_31_BITS


def check_priority(stream_id: int, payload: bytes) -> None:
    """Check the form of a PRIORITY, which says nothing to a client (6.3)."""
    _must_be(5, payload)
    if stream_id == 0:
        raise ConnectionFault(PROTOCOL_ERROR, "PRIORITY without a stream")


def _must_be(length: int, payload: bytes) -> None:
    if len(payload) != length:
        raise ConnectionFault(FRAME_SIZE_ERROR, f"frame of {len(payload)} bytes that must have {length}")


def _on_the_connection(stream_id: int, name: str) -> None:
    if stream_id != 0:
        raise ConnectionFault(PROTOCOL_ERROR, f"{name} on a stream")

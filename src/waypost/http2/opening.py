"""What a connection assumes and allows, and how it says so: the first bytes of a client (RFC 9113, section 3.4)."""

from dataclasses import dataclass
from typing import Final

from . import frames

# What we let the server send on all streams together; given back when half of it was used.
RECEIVE_WINDOW: Final = 1 << 20


@dataclass(frozen=True)
class ConnectionLimits:
    """The bounds of one connection; `first_streams` holds until the server's SETTINGS came."""

    first_streams: int
    most_streams: int
    max_response_bytes: int
    max_header_list_bytes: int


def opening(limits: ConnectionLimits) -> bytes:
    """Build what opens a connection: preface, SETTINGS, and the connection's window."""
    values = [
        (frames.HEADER_TABLE_SIZE, 0),
        (frames.ENABLE_PUSH, 0),
        # One byte above the limit: an answer that is too large is seen, not waited for.
        (frames.INITIAL_WINDOW_SIZE, limits.max_response_bytes + 1),
        (frames.MAX_HEADER_LIST_SIZE, limits.max_header_list_bytes),
    ]
    return frames.PREFACE + frames.settings(values) + frames.window_update(0, RECEIVE_WINDOW - frames.DEFAULT_WINDOW)

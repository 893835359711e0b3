"""Streams on which frames may still come although they are over: those that were reset or given back."""

from typing import Final

from .frames import ENHANCE_YOUR_CALM, PROTOCOL_ERROR, STREAM_CLOSED, ConnectionFault
from .stream import MOST_INTERIM_ANSWERS

_MOST_REMEMBERED: Final = 1000
# What one answer can have: interim heads, its own, trailers.
_HEADER_BLOCKS_A_STREAM: Final = MOST_INTERIM_ANSWERS + 2


def must_have_been(stream_id: int, next_id: int) -> None:
    """Check that a stream was once opened, else it is a fault (RFC 9113, 5.1); *next_id* will be opened next."""
    if stream_id == 0 or stream_id % 2 == 0 or stream_id >= next_id:
        raise ConnectionFault(PROTOCOL_ERROR, "frame on a stream that was never opened")


class Abandoned:
    """The bounded memory of abandoned streams, which tells late frames, let pass, from forbidden ones.

    When too many were abandoned, everything opened so far is let pass: that is lenient, and never wrong.
    """

    def __init__(self) -> None:
        self._remembered: set[int] = set()
        self._let_pass_below = 0
        self._header_blocks_left = 0

    def add(self, stream_id: int, next_id: int) -> None:
        """Remember a stream that was reset or given back."""
        self._header_blocks_left += _HEADER_BLOCKS_A_STREAM
        self._remembered.add(stream_id)
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
            self._let_pass_below = next_id

    def check(self, stream_id: int, next_id: int) -> None:
        """Check that an answer may come on a stream: one that was abandoned, not one that ended (RFC 9113, 5.1)."""
        must_have_been(stream_id, next_id)
        if stream_id >= self._let_pass_below and stream_id not in self._remembered:
            raise ConnectionFault(STREAM_CLOSED, "answer on a stream that was over")

    def check_header_block(self, stream_id: int, next_id: int) -> None:
        """Check as `check` does, and that no more blocks come than abandoned streams can have: each is decoded."""
        self.check(stream_id, next_id)
        self._header_blocks_left -= 1
        if self._header_blocks_left < 0:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "endless heads on streams that are over")

"""Streams on which frames may still come although they are over: those that were reset or given back."""

from typing import Final

from .frames import ENHANCE_YOUR_CALM, PROTOCOL_ERROR, STREAM_CLOSED, ConnectionFault
from .stream import MOST_INTERIM_ANSWERS

_MOST_REMEMBERED: Final = 1000
# What one answer can have: interim heads, its own, trailers.
_HEADER_BLOCKS_A_STREAM: Final = MOST_INTERIM_ANSWERS + 2


def must_have_been(stream_id: int, next_id: int) -> None:
    """A stream that never was is a fault (RFC 9113, 5.1); *next_id* is the one that will be opened next."""
    if stream_id == 0 or stream_id % 2 == 0 or stream_id >= next_id:
        raise ConnectionFault(PROTOCOL_ERROR, "frame on a stream that was never opened")


class Abandoned:
    """Tells late frames, which are let pass, from forbidden ones; remembers a bounded number of streams.

    When too many were abandoned, everything opened so far is let pass: that is lenient, and never wrong.
    """

    def __init__(self) -> None:
        self._remembered: set[int] = set()
        self._let_pass_below = 0
        self._header_blocks_left = 0

    def add(self, stream_id: int, next_id: int) -> None:
        """The stream was reset or given back."""
        self._header_blocks_left += _HEADER_BLOCKS_A_STREAM
        self._remembered.add(stream_id)
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
            self._let_pass_below = next_id

    def check(self, stream_id: int, next_id: int) -> None:
        """An answer may still come on an abandoned stream, no second one on one that ended (RFC 9113, 5.1)."""
        must_have_been(stream_id, next_id)
        if stream_id >= self._let_pass_below and stream_id not in self._remembered:
            raise ConnectionFault(STREAM_CLOSED, "answer on a stream that was over")

    def check_header_block(self, stream_id: int, next_id: int) -> None:
        """As `check`; and no more blocks may come than all that were abandoned can have: each has to be decoded."""
        self.check(stream_id, next_id)
        self._header_blocks_left -= 1
        if self._header_blocks_left < 0:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "endless heads on streams that are over")

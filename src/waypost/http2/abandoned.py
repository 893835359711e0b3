"""Streams on which frames may still come although they are over: those that were reset by one of the sides."""

from typing import Final

_MOST_REMEMBERED: Final = 1000


class Abandoned:
    """Tells late frames, which are let pass, from forbidden ones; remembers a bounded number of streams.

    When too many were reset, everything opened so far is let pass: that is lenient, and never wrong.
    """

    def __init__(self) -> None:
        self._remembered: set[int] = set()
        self._let_pass_below = 0

    def add(self, stream_id: int, next_id: int) -> None:
        """The stream was reset; *next_id* is the one that will be opened next."""
        self._remembered.add(stream_id)
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
            self._let_pass_below = next_id

    def __contains__(self, stream_id: int) -> bool:
        return stream_id < self._let_pass_below or stream_id in self._remembered

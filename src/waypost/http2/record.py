"""The recent record of one connection: how it has answered."""

from typing import Final

from .connection import Connection
from .stream import Stream

# So many requests in a row whose deadlines passed, and their connection is in doubt.
_MOST_OVERDUE: Final = 2
# A connection that refuses streams and answers none is left alone for so long, doubled each time.
_REST_S: Final = 0.05
_LONGEST_REST_S: Final = 1.0


class FrameAccount:
    """An account of what a connection owes; an answer clears it."""

    def __init__(self) -> None:
        self._overdue_in_row = 0
        self._refusals_in_row = 0
        self._unanswered_from = 0

    def answered(self, connection: Connection) -> None:
        """Note that the server has ended a stream, or some."""
        self._overdue_in_row = 0
        self._refusals_in_row = 0
        # Whatever is begun from now on has a higher id than what is in flight.
        self._unanswered_from = next(reversed(connection.streams), 0) + 1

    def overdue(self, stream: Stream, connection: Connection) -> bool:
        """Note that a deadline has passed; whether the connection, alive or not, is in doubt.

        It is after two in a row, or after one while others wait and nothing was answered since it was sent.
        """
        self._overdue_in_row += 1
        others_wait = len(connection.streams) > 1 and stream.stream_id >= self._unanswered_from
        return others_wait or self._overdue_in_row >= _MOST_OVERDUE

    def refused(self) -> float:
        """Note that streams were refused; return for how many seconds nothing should be asked, 0 the first time."""
        before = self._refusals_in_row
        self._refusals_in_row += 1
        return min(_LONGEST_REST_S, _REST_S * 2.0 ** min(before, 30)) if before else 0.0

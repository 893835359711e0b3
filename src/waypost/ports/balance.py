"""The balance of a store: its counters and its open rows, read at one moment, and a recount of all of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from waypost.domain.balance import Difference, Outline, Sheet
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane


class BalanceSheet(Protocol):
    """The balance of what a store was given.

    Whatever is written keeps it: the counters change in the transaction that changes the rows, and never by a count
    that a process keeps. Refused requests are the exception, since they write nothing: they are counted with what is
    written next, on both sides of their line, so that a process that dies forgets both.
    """

    async def read(self, app: AppId | None = None) -> Sheet:
        """Read the counters of each app and lane, or of one *app*, and what is open, as they are at one moment.

        Never off by what is being written at this moment: a line that does not add up is a fault. What it costs grows
        with what is open. Of a log it knows what is recorded.
        """
        ...

    async def outline(self, app: AppId) -> Outline:
        """Read the counters of *app*, and count what is scheduled up to a bound: no other row is read."""
        ...

    def refused(self, app: AppId, lane: Lane, n: int) -> None:
        """Count *n* requests that were read and refused."""
        ...

    async def audit(self) -> Sequence[Difference]:
        """Count every row anew, by pages of keys at one moment, and return what differs from the counters.

        It takes as long as reading everything does, and changes nothing.
        """
        ...

"""The time from which a lease looks for what waits: not from the beginning of its index, where all is gone.

    claim    the first part of each lane that nobody has, from the place reached on
    reader   such places for all parts, for processes that start (reached.py)

A part waits since the transaction that let go of it, so that none comes in before the place, which stays a while behind
the clock. For clocks that differ by more all is looked through again now and then, beside the leases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant, later
from waypost.stores.sql.claims.lease import Part, first_waiting
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.reached import reach, reached
from waypost.stores.sql.transaction import OperationKind, Transaction

LATE_MS: Final = 30 * SECOND_MS
"""Milliseconds that a part may be found late after its release: for clocks that differ, and long commits."""
RECORDED_EVERY_MS: Final = 30 * SECOND_MS
WHOLE_EVERY_MS: Final = 10 * MINUTE_MS
_BEGINNING: Final = Instant(1)

Places = Mapping[Lane, Instant]


class WaitingFrom:
    """The times since when something of *part* may wait, for the leases of one process."""

    def __init__(self, database: Database, part: Part) -> None:
        self._database = database
        self._part = part
        self._places: dict[Lane, Instant] = {}
        self._whole_at: dict[Lane, Instant] = {}
        self._recorded: Places = {}
        """The places of all parts, as this process recorded them last."""
        self._recorded_at = Instant(0)

    def place(self, lane: Lane) -> Instant:
        """Return the time before which nothing waits, as far as it is known."""
        return self._places.get(lane, _BEGINNING)

    async def begin(self, lane: Lane, now: Instant) -> Instant:
        """Return the same, having asked for what is on record, or looked at all, where it is time for that."""
        if lane not in self._places:
            said = await self._database.read_to_lease(_recorded)
            self._places = {each: _bounded(at, now) for each, at in said.items()}
            self._whole_at = dict.fromkeys(Lane, now)
        elif later(self._whole_at[lane], WHOLE_EVERY_MS) <= now:
            self._whole_at[lane] = now
            found = await self._database.read(
                lambda connection: first_waiting(connection, lane, _BEGINNING, self._part)
            )
            if found is not None:
                self._places[lane] = min(self._places[lane], found)
        return self._places[lane]

    def move(self, lane: Lane, first: Instant | None, now: Instant) -> None:
        """Move on to the *first* that waits."""
        self._places[lane] = _moved(self._places[lane], first, now)

    async def record(self, now: Instant) -> None:
        """Record the places of all parts, now and then; nobody waits for that."""
        if now < later(self._recorded_at, RECORDED_EVERY_MS):
            return
        self._recorded_at = now
        said = self._recorded or await self._database.read_to_lease(_recorded)
        self._recorded = await self._database.read_to_lease(lambda connection: _looked(connection, said, now))
        written = self._database.commits.submit(_RECORDING, self._recorded)
        written.add_done_callback(lambda done: done.cancelled() or done.exception())


def _name(lane: Lane) -> str:
    return f"waiting {lane}"


def _recorded(connection: Connection) -> Places:
    return {lane: Instant(reached(connection, _name(lane))) for lane in Lane}


def _looked(connection: Connection, places: Places, now: Instant) -> Places:
    return {
        lane: _moved(_bounded(at, now), first_waiting(connection, lane, _bounded(at, now)), now)
        for lane, at in places.items()
    }


def _bounded(said: Instant, now: Instant) -> Instant:
    """Stay behind the clock: whoever said it may have one that is ahead."""
    return max(_BEGINNING, min(said, later(now, -LATE_MS)))


def _moved(place: Instant, first: Instant | None, now: Instant) -> Instant:
    until = later(now, -LATE_MS)
    return max(place, until if first is None else min(first, until))


def _record(transaction: Transaction, ops: Sequence[Places]) -> list[None]:
    for lane, at in ops[-1].items():
        reach(transaction.connection, _name(lane), at)
    return [None] * len(ops)


_RECORDING: OperationKind[Places, None] = OperationKind("record_waiting", _record, durable=False)

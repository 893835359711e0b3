"""The time from which due work is looked for: not from the beginning of its index, where all is over.

    notification, receipt   the first open row of each lane after the place reached
    reader                  that place, for processes that start (reached.py)

Whatever is written is due no earlier than its transaction began (cases.py), so that nothing comes in before the place,
which stays a while behind the clock. For clocks that differ by more, and for versions before this, all is looked
through again now and then; where that takes too long, the look after it begins at the place as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant, later
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.reached import reach, reached
from waypost.stores.sql.transaction import OperationKind, Transaction

LATE_MS: Final = 30 * SECOND_MS
"""How far clocks may differ, and how long a transaction may last, until a row is only found by the look at all."""
MOVED_EVERY_MS: Final = 10 * SECOND_MS
WHOLE_EVERY_MS: Final = 10 * MINUTE_MS
_NAME: Final = "due"
_FIRST = " UNION ALL ".join(
    f"(SELECT due_at FROM {table} WHERE lane = '{lane}' AND due_at > 0 AND due_at > ?1 ORDER BY due_at LIMIT 1)"  # noqa: S608 - names of ours
    for table in ("notification", "receipt")
    for lane in Lane
)


class DueFrom:
    """The moment from which one process looks for due work."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.at: Instant | None = None
        """The time before which nothing open is due; None: it is to be asked for."""
        self._moved_at = Instant(0)
        self._whole_at = Instant(0)

    async def place(self, now: Instant, *, records: bool) -> Instant:
        """Return from when on to look *now*; who *records* says it to others as well."""
        if not self._database.engine.is_remote:
            return Instant(0)
        if self.at is None:
            said = await self._database.read_to_lease(lambda connection: reached(connection, _NAME))
            self.at = Instant(max(0, min(said, later(now, -LATE_MS))))  # whoever said it may have a clock that is ahead
            self._whole_at = now
        elif later(self._moved_at, MOVED_EVERY_MS) <= now:
            self._moved_at = now
            await self._move(self.at, now)
            if records:
                await self._database.commits.submit(_RECORD, self.at)
        return self.at

    async def _move(self, after: Instant, now: Instant) -> None:
        is_whole = later(self._whole_at, WHOLE_EVERY_MS) <= now
        if is_whole:
            self._whole_at, after = now, Instant(0)
        read = self._database.read if is_whole else self._database.read_to_lease
        until = later(now, -LATE_MS)
        self.at = await read(lambda connection: first_due(connection, after, until))


def first_due(connection: Connection, after: Instant, until: Instant) -> Instant:
    """Find when the first open row after that is due, or *until*: nothing open is due before."""
    found = [row[0] for row in connection.execute(_FIRST, (max(0, after - 1),)).fetchall()]
    return Instant(max(after, min([until, *found])))


def _record(transaction: Transaction, ops: Sequence[Instant]) -> list[None]:
    reach(transaction.connection, _NAME, ops[-1])
    return [None] * len(ops)


_RECORD: OperationKind[Instant, None] = OperationKind("reach_due", _record, durable=False)

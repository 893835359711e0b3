"""The time before which nothing is due, as of what was written last: until then nobody need look.

    notification, receipt   the first open row of each lane, of all shards

Rows in somebody's hands count as well, so that it depends on nothing but the database: what is due and leased makes
look more often, never less.
"""

from __future__ import annotations

from typing import Final

from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection

_FIRST_OF = (
    "(SELECT due_at FROM {table} INDEXED BY {table}_due WHERE lane = '{lane}' AND {is_open} AND due_at >= ?1"
    " ORDER BY due_at LIMIT 1)"
)
_FIRST: Final = "SELECT " + ", ".join(
    _FIRST_OF.format(table=table, lane=lane, is_open=is_open)
    for table, is_open in (("notification", "due_at > 0"), ("receipt", "due_at IS NOT NULL"))
    for lane in Lane
)
_NEVER: Final = Instant((1 << 63) - 1)


class NextDue:
    """The next due time, with the version of the store that it is of."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._at: Instant | None = None
        self._since = Instant(0)
        self._seen = 0

    @property
    def at(self) -> Instant | None:
        """The next due time; None where something was written since it was looked up."""
        return self._at if self._seen == self._database.changes.version else None

    def is_later(self, now: Instant, since: Instant) -> bool:
        """Tell whether it is known that nothing from *since* on is due *now*: nothing was written since that was read.

        Call it after a look at the changes.
        """
        at = self.at
        return at is not None and now < at and self._since <= since

    async def read(self, since: Instant, seen: int) -> None:
        """Look it up from *since* on; *seen* is the version before all that was read."""
        self._at = await self._database.read_to_lease(lambda connection: next_due(connection, since))
        self._since, self._seen = since, seen


def next_due(connection: Connection, since: Instant) -> Instant:
    """Find when the first open row from *since* on is due; never, where there is none."""
    found = connection.execute(_FIRST, (since,)).fetchone()
    return Instant(min((at for at in found if at is not None), default=_NEVER))

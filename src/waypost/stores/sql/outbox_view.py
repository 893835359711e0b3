"""Reading the outbox by pages of its key, newest first."""

from __future__ import annotations

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.ports.outbox import EntryState, OutboxEntry, OutboxQuery
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Row

_STATE = (
    "CASE WHEN published_at IS NOT NULL THEN 'published' WHEN claimed_at IS NOT NULL THEN 'claimed' ELSE 'pending' END"
)
_ENTRIES = f"""\
SELECT seq, notification_id, n, lane, {_STATE}, added_at, claimed_at, published_at FROM outbox
WHERE app = ? AND seq < ? AND {_STATE} IN ({{states}}) ORDER BY seq DESC LIMIT ?
"""  # noqa: S608 - an expression of ours
_COUNTS = f"SELECT {_STATE}, count(*) FROM outbox WHERE app = ? GROUP BY 1"  # noqa: S608 - as above
_NEWEST = (1 << 62) - 1


class SqlOutboxView:
    """See OutboxView."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def entries(self, query: OutboxQuery) -> list[OutboxEntry]:
        """See OutboxView."""
        sql = _ENTRIES.format(states=", ".join(f"'{state}'" for state in query.states or EntryState))
        bound = (query.app, _NEWEST if query.before is None else query.before, query.limit)
        rows = await self._database.read(lambda connection: connection.execute(sql, bound).fetchall())
        return [_entry(row) for row in rows]

    async def counts(self, app: AppId) -> dict[EntryState, int]:
        """See OutboxView."""
        rows = await self._database.read(lambda connection: connection.execute(_COUNTS, (app,)).fetchall())
        return dict.fromkeys(EntryState, 0) | {EntryState(state): count for state, count in rows}


def _entry(row: Row) -> OutboxEntry:
    seq, notification_id, n, lane, state, *rest = row
    return OutboxEntry(seq, notification_id, None if n < 0 else n, Lane(lane), EntryState(state), *rest)

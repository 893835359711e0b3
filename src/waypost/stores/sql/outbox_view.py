"""Reading the outbox by pages of its key, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waypost.domain.channel import Channel
from waypost.domain.ids import AppId
from waypost.domain.time import Instant
from waypost.ports.outbox import EntryState, OutboxEntry, OutboxQuery
from waypost.stores.sql.database import Database
from waypost.stores.sql.outbox.entries import WHOLE
from waypost.stores.sql.outbox.relay import CHANNELS, claimed_of
from waypost.stores.sql.outbox.topics import topics_of

_STATE = (
    "CASE WHEN published_at IS NOT NULL THEN 'published' WHEN claimed_at IS NOT NULL THEN 'claimed' ELSE 'pending' END"
)
_ENTRIES = f"""\
SELECT {_STATE}, added_at, claimed_at, published_at, seq, notification_id, n, app, lane, due_at, ''{{also}} FROM outbox
WHERE app = ? AND seq < ? AND {_STATE} IN ({{states}}) ORDER BY seq DESC LIMIT ?
"""  # noqa: S608 - an expression of ours
_COUNTS = f"SELECT {_STATE}, count(*) FROM outbox WHERE app = ? GROUP BY 1"  # noqa: S608 - as above
_NEWEST = (1 << 62) - 1


class SqlOutboxView:
    """See OutboxView."""

    def __init__(self, database: Database, families: Mapping[Channel, str] | None = None) -> None:
        """Create it; *families* are those of the channels, where topics are by channel."""
        self._database = database
        self._families = families

    async def entries(self, query: OutboxQuery) -> list[OutboxEntry]:
        """See OutboxView."""
        states = ", ".join(f"'{state}'" for state in query.states or EntryState)
        sql = _ENTRIES.format(states=states, also="" if self._families is None else f", {CHANNELS}")
        bound = (query.app, _NEWEST if query.before is None else query.before, query.limit)
        rows = await self._database.read(lambda connection: connection.execute(sql, bound).fetchall())
        return [self._entry(*row) for row in rows]

    async def counts(self, app: AppId) -> dict[EntryState, int]:
        """See OutboxView."""
        rows = await self._database.read(lambda connection: connection.execute(_COUNTS, (app,)).fetchall())
        return dict.fromkeys(EntryState, 0) | {EntryState(state): count for state, count in rows}

    def _entry(
        self, state: str, added_at: Instant, claimed_at: Instant | None, published_at: Instant | None, *said: Any
    ) -> OutboxEntry:
        entry = claimed_of(*said)
        return OutboxEntry(
            entry.seq,
            entry.notification_id,
            None if entry.n == WHOLE else entry.n,
            entry.lane,
            EntryState(state),
            added_at,
            claimed_at,
            published_at,
            entry.due_at,
            () if self._families is None else topics_of(entry, self._families),
        )

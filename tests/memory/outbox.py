"""The outbox of a store without a broker: there is none."""

from __future__ import annotations

from waypost.domain.ids import AppId
from waypost.ports.outbox import EntryState, OutboxEntry, OutboxQuery


class MemoryOutboxView:
    """See OutboxView."""

    async def entries(self, query: OutboxQuery) -> list[OutboxEntry]:
        """See OutboxView."""
        return []

    async def counts(self, app: AppId) -> dict[EntryState, int]:
        """See OutboxView."""
        return dict.fromkeys(EntryState, 0)

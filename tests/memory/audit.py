"""The record of orders in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tests.memory.store import MemoryStore
from waypost.domain.time import Instant
from waypost.ports.audit import AuditEntry, AuditQuery, Ordered


class MemoryAudit:
    """See Audit."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def record(self, orders: Sequence[Ordered]) -> None:
        """See Audit."""
        self._store.audit += [AuditEntry(self._store.count(), order) for order in orders]

    async def page(self, query: AuditQuery) -> Sequence[AuditEntry]:
        """See Audit."""
        chosen = [
            entry
            for entry in reversed(self._store.audit)
            if entry.ordered.app == query.app
            and query.act in (None, entry.ordered.act)
            and query.by in (None, entry.ordered.by)
            and (query.before is None or entry.seq < query.before)
        ]
        return chosen[: query.limit]

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Audit."""
        old = [entry for entry in self._store.audit if entry.ordered.at < before][:n]
        self._store.audit = [entry for entry in self._store.audit if entry not in old]
        return len(old)

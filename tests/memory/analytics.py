"""The app's own events in memory; what becomes of notifications is counted by the stores on SQL alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from waypost.domain.best_hour import Hours
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.domain.tracked import TrackedEvent
from waypost.ports.analytics import Count, CountQuery, EventCount, EventQuery


class MemoryUserEvents:
    """See stores.sql.user_events."""

    def __init__(self) -> None:
        self.events: list[TrackedEvent] = []

    async def track(self, events: Sequence[TrackedEvent], hears: Sequence[object] = ()) -> int:
        """Count *events*, each id once; return how many were new."""
        before = len(self.events)
        for each in events:
            if each.key is None or each.key not in {it.key for it in self.events}:
                self.events.append(each)
        return len(self.events) - before


class MemoryAnalytics:
    """See ports.analytics.Analytics."""

    def __init__(self, tracked: MemoryUserEvents) -> None:
        self._tracked = tracked

    async def counts(self, query: CountQuery) -> list[Count]:
        """See Analytics."""
        return []

    async def events(self, query: EventQuery) -> list[EventCount]:
        """See Analytics; all of the time together."""
        known = (
            each for each in self._tracked.events if each.app == query.app and query.since <= each.at < query.until
        )
        counts = Counter(each.name for each in known if query.name in (None, each.name))
        return [EventCount(name, None, n) for name, n in counts.items()]

    async def hours(self, app: AppId, users: Sequence[UserId] | None, since: Instant) -> list[Hours]:
        """See Analytics."""
        return [Hours()] * (1 if users is None else len(users))

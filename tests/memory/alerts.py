"""Alerts in memory, as the routes need them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.time import Instant
from waypost.ports.recovery import Alert, AlertQuery, How


class MemoryAlerts:
    """See ports.recovery.Recovery; what searches is not here."""

    def __init__(self) -> None:
        self.kept: dict[NotificationId, Alert] = {}

    async def resolve(self, app: AppId, notification_id: NotificationId, how: How, now: Instant) -> bool:
        """See Recovery."""
        found = await self.alert(app, notification_id)
        if found is None or found.resolved_at is not None:
            return False
        self.kept[notification_id] = replace(found, resolved_at=now, how=how)
        return True

    async def alert(self, app: AppId, notification_id: NotificationId) -> Alert | None:
        """See Recovery."""
        found = self.kept.get(notification_id)
        return None if found is None or found.app != app else found

    async def alerts(self, query: AlertQuery) -> Sequence[Alert]:
        """See Recovery."""
        found = [
            each
            for each in self.kept.values()
            if each.app == query.app
            and query.resolved in (None, each.resolved_at is not None)
            and (query.before is None or each.notification_id < query.before)
        ]
        return sorted(found, key=lambda each: each.notification_id, reverse=True)[: query.limit]

"""Schedules in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec.structs import replace

from waypost.domain.ids import AppId, UserId
from waypost.domain.schedule import Schedule, ScheduleStatus
from waypost.domain.time import Instant


class MemorySchedules:
    """See stores.sql.schedules.SqlSchedules."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AppId, str], tuple[Schedule, Instant]] = {}

    async def add(self, schedule: Schedule, now: Instant) -> bool:
        """See SqlSchedules."""
        return self._kept.setdefault((schedule.app, schedule.name), (schedule, now))[0] is schedule

    async def replace(self, before: Schedule, after: Schedule, now: Instant) -> Schedule | None:
        """See SqlSchedules."""
        key = before.app, before.name
        if key not in self._kept or self._kept[key][0].version != before.version:
            return None
        written = replace(after, version=before.version + 1)
        self._kept[key] = written, now
        return written

    async def find(self, app: AppId, name: str) -> Schedule | None:
        """See SqlSchedules."""
        found = self._kept.get((app, name))
        return None if found is None else found[0]

    async def page(self, app: AppId, after: str, n: int) -> list[Schedule]:
        """See SqlSchedules."""
        of_app = sorted(name for of, name in self._kept if of == app and name > after)
        return [self._kept[app, name][0] for name in of_app[:n]]

    async def due(self, now: Instant, n: int) -> AsyncIterator[list[Schedule]]:
        """See SqlSchedules."""
        due = [each for each, _ in self._kept.values() if each.due_at is not None and each.due_at <= now]
        due.sort(key=lambda each: (each.due_at or 0, each.app, each.name))
        for start in range(0, len(due), n):
            yield due[start : start + n]

    async def next_due(self) -> Instant | None:
        """See the store's."""
        return min((each.due_at for each, _ in self._kept.values() if each.due_at is not None), default=None)

    async def remove(self, app: AppId, name: str) -> bool:
        """See SqlSchedules."""
        return self._kept.pop((app, name), None) is not None

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See SqlSchedules."""
        for key, (each, at) in list(self._kept.items()):
            if (each.app, each.user_id) == (app, user_id) and at <= until:
                del self._kept[key]

    async def drop(self, before: Instant, page: int) -> int:
        """See SqlSchedules."""
        ended = [key for key, (each, at) in self._kept.items() if each.status is ScheduleStatus.ENDED and at < before]
        for key in ended[:page]:
            del self._kept[key]
        return len(ended[:page])

"""Series in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from msgspec.structs import replace

from waypost.domain.ids import AppId, UserId
from waypost.domain.series import Member, MemberState, Series, told
from waypost.domain.time import Instant


class MemorySeries:
    """See stores.sql.series.SqlSeries."""

    def __init__(self) -> None:
        self._versions: dict[tuple[AppId, str, int], Series] = {}
        self._members: dict[tuple[AppId, str, UserId], tuple[Member, Instant]] = {}

    async def add(self, series: Series) -> bool:
        """See SqlSeries."""
        return self._versions.setdefault((series.app, series.name, series.version), series) is series

    async def latest(self, app: AppId, name: str) -> Series | None:
        """See SqlSeries."""
        versions = [each for (of, named, _), each in self._versions.items() if (of, named) == (app, name)]
        return max(versions, key=lambda each: each.version, default=None)

    async def version(self, app: AppId, name: str, version: int) -> Series | None:
        """See SqlSeries."""
        return self._versions.get((app, name, version))

    async def page(self, app: AppId, after: str, n: int) -> list[Series]:
        """See SqlSeries."""
        names = sorted({name for of, name, _ in self._versions if of == app and name > after})
        found = [await self.latest(app, name) for name in names[:n]]
        return [each for each in found if each is not None]

    async def counts(self, app: AppId, name: str) -> dict[MemberState, int]:
        """See SqlSeries."""
        return Counter(each.state for (of, named, _), (each, _) in self._members.items() if (of, named) == (app, name))

    async def remove(self, app: AppId, name: str) -> bool:
        """See SqlSeries."""
        gone = [key for key in self._versions if key[:2] == (app, name)]
        for key in gone:
            del self._versions[key]
        for of_member in [each for each in self._members if each[:2] == (app, name)]:
            del self._members[of_member]
        return bool(gone)

    async def join(self, member: Member, now: Instant) -> bool:
        """See SqlSeries."""
        if (member.app, member.series, member.version) not in self._versions:
            return False
        key = member.app, member.series, member.user_id
        return self._members.setdefault(key, (member, now))[0] is member

    async def replace(self, before: Member, after: Member, now: Instant) -> Member | None:
        """See SqlSeries."""
        key = before.app, before.series, before.user_id
        if key not in self._members or self._members[key][0].written != before.written:
            return None
        written = replace(after, written=before.written + 1)
        self._members[key] = written, now
        return written

    async def member(self, app: AppId, name: str, user_id: UserId) -> Member | None:
        """See SqlSeries."""
        found = self._members.get((app, name, user_id))
        return None if found is None else found[0]

    async def members(self, app: AppId, name: str, after: str, n: int) -> list[Member]:
        """See SqlSeries."""
        found = sorted(key[2] for key in self._members if key[:2] == (app, name) and key[2] > after)
        return [self._members[app, name, user][0] for user in found[:n]]

    async def due(self, now: Instant, n: int) -> AsyncIterator[list[Member]]:
        """See SqlSeries."""

        def place(member: Member) -> tuple[int, str, str, str]:
            return member.due_at or 0, member.app, member.series, member.user_id

        due = [each for each, _ in self._members.values() if each.due_at is not None and each.due_at <= now]
        due.sort(key=place)
        for start in range(0, len(due), n):
            yield due[start : start + n]

    async def next_due(self) -> Instant | None:
        """See the store's."""
        return min((each.due_at for each, _ in self._members.values() if each.due_at is not None), default=None)

    async def exit_by_event(self, app: AppId, user_id: UserId, event: str) -> None:
        """See SqlSeries."""
        for key, (each, at) in list(self._members.items()):
            if (key[0], key[2]) == (app, user_id):
                after = told(each, event, self._versions[app, each.series, each.version])
                await self.replace(each, after, at)

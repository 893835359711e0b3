"""Our own topics in memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.ports.topics import Topic


@dataclass
class _Kept:
    topic: Topic
    members: dict[UserId, Instant] = field(default_factory=dict)


class MemoryTopics:
    """See ports.topics.Topics."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AppId, str], _Kept] = {}
        self._numbers = itertools.count(1)

    async def put(self, app: AppId, name: str, description: str, *, is_open: bool, at: Instant) -> bool:
        """See Topics."""
        known = self._kept.get((app, name))
        if known is None:
            self._kept[app, name] = _Kept(Topic(name, next(self._numbers), description, is_open, at))
        else:
            known.topic = Topic(name, known.topic.number, description, is_open, known.topic.created_at)
        return known is None

    async def find(self, app: AppId, name: str) -> Topic | None:
        """See Topics."""
        return self._kept[app, name].topic if (app, name) in self._kept else None

    async def page(self, app: AppId, after: str, n: int) -> list[Topic]:
        """See Topics."""
        names = sorted(name for of, name in self._kept if of == app and name > after)
        return [self._kept[app, name].topic for name in names[:n]]

    async def remove(self, app: AppId, name: str) -> bool:
        """See Topics."""
        return self._kept.pop((app, name), None) is not None

    async def change(self, app: AppId, name: str, add: Sequence[UserId], take: Sequence[UserId], at: Instant) -> bool:
        """See Topics."""
        known = self._kept.get((app, name))
        if known is None:
            return False
        for user in take:
            known.members.pop(user, None)
        for user in add:
            known.members.setdefault(user, at)
        return True

    async def heard_by(self, app: AppId, user_id: UserId) -> list[str]:
        """See Topics."""
        return sorted(name for (of, name), kept in self._kept.items() if of == app and user_id in kept.members)

    async def count(self, topic: Topic) -> int:
        """See Topics."""
        return len(self._members(topic))

    async def members(self, topic: Topic, after: str, n: int) -> list[UserId]:
        """See Topics."""
        return sorted(user for user in self._members(topic) if user > after)[:n]

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Topics."""
        for (of, _), kept in self._kept.items():
            if of == app and kept.members.get(user_id, until) <= until:
                kept.members.pop(user_id, None)

    async def drop(self, page: int) -> int:
        """See Topics."""
        return 0

    def _members(self, topic: Topic) -> dict[UserId, Instant]:
        return next((kept.members for kept in self._kept.values() if kept.topic.number == topic.number), {})

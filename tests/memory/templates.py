"""Templates in plain collections."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from waypost.domain.ids import AppId
from waypost.domain.template import TemplateContent, Version
from waypost.domain.time import Instant
from waypost.ports.templates import TemplateRecord, VersionRecord, Wanted


class MemoryTemplates:
    """See ports.templates.Templates."""

    def __init__(self) -> None:
        self._latest: dict[tuple[AppId, str], int] = {}
        self._published: dict[tuple[AppId, str], int] = {}
        self._retired: dict[tuple[AppId, str], Instant] = {}
        self._versions: dict[tuple[AppId, str], dict[int, tuple[TemplateContent, VersionRecord]]] = {}

    async def put(self, app: AppId, name: str, content: TemplateContent, now: Instant) -> int:
        """See Templates."""
        key = app, name
        number = self._latest[key] = self._latest.get(key, 0) + 1
        kept = {n: each for n, each in self._versions.get(key, {}).items() if each[1].published_at is not None}
        self._versions[key] = kept | {number: (content, VersionRecord(number, now, None))}
        return number

    async def publish(self, app: AppId, name: str, number: int, now: Instant) -> bool:
        """See Templates."""
        versions = self._versions.get((app, name), {})
        if number not in versions:
            return False
        content, known = versions[number]
        versions[number] = content, VersionRecord(number, known.created_at, known.published_at or now)
        self._published[app, name] = number
        self._retired.pop((app, name), None)
        return True

    async def retire(self, app: AppId, name: str, now: Instant) -> bool:
        """See Templates."""
        if (app, name) in self._latest:
            self._retired[app, name] = now
        return (app, name) in self._latest

    async def list(self, app: AppId, after: str, n: int) -> list[TemplateRecord]:
        """See Templates."""
        names = sorted(name for of, name in self._latest if of == app and name > after)
        return [self._record((app, name)) for name in names[:n]]

    async def show(self, app: AppId, name: str) -> TemplateRecord | None:
        """See Templates."""
        return self._record((app, name)) if (app, name) in self._latest else None

    async def versions(self, app: AppId, name: str) -> Sequence[VersionRecord]:
        """See Templates."""
        found = self._versions.get((app, name), {})
        return [record for _, (_, record) in sorted(found.items(), reverse=True)]

    async def chosen(self, app: AppId, wanted: Collection[Wanted]) -> Mapping[Wanted, Version]:
        """See Templates."""
        open_ones = [each for each in wanted if (app, each[0]) not in self._retired]
        numbers = {(name, number): number or self._published.get((app, name), 0) for name, number in open_ones}
        found = await self.of(app, {(name, number) for (name, _), number in numbers.items()})
        return {each: found[each[0], number] for each, number in numbers.items() if (each[0], number) in found}

    async def of(self, app: AppId, wanted: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], Version]:
        """See Templates."""
        return {
            (name, number): Version(name, number, self._versions[app, name][number][0])
            for name, number in wanted
            if number in self._versions.get((app, name), {})
        }

    def _record(self, key: tuple[AppId, str]) -> TemplateRecord:
        drafts = [n for n, (_, record) in self._versions[key].items() if record.published_at is None]
        return TemplateRecord(key[1], self._published.get(key), max(drafts, default=None), self._retired.get(key))

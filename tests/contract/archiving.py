"""An archive on a store under test: its files in a folder, and how one looks for what is in either place."""

from __future__ import annotations

import itertools
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.contract.bench import APP, Bench, notification, sent
from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId, NotificationId, UserId, next_ids
from waypost.domain.notification import Notification
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.archive.files import BESIDE, Files
from waypost.features.archive.moving import move
from waypost.features.archive.reading import ReadArchive
from waypost.ports.views import HistoryQuery, NotificationRecord
from waypost.stores.archive.bucket import Bucket, Folder
from waypost.stores.sql.archive import SqlArchive
from waypost.stores.sql.store import Store

KEEP_DAYS = 90


class Killed(BaseException):
    """The end of a process, as the code that runs in it sees it: nothing of it goes on."""


class Fate:
    """Kills at one step: before it is made, or after, when nobody hears of it."""

    def __init__(self, at: int = 0, name: str = "") -> None:
        self.at = at
        self.name = name
        self.steps: list[str] = []

    def step(self, name: str) -> None:
        """Pass a point at which a process may end."""
        self.steps.append(name)
        if len(self.steps) == self.at or name == self.name:
            raise Killed


class FatedBucket:
    """A bucket whose process may end before and after each call."""

    def __init__(self, bucket: Bucket, fate: Fate) -> None:
        self._bucket = bucket
        self._fate = fate

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self._fate.step(f"before {name}")
            answer = getattr(self._bucket, name)(*given)
            if name != "open":  # it has only read
                self._fate.step(f"after {name}")
            return answer

        return call


class FatedManifest:
    """A manifest whose process may end before and after each transaction."""

    def __init__(self, manifest: SqlArchive, fate: Fate) -> None:
        self._manifest = manifest
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._manifest, name)
        if name not in {"begin", "place", "drop", "done", "give_up"}:
            return real

        async def call(*given: Any) -> Any:
            self._fate.step(f"before {name}")
            answer = await real(*given)
            self._fate.step(f"after {name}")
            return answer

        return call


class ArchiveBench:
    """A worker on a store with an archive in a folder."""

    def __init__(self, bench: Bench, folder: Path, bucket: Bucket | None = None) -> None:
        assert isinstance(bench.store, SqlUnderTest)
        self.bench = bench
        self.under_test = bench.store
        self.folder = folder
        self.bucket: Bucket = bucket or Folder(folder)

    @property
    def store(self) -> Store:
        """The worker's store."""
        return self.under_test.ground_of(self.bench.worker).store

    @property
    def reads(self) -> ReadArchive:
        """The reads of the archive."""
        return ReadArchive(self.store.archive, self.bucket)

    def files(self, fate: Fate | None = None) -> Files:
        """What writes files, which *fate* may end."""
        if fate is None:
            return Files(self.store.archive, self.bucket, self.bench.clock)
        bucket: Any = FatedBucket(self.bucket, fate)
        manifest: Any = FatedManifest(self.store.archive, fate)
        return Files(manifest, bucket, self.bench.clock)

    async def moved(self, fate: Fate | None = None, *, rows: int = 10_000) -> int:
        """Move what is old enough."""
        return (await move(self.files(fate), later(self.bench.now, -KEEP_DAYS * DAY_MS), rows=rows)).notifications

    async def finished(self, user: str = "ann", *, app: AppId = APP, body: str | None = None) -> Notification:
        """A notification that was sent now; its id says the store's time."""
        made = await self.accepted(user, app=app, body=body)
        await self.finish(made)
        return made

    async def accepted(
        self, user: str = "ann", *, app: AppId = APP, body: str | None = None, in_days: int | None = None
    ) -> Notification:
        """A notification that was accepted now, to be sent now or in some days."""
        due_at = None if in_days is None else later(self.bench.now, in_days * DAY_MS)
        made = notification(self.bench.now, user=user, app=app, body=body, scheduled_at=due_at)
        made = replace(made, id=next_ids(self.bench.now, 1, os.urandom(10), 0)[0][0])
        await self.bench.accept(made)
        return made

    async def finish(self, made: Notification) -> None:
        """Send it now."""
        lease = await self.bench.take()
        item = next(each for each in lease.items if each.notification.id == made.id)
        assert await self.bench.settle_first(lease, item, 1, sent(0, self.bench.now)) == []

    async def hot(self, app: AppId = APP, user: str | None = None) -> list[NotificationId]:
        """The ids that the store lists."""
        query = HistoryQuery(app, None if user is None else UserId(user), limit=500)
        return [each.notification.id for each in await self.under_test.views.history(query)]

    async def cold(self, app: AppId = APP, user: str | None = None, *, limit: int = 500) -> list[NotificationId]:
        """The ids that the archive lists, page by page."""
        return [each.notification.id for each in await self.cold_records(app, user, limit=limit)]

    async def cold_records(
        self, app: AppId = APP, user: str | None = None, *, limit: int = 500
    ) -> list[NotificationRecord]:
        """What the archive lists."""
        found: list[NotificationRecord] = []
        query: HistoryQuery | None = HistoryQuery(app, None if user is None else UserId(user), limit=limit)
        while query is not None:
            page = await self.reads.history(query)
            found += page.records
            query = None if page.before is None else replace(query, before=page.before)
        return found

    async def all_there_once(self, made: Sequence[Notification]) -> None:
        """Each is found by its id, and listed in one of the two places and not in both."""
        for app in sorted({each.app for each in made}):
            listed = [*await self.hot(app), *await self.cold(app)]
            assert sorted(listed) == sorted(each.id for each in made if each.app == app)
        for each in made:
            detail = await self.under_test.views.detail(each.app, each.id)
            assert detail or await self.reads.detail(each.app, each.id), "it is lost"

    async def nothing_left_over(self) -> None:
        """Only files of the manifest lie there, each with what is said of it, and nothing is to be done."""
        await self.files().tidy()
        known = {file.path for file in await self.store.archive.all()}
        assert set(self.bucket.paths()) == known | {path + BESIDE for path in known}
        cells = {name for name, _ in await self.under_test.cells()}
        assert "archive_todo" not in cells


async def until_it_ends(act: Callable[[Fate], Awaitable[object]], check: Callable[[], Awaitable[None]]) -> set[str]:
    """Kill *act* at its first step, then at the second of what is left, and so on, each time checking what is there.

    Return the steps at which it was killed.
    """
    killed_at: set[str] = set()
    for at in itertools.count(1):
        fate = Fate(at)
        try:
            await act(fate)
        except Killed:
            killed_at.add(fate.steps[-1])
            await check()
            continue
        break
    return killed_at


def day(bench: Bench, days: float) -> Instant:
    """Let days pass."""
    bench.clock.advance(int(days * DAY_MS))
    return bench.now

"""What is behind every door here: the real store on SQLite, and a log that can be searched."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.adapters.rest.service import DEFAULTS, DEMO, Service
from tests.contract.sql import SqlUnderTest
from tests.empty_store import put_empty
from tests.hostile.texts import MARK
from waypost.adapters.jsonlines.sink import JsonLinesSink
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.settings import RestSettings
from waypost.pipeline.feed import mark
from waypost.ports.work import Acceptance, Accepted, NewNotification, Replay, Work
from waypost.telemetry import Level

LONG_S = 10.0


class Behind(Service):
    """A service whose notifications are rows, and whose log is lines."""

    def __init__(self, store: SqlUnderTest, work: Work, settings: RestSettings) -> None:
        super().__init__(settings)
        self.lines = io.BytesIO()
        self._log = log = JsonLinesSink(self.lines, Level.DEBUG)
        self.taken = Noting(work)
        self._stored = store
        self.keys = store.keys  # type: ignore[assignment]  # the port's others
        behind: dict[str, Any] = {"telemetry": log, "clock": store.clock}
        intake = replace(self.api.intake, work=self.taken, dedup=store.dedup, **behind)
        callers = Authenticator(store.keys, self.tokens, self.api.device_caps, store.clock, settings.key_cache_s, log)
        stored: dict[str, Any] = {
            "callers": callers,
            "keys": store.keys,
            "views": store.views,
            "mark": partial(mark, store.feed, work, store.clock, self.hub, ()),
        }
        stored |= {"devices": store.devices, "opt_outs": store.opt_outs, "audit": store.audit, "outbox": store.outbox}
        jobs = replace(self.api.bulk, bulk=store.bulk_of(work), views=store.bulk_views)
        stored |= {"bulk": jobs, "erasures": store.erasures_of(work)}
        self.api = replace(self.api, intake=intake, **stored, **behind)
        self.app = build_app(self.api)

    async def stored(self, notification_id: NotificationId) -> Notification:
        """As a row has it."""
        detail = await self._stored.views.detail(DEMO, notification_id)
        assert detail is not None
        return detail.record.notification

    def log_faults(self) -> list[str]:
        """Lines that say that something was not foreseen, and those that hold what was sent."""
        assert self._log.flush(LONG_S)
        lines = self.lines.getvalue().decode().splitlines()
        secret = self.made.text.rpartition("_")[2]
        bad = ('"request.failed"', '"stage.failed"', MARK, secret)
        return [line for line in lines if any(each in line for each in bad)]


class Noting:
    """A store that remembers what it was given."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.ids: list[NotificationId] = []
        self.by_name: dict[str, NotificationId] = {}
        """By user or title, of which one is the name of a case."""

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        answers = await self._work.accept(batch)
        for each, answer in zip(batch, answers, strict=True):
            if isinstance(each, NewNotification) and isinstance(answer, Accepted):
                made = each.notification
                self.ids.append(made.id)
                self.by_name[made.user_id] = self.by_name[made.content.title or ""] = made.id
        return answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


@asynccontextmanager
async def behind(folder: Path, settings: RestSettings = DEFAULTS, database: str | None = None) -> AsyncIterator[Behind]:
    """With its keys, until the block ends; on the *database* of that URL, or a file in *folder*."""
    store = SqlUnderTest(database or f"sqlite:///{put_empty(folder / 'waypost.db')}")
    await store.open()
    try:
        (work,) = await store.open_workers(1)
        service = Behind(store, work, settings)
        await service.add_keys()
        yield service
    finally:
        await store.close()

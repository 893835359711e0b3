"""A whole REST API in this process, over the memory adapters or a file of SQLite."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import msgspec
from litestar.types import ASGIApp

from tests.contract.clock import StoppedClock
from tests.contract.sql import settings_of
from tests.memory.alerts import MemoryAlerts
from tests.memory.analytics import MemoryAnalytics, MemoryUserEvents
from tests.memory.audit import MemoryAudit
from tests.memory.balance import MemoryBalance
from tests.memory.bulk import MemoryBulk, MemoryBulkViews, MemoryOptOuts
from tests.memory.campaigns import MemoryCampaigns
from tests.memory.dedup import MemoryDedup
from tests.memory.device_events import MemoryDeviceEvents
from tests.memory.devices import MemoryDevices
from tests.memory.erasures import MemoryErasures
from tests.memory.feed import MemoryFeed
from tests.memory.feed_secret import MemoryFeedSecret
from tests.memory.keys import MemoryKeys
from tests.memory.outbox import MemoryOutboxView
from tests.memory.preferences import MemoryPreferences
from tests.memory.profiles import MemoryProfiles
from tests.memory.schedules import MemorySchedules
from tests.memory.segments import MemorySegments
from tests.memory.series import MemorySeries
from tests.memory.store import MemoryStore
from tests.memory.templates import MemoryTemplates
from tests.memory.topics import MemoryTopics
from tests.memory.views import MemoryViews
from tests.memory.work import MemoryWork
from tests.unbounded import UNBOUNDED
from waypost.adapters.jwt.claims import Issuer
from waypost.adapters.jwt.tokens import IssuedTokens
from waypost.bootstrap import features
from waypost.bootstrap.features import tables
from waypost.bootstrap.live import hub_of
from waypost.bootstrap.registry import channels_of, installed
from waypost.bootstrap.senders import content_checks, registration_checks
from waypost.config import AppSettings, Config
from waypost.domain import api_key
from waypost.domain.backlog import Backlog
from waypost.domain.channel import Channel
from waypost.domain.delivery import Attempt, Target
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, next_ids
from waypost.domain.notification import Lane, Notification
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.settlement import Change, Settlement
from waypost.domain.submission import Defaults
from waypost.domain.time import later
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.rest.api import Api, Readiness
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.settings import RestSettings
from waypost.features.dashboard.invitations import Invitations
from waypost.features.parts import Door, Ground
from waypost.pipeline.best_hours import CountedHours
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.explain import Explain
from waypost.pipeline.feed import mark
from waypost.pipeline.intake import Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.pipeline.zones import zones_of
from waypost.ports.archive import NoArchive
from waypost.ports.keys import ApiKey
from waypost.ports.views import HistoryQuery
from waypost.ports.work import Settled
from waypost.runtime.peers import NoPeers
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.outbox_view import SqlOutboxView
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.store import Store, open_store
from waypost.telemetry import Event, Metric, Silent

DEMO, OTHER = AppId("demo"), AppId("other")
DEFAULTS = RestSettings()
_ANYWHERE = Config(apps={}).store
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
"""The browser's key in the example of RFC 8291, appendix A."""
AUTH = "A" * 22


FILE: Path | None = None
"""The empty file of SQLite that ``served`` works on a copy of, as ``each_store`` says; None is memory."""


class CountedIds:
    """Ids in order, the same in every run."""

    def __init__(self, clock: StoppedClock) -> None:
        self._clock = clock
        self._floor = 0

    def next(self, count: int) -> list[NotificationId]:
        """See Ids."""
        ids, self._floor = next_ids(self._clock.now(), count, bytes(10), self._floor)
        return ids


class Noticed(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []
        self.counts: list[tuple[Metric, dict[str, str]]] = []

    def event(self, event: Event, /, **fields: object) -> None:
        """Keep it."""
        self.events.append((event, fields))

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Keep it."""
        self.counts.append((metric, labels))


class InMemory:
    """The stores of the memory adapters."""

    def __init__(self, clock: StoppedClock) -> None:
        self.data = MemoryStore()
        self.keys = MemoryKeys(self.data)
        self.work = MemoryWork(self.data, clock)
        self.views = MemoryViews(self.data, clock)
        self.devices = MemoryDevices(self.data)
        self.dedup = MemoryDedup(self.data, clock)
        self.bulk = MemoryBulk(self.data)
        self.bulk_views = MemoryBulkViews(self.data)
        self.opt_outs = MemoryOptOuts(self.data)
        self.campaigns = MemoryCampaigns()
        self.erasures = MemoryErasures(self.data)
        self.audit = MemoryAudit(self.data)
        self.feed = MemoryFeed(self.data, clock)
        self.feed_secret = MemoryFeedSecret()
        self.balance = MemoryBalance(self.data, clock)
        self.device_events = MemoryDeviceEvents()
        self.outbox = MemoryOutboxView()
        self.recovery = MemoryAlerts()
        self.profiles = MemoryProfiles()
        self.schedules = MemorySchedules()
        self.user_events = MemoryUserEvents()
        self.analytics = MemoryAnalytics(self.user_events)
        self.preferences = MemoryPreferences()
        self.series = MemorySeries()
        self.topics = MemoryTopics()
        self.segments = MemorySegments()
        self.templates = MemoryTemplates()


class Service:
    """The API with everything behind it within reach."""

    def __init__(
        self,
        settings: RestSettings = DEFAULTS,
        *,
        issuers: Sequence[Issuer] = (),
        operating_only: bool = False,
        clock: StoppedClock | None = None,
        stores: InMemory | Store | None = None,
        kept: SqlSettings = _ANYWHERE,
    ) -> None:
        self.clock = clock or StoppedClock()
        self.kept = kept
        self.stores: Any = stores or InMemory(self.clock)
        self.keys, self.work, self.views = self.stores.keys, self.stores.work, self.stores.views
        self.devices, self.bulk, self.erasures = self.stores.devices, self.stores.bulk, self.stores.erasures
        self.outbox = self.stores.outbox if isinstance(self.stores, InMemory) else SqlOutboxView(self.stores.database)
        self.telemetry = Noticed()
        self.hub = hub_of(Config(apps={}), self.stores.feed, NoPeers(), self.clock, self.telemetry)
        self.tokens = IssuedTokens(issuers, self.clock, self.telemetry)
        self.backlog = Backlog(1_000, is_shared=True)
        self.is_draining = False
        self.not_ready: dict[str, str] = {}
        self.made = api_key.make(bytes(range(api_key.RANDOM_BYTES)))
        self.others = api_key.make(bytes(range(1, api_key.RANDOM_BYTES + 1)))
        self.door = Door()
        self.api = msgspec.structs.replace(self._api(settings), operating_only=operating_only)
        self.door.open(self.api.intake, self.api.bulk)
        self.app: ASGIApp = build_app(self.api)

    def _api(self, settings: RestSettings) -> Api:
        ids, defaults = (
            CountedIds(self.clock),
            {DEMO: Defaults(dedup_window_s=86_400), OTHER: Defaults(dedup_window_s=86_400)},
        )
        plugins, bare = installed(), AppSettings()
        checks = {app: content_checks(bare, plugins) for app in defaults}
        direct = DirectDevices(self.devices, {app: registration_checks(app, bare, plugins) for app in defaults})
        grounds = {each.name: self._ground(each.settings and each.settings()) for each in features.FEATURES}
        templates = StoredTemplates(self.stores.templates)
        intake = Intake(
            self.work,
            self.stores.dedup,
            self.clock,
            ids,
            self.telemetry,
            defaults,
            direct,
            templates,
            backlog=lambda: self.backlog,
            refused=self.stores.balance.refused,
            checks=checks,
            zones=partial(zones_of, self.stores.profiles, {OTHER: "Asia/Kolkata"}),
            habits=CountedHours(self.stores.analytics, self.clock).habits,
        )
        return Api(
            intake=intake,
            views=self.views,
            archive=NoArchive(),
            devices=self.devices,
            callers=Authenticator(self.keys, self.tokens, defaults, self.clock, settings.key_cache_s, self.telemetry),
            keys=self.keys,
            bulk=BulkIntake(
                self.bulk,
                self.stores.bulk_views,
                self.clock,
                ids,
                self.stores.templates,
                defaults,
                checks,
                segments=self.stores.segments,
            ),
            opt_outs=self.stores.opt_outs,
            erasures=self.erasures,
            audit=self.stores.audit,
            mark=partial(mark, self.stores.feed, self.work, self.clock, self.hub, ()),
            routes=features.routes(),
            mounts=features.mounts(grounds),
            tags=features.tags(),
            say=features.saying(grounds),
            outbox=self.outbox,
            explain=Explain(
                self.devices,
                direct,
                templates,
                {},
                RoutingTable(channels_of(plugins), {}, RULES),
                defaults,
                self.clock,
                ids,
                checks,
                clocks=intake.clocks,
            ),
            clock=self.clock,
            telemetry=self.telemetry,
            device_caps={DEMO: 2, OTHER: 10},
            readiness=lambda: Readiness(not self.not_ready, {"worker 0": "ok", **self.not_ready}),
            metrics=lambda: b"# TYPE up gauge\n",
            draining=lambda: self.is_draining,
            limits=UNBOUNDED,
            settings=settings,
            channels=tuple(plugin.channel for plugin in plugins),
            platforms=tuple(sorted(channels_of(plugins))),
            device_checks=direct.checks,
            grounds=grounds,
        )

    def _ground(self, settings: Any) -> Ground:
        config = Config(apps={DEMO: AppSettings(), OTHER: AppSettings()}, store=self.kept)
        stores = self.stores, self.work, self.devices, self.clock
        return Ground(*stores, self.telemetry, config, settings, live=self.hub, door=self.door)

    @property
    def invitations(self) -> Invitations:
        """What lets a browser on its machine into the dashboard."""
        invitations = Invitations(run_dir_of_store(self.kept))
        invitations.prepare()
        return invitations

    @property
    def store(self) -> MemoryStore:
        """What the memory adapters hold."""
        assert isinstance(self.stores, InMemory)
        return self.stores.data

    async def accepted(self, app: AppId = DEMO) -> list[Notification]:
        """What was accepted of an app, duplicates included, newest first."""
        return [each.notification for each in await self.views.history(HistoryQuery(app, limit=100))]

    async def add_keys(self) -> None:
        """Store a key of each app."""
        for key, app in ((self.made, DEMO), (self.others, OTHER)):
            await self.keys.add(ApiKey(key.prefix, key.secret_hash, app, CallerId("billing"), self.clock.now()))

    async def settled(self, *settlements: Settlement, lane: Lane = Lane.NORMAL) -> None:
        """Lease one notification, and settle the first attempt of each of its devices on FCM."""
        now = self.clock.now()
        lease = await self.work.lease(lane, 1, later(now, 60_000))
        (item,) = lease.items
        tried = Attempt(now, "tried", "", "", bytes(16))
        changes = [Change(n, 1, settlement, now, tried) for n, settlement in enumerate(settlements)]
        targets = [Target(n, DeviceId(f"device-{n}"), Channel("fcm")) for n in range(len(settlements))]
        settled = Settled(item.notification, tuple(changes), tuple(targets))
        assert await self.work.settle(lease, [settled]) == []

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """A client that presents *key* (the demo app's)."""
        transport = httpx.ASGITransport(self.app)  # type: ignore[arg-type] # the same protocol, typed twice
        headers = {"authorization": f"Bearer {key or self.made.text}"}
        return httpx.AsyncClient(transport=transport, base_url="http://waypost", headers=headers)


@asynccontextmanager
async def served(
    settings: RestSettings = DEFAULTS, *, operating_only: bool = False, issuers: Sequence[Issuer] = ()
) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """A service with its keys, and a client of the demo app."""
    clock = StoppedClock()
    async with _stores(clock) as (stores, kept):
        service = Service(
            settings, operating_only=operating_only, clock=clock, stores=stores, issuers=issuers, kept=kept
        )
        await service.add_keys()
        async with service.client() as client:
            yield service, client


@asynccontextmanager
async def _stores(clock: StoppedClock) -> AsyncIterator[tuple[InMemory | Store, SqlSettings]]:
    """The stores behind a service, and where they are: a file's, in tests that are run on it, too."""
    if FILE is None:
        yield InMemory(clock), _ANYWHERE
        return
    with TemporaryDirectory() as folder:
        settings = settings_of(f"sqlite:///{shutil.copy(FILE, folder)}")
        store = await open_store(settings, clock=clock, peers=None, telemetry=Silent(), tables=tables())
        try:
            await store.shards.acquire()
            yield store, settings
        finally:
            await store.close()


def shown(user_id: str = "user-1", **fields: Any) -> dict[str, Any]:
    """A visible notification as a caller writes it."""
    return {"user_id": user_id, "title": "Hello", **fields}

"""``waypost simulate``, put together: recorded traffic through what decides, under two policies."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.bootstrap import features
from waypost.bootstrap.delivery_context import routing_table
from waypost.bootstrap.devices import opened_devices
from waypost.bootstrap.registry import channels_of, families, installed
from waypost.bootstrap.senders import check_default_channels, content_checks, sections_of
from waypost.config import Config
from waypost.config.proposing import proposed
from waypost.domain.backlog import Backlog
from waypost.domain.device import Device
from waypost.domain.errors import Fault, InvalidRequest, NotFound
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId, first_id_at, next_ids
from waypost.domain.local_time import ChosenZone, ZoneReader
from waypost.domain.notification import Notification
from waypost.domain.simulation import Difference, Digest, Ending, Fate, Tally, Told, under
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import Moment, Submission
from waypost.domain.time import DAY_MS, Instant, from_datetime, later
from waypost.features.preferences.deciding import OURS
from waypost.features.preferences.settings import check_preferences
from waypost.pipeline.best_hours import CountedHours
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.intake import Caller, Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.pipeline.zones import zones_of
from waypost.ports.devices import Devices
from waypost.ports.views import HistoryQuery
from waypost.runtime.clock import SystemClock
from waypost.runtime.simulating import Decided, SimulatedClock, Simulation, World
from waypost.stores.sql.simulated import ReadDatabase, ReadStore, SimulatedDigests, SimulatedFrequency, SimulatedWork
from waypost.telemetry import Silent

_PAGE: Final = 500
_USERS: Final = 200
"""Users whose notifications happen side by side."""
_CALLER: Final = CallerId("simulation")
_NOISE_BYTES: Final = 10
Progress = Callable[[int, int], None]
"""Told how many notifications of how many are done."""


class TrafficLine(Submission, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A submission and when it comes: a line of a file of traffic."""

    at: Moment


class Item(Struct, frozen=True):
    """A notification as each policy would have accepted it, or why it would have been refused."""

    id: NotificationId
    user_id: UserId
    type: str
    before: Notification | str
    after: Notification | str


class Seen(Struct, frozen=True):
    """One notification under one policy."""

    fate: Fate
    decided: Sequence[Decided]


class Simulator:
    """The simulation of one app's traffic under today's policy and a proposed one."""

    def __init__(self, app: AppId, today: Config, proposed: Config, store: ReadStore, devices: Devices) -> None:
        """Create it; ConfigurationError where a worker could not start with the proposed policy."""
        check_default_channels(proposed)
        check_preferences(proposed)
        self._app = app
        self._configs = today, proposed
        self._store = store
        self._devices = devices

    async def recorded(
        self, since: Instant, until: Instant, limit: int, user_id: UserId | None = None
    ) -> tuple[list[Item], bool]:
        """Read what was accepted from *since* until before *until*, the latest *limit*; whether that is all of it.

        What Waypost itself sent, such as digests, is left out: each policy makes its own. So is what was taken back.
        """
        found: list[Notification] = []
        before = first_id_at(until)
        while True:
            page = await self._store.views.history(HistoryQuery(self._app, user_id, (), before, _PAGE))
            found += [
                each.notification
                for each in page
                if each.notification.created_at >= since
                and each.duplicate_of is None
                and each.status is not NotificationStatus.CANCELLED
                and not each.notification.caller.startswith(OURS)
            ]
            if len(page) < _PAGE or page[-1].notification.created_at < since or len(found) > limit:
                return [self._item(each) for each in reversed(found[:limit])], len(found) <= limit
            before = page[-1].notification.id

    def _item(self, notification: Notification) -> Item:
        then, now = (config.apps[self._app].typed_defaults for config in self._configs)
        content = notification.content
        after = under(notification, then, now)
        return Item(notification.id, notification.user_id, content.type or "", notification, after)

    async def read(self, file: Path, limit: int) -> list[Item]:
        """Read a file of traffic; InvalidRequest names a line that is no submission with a time."""
        clock, items = SimulatedClock(), list[Item]()
        intakes = [self._intake(config, clock) for config in self._configs]
        for n, line in enumerate(_lines(file, limit)):
            if line.device is not None:
                raise InvalidRequest((Fault(f"line {n + 1}: device", "is no user's: there is no policy for it"),))
            clock.at = from_datetime(line.at)
            made = [await intake(n, line) for intake in intakes]
            id_ = next((each.id for each in made if isinstance(each, Notification)), NotificationId(bytes(16)))
            items.append(Item(id_, UserId(line.user_id or ""), line.type or "", *made))
        return items

    def _intake(self, config: Config, clock: SimulatedClock) -> Callable[[int, Submission], Any]:
        """Return what takes a submission in as the API does; nothing is stored, and no repeat is noticed."""
        work, app, chosen = SimulatedWork(), self._app, config.apps[self._app]
        intake = Intake(
            work=cast("Any", work),
            dedup=cast("Any", None),
            clock=clock,
            ids=cast("Any", None),
            telemetry=Silent(),
            defaults={app: chosen.typed_defaults},
            direct=DirectDevices(self._devices, {}),
            templates=StoredTemplates(self._store.templates),
            backlog=lambda: _ROOM,
            checks={app: content_checks(chosen, installed())},
            zones=self._zones(config),
            habits=CountedHours(self._store.analytics, clock).habits,
        )
        caller = Caller(app, _CALLER, frozenset())

        async def take(n: int, submission: Submission) -> Notification | str:
            (answer,) = await replace(intake, ids=_NumberedIds(clock, n)).submit(caller, [submission])
            return str(answer) if isinstance(answer, InvalidRequest) else work.taken()[0]

        return take

    def _zones(self, config: Config) -> ZoneReader:
        return partial(zones_of, self._store.profiles, {self._app: config.apps[self._app].time_zone})

    async def difference(self, items: Sequence[Item], top: int, progress: Progress) -> Difference:
        """Let *items* happen under both policies, and return the difference."""
        worlds, tally, done = [self._world(config) for config in self._configs], Tally(), 0
        of_users = list(_by_user(items).items())
        for start in range(0, len(of_users), _USERS):
            page = dict(of_users[start : start + _USERS])
            devices = await self._devices_of(list(page))
            zones = await self._zones(self._configs[0])(self._app, list(page))
            chosen = [item for those in page.values() for item in those]
            fates: list[list[Fate]] = []
            for is_after, world in enumerate(worlds):
                simulation = Simulation(world, devices)
                fates.append(await _lived(simulation, [item.after if is_after else item.before for item in chosen]))
                for digest in _digests(simulation, zones, is_after=bool(is_after)):
                    tally.add_digest(digest)
            for item, *both in zip(chosen, *fates, strict=True):
                tally.add(Told(item.id, item.user_id, item.type, zones[item.user_id].name, *both))
            done += len(chosen)
            progress(done, len(items))
            await asyncio.sleep(0)
        return tally.difference(top)

    async def explained(self, notification_id: NotificationId, since: Instant | None) -> tuple[Seen, Seen]:
        """Let one notification happen, after what its user was told from *since* on, or in the week before."""
        found = await self._store.views.detail(self._app, notification_id)
        if found is None:
            raise NotFound("no such notification")
        asked = found.record.notification
        start = later(asked.created_at, -_LOOKED_BACK_MS) if since is None else since
        items, _ = await self.recorded(start, later(asked.created_at, 1), _MOST, asked.user_id)
        if all(each.id != notification_id for each in items):
            items.append(self._item(asked))
        devices = await self._devices_of([asked.user_id])
        seen: list[Seen] = []
        for is_after, config in enumerate(self._configs):
            simulation = Simulation(self._world(config), devices)
            simulation.watched = notification_id
            fates = await _lived(simulation, [item.after if is_after else item.before for item in items])
            place = next(n for n, item in enumerate(items) if item.id == notification_id)
            seen.append(Seen(fates[place], simulation.decided))
        before, after = seen
        return before, after

    async def _devices_of(self, users: Sequence[UserId]) -> dict[UserId, Sequence[Device]]:
        found = await self._devices.for_users([(self._app, user) for user in users])
        return dict(zip(users, found, strict=True))

    def _world(self, config: Config) -> World:
        """Put together what decides under *config*, as for a worker, on stores that keep nothing."""
        clock, work = SimulatedClock(), SimulatedWork()
        store = copy(self._store)
        store.frequency, store.digests = SimulatedFrequency(work), SimulatedDigests()
        grounds = features.grounds_of(
            config, cast("Any", store), cast("Any", work), self._devices, clock, Silent(), cast("Any", None)
        )
        grounds = features.complete(grounds, None, channels_of(installed()), families())
        routing = routing_table(config, sections_of(config))
        return World(routing, features.facts_reader(grounds), features.claims_of(grounds), clock, work.taken)


_LOOKED_BACK_MS: Final = 7 * DAY_MS
_MOST: Final = 100_000
_ROOM: Final = Backlog(1, is_shared=False)


class _NumberedIds:
    """Ids that follow from the number of a line, so that both policies give it the same."""

    def __init__(self, clock: SimulatedClock, n: int) -> None:
        self._clock = clock
        self._noise = hashlib.blake2b(str(n).encode(), digest_size=_NOISE_BYTES).digest()

    def next(self, count: int) -> list[NotificationId]:
        """See Ids."""
        return next_ids(self._clock.now(), count, self._noise, 0)[0]


@asynccontextmanager
async def simulating(app: AppId, today: Config, proposed: Config) -> AsyncIterator[Simulator]:
    """Open the store of *today* for reading alone."""
    clock, telemetry = SystemClock(), Silent()
    database = ReadDatabase(today.store, clock=clock, telemetry=telemetry)
    try:
        await database.check()
        store = ReadStore(database, clock)
        async with opened_devices(today, cast("Any", store), 1, telemetry) as devices:
            yield Simulator(app, today, proposed, store, devices)
    finally:
        await database.close()


def proposal(config: Config, app: AppId, file: Path) -> Config:
    """Return *config* with the policy of *file* for *app*."""
    return proposed(config, app, file, installed(), features.sections())


def _lines(file: Path, limit: int) -> Iterator[TrafficLine]:
    decoder = msgspec.json.Decoder(TrafficLine)
    with file.open("rb") as lines:
        for n, line in enumerate(islice(lines, limit)):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as wrong:
                raise InvalidRequest((Fault(f"line {n + 1}", str(wrong)),)) from None


async def _lived(simulation: Simulation, made: Sequence[Notification | str]) -> list[Fate]:
    """Let what would be accepted happen; return what becomes of each, also of what would be refused."""
    fates = iter(await simulation.run([each for each in made if isinstance(each, Notification)]))
    return [next(fates) if isinstance(each, Notification) else Fate(Ending.REFUSED, each) for each in made]


def _by_user(items: Sequence[Item]) -> Mapping[UserId, Sequence[Item]]:
    """Put together the items of each user: what becomes of one depends on the others of its user alone."""
    found: dict[UserId, list[Item]] = {}
    for each in items:
        found.setdefault(each.user_id, []).append(each)
    return found


def _digests(simulation: Simulation, zones: Mapping[UserId, ChosenZone], *, is_after: bool) -> Iterator[Digest]:
    """Yield the messages of Waypost's own that disturb somebody: digests, and no copies for the feed."""
    for made in simulation.made:
        at, user = made.fate().at, made.notification.user_id
        if at is not None:
            yield Digest(user, zones[user].name, at, is_after)

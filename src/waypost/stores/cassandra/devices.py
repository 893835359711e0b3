"""The registry of devices on Cassandra: see schema.py for the tables, registering.py for how a token changes hands."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from waypost.domain.device import Device, Registration
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.devices import Eviction, Registered, Use
from waypost.runtime.clock import SystemClock
from waypost.runtime.time_slices import slices
from waypost.stores.cassandra import partition
from waypost.stores.cassandra.link import CONNECT_PAUSE_S, CassandraLink
from waypost.stores.cassandra.nodes import NodeWatch
from waypost.stores.cassandra.partition import StoredDevice
from waypost.stores.cassandra.registering import erase, forget, keep, owner_of, register
from waypost.stores.cassandra.session import Row
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.cassandra.statements import device_of
from waypost.telemetry import Event, Silent, Telemetry

ATTEMPTS = 12
"""The attempts at a change that others came before; each time one of them got through."""
AWAY_ATTEMPTS = 2
"""The attempts at a change of which it is not known whether it happened: a node died with it."""
PAUSE_S = 0.01
CHANGES_AT_ONCE = 64
LOOK_UPS_TOGETHER = 10
"""Partitions that one request asks for: half the CPU of as many requests. More save little, and wait for each other:
where a copy does not answer, the node that was asked turns to the next one for one partition after the other."""
LOOK_UPS_AT_ONCE = 50
"""The most such requests under way in one process: more would wait in a busy cluster until they are too old."""
START_S = 8.0
"""Seconds that a start waits for the cluster, and for another process to bring the tables up to date."""
TURNS = 256
WALK_PAGE = 1_000
_US = 1_000

T = TypeVar("T")


class CassandraDevices:
    """The device registry in Cassandra: look-ups are asked for together, changes of one user's devices in turn."""

    def __init__(
        self,
        settings: CassandraSettings,
        *,
        migrates: bool = False,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._link = CassandraLink(settings, migrates=migrates)
        self._telemetry = telemetry or Silent()
        self._clock = clock or SystemClock()
        self.nodes = NodeWatch(self._link, self._telemetry)
        self._is_away = False
        self._asking = asyncio.Semaphore(LOOK_UPS_AT_ONCE)
        self._users = [asyncio.Lock() for _ in range(TURNS)]
        self._tokens = [asyncio.Lock() for _ in range(TURNS)]

    async def start(self) -> None:
        """Connect, if that can be done soon; if not, whoever needs it tries again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                while not await self._is_there():  # noqa: ASYNC110 - only another attempt can tell
                    await asyncio.sleep(CONNECT_PAUSE_S)

    async def _is_there(self) -> bool:
        try:
            await self._link.made()
        except Unavailable as away:
            self._note(str(away))
            return False
        return True

    async def close(self) -> None:
        """Close the connections."""
        await self._link.close()

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """See Devices."""
        try:
            found = await self._of_many(users)
        except Unavailable as away:
            self._note(str(away))
            raise
        if self._is_away:
            self._note(None)
        return [found.get(user, []) for user in users]

    async def upsert(self, registration: Registration, now: Instant, cap: int) -> Registered:
        """See Devices."""
        said = registration
        taken_from: set[UserId] = set()
        async with self._tokens[hash((said.app, said.token)) % TURNS]:
            return await self._in_turn(said.app, said.user_id, lambda: register(self._link, said, now, cap, taken_from))

    async def keep(self, registration: Registration, now: Instant) -> Device:
        """See Devices."""
        said = registration
        async with self._tokens[hash((said.app, said.token)) % TURNS]:
            return await self._in_turn(said.app, said.user_id, lambda: keep(self._link, said, now))

    async def of_user(self, app: AppId, user_id: UserId, *, inactive: bool = False) -> list[Device]:
        """See Devices."""
        owned = [device for device in await self._look_up(app, user_id) if inactive or device.active]
        return sorted(owned, key=lambda device: (-device.registered_at, device.device_id))

    async def with_tokens(self, app: AppId, tokens: Sequence[str]) -> list[Device | None]:
        """See Devices."""
        found: list[Device | None] = []
        for some in slices(tokens, CHANGES_AT_ONCE):
            found += await asyncio.gather(*(self._with_token(app, token) for token in some))
        return found

    async def with_contact(self, app: AppId, address: str, n: int) -> None:
        """Return None: rows are found by user and by token alone."""

    async def deactivate(self, app: AppId, user_id: UserId, device_id: DeviceId) -> bool:
        """See Devices."""
        return await self._in_turn(app, user_id, lambda: self._stop(app, user_id, lambda it: it.device_id == device_id))

    async def evict(self, evictions: Sequence[Eviction]) -> list[tuple[AppId, UserId]]:
        """See Devices."""
        evicted = [await asyncio.gather(*map(self._evict, some)) for some in slices(evictions, CHANGES_AT_ONCE)]
        return [user for some in evicted for user in some if user is not None]

    async def purge(self, app: AppId, inactive_since: Instant) -> int:
        """See Devices; it walks through all users."""

        def is_over(held: StoredDevice) -> bool:
            return not held.device.active and (held.deactivated_at or 0) < inactive_since

        purged = 0
        key: tuple[AppId, UserId] | None = None
        while users := await self._users_after(key):
            for key, devices in users:
                if key[0] == app and not all(device.active for device in devices):
                    purged += await self._in_turn(*key, partial(self._delete, *key, is_over))
        return purged

    async def touch(self, uses: Sequence[Use]) -> None:
        """See Devices."""
        for some in slices(uses, CHANGES_AT_ONCE):
            await asyncio.gather(*map(self._touch, some))

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Devices."""
        await self._in_turn(app, user_id, lambda: erase(self._link, app, user_id, until))

    async def scan(self, app: AppId, after: tuple[UserId, DeviceId] | None, n: int) -> list[Device]:
        """See Devices; the order of the users is that of their keys' hashes."""
        found: list[Device] = []
        key: tuple[AppId, UserId] | None = None
        if after is not None:
            key, last = (app, after[0]), after[1]
            found += (device for device in _by_id(await self._active(*key)) if device.device_id > last)
        while len(found) < n:
            users = await self._users_after(key)
            if not users:
                break
            for key, devices in users:
                if key[0] == app:
                    found += (device for device in _by_id(devices) if device.active)
        return found[:n]

    async def _users_after(self, key: tuple[AppId, UserId] | None) -> list[tuple[tuple[AppId, UserId], list[Device]]]:
        """Read the users that come next, of all apps, each with all of their devices."""
        session, statements = await self._link.made()
        if key is None:
            rows = await session.execute(statements.walk, WALK_PAGE)
        else:
            rows = await session.execute(statements.walk_on, *key, WALK_PAGE)
        users = [((row[0], row[1]), row) for row in rows]
        found = [(each, _devices_of(row for _, row in group)) for each, group in groupby(users, key=lambda it: it[0])]
        if len(rows) < WALK_PAGE:
            return found
        last, _ = found.pop()  # some of whose rows are on the next page
        return found or [(last, await self._look_up(*last))]

    async def _of_many(self, users: Sequence[tuple[AppId, UserId]]) -> dict[tuple[AppId, UserId], list[Device]]:
        session, statements = await self._link.made()
        by_app: dict[AppId, list[UserId]] = {}
        for app, user_id in dict.fromkeys(users):
            by_app.setdefault(app, []).append(user_id)
        parts = [(app, list(some)) for app, ids in by_app.items() for some in slices(ids, LOOK_UPS_TOGETHER)]

        async def ask(app: AppId, some: list[UserId]) -> list[Row]:
            async with self._asking:
                return await session.execute(statements.look_up_many, app, some)

        answers = await asyncio.gather(*(ask(*part) for part in parts))
        found: dict[tuple[AppId, UserId], list[Device]] = {}
        for device in _devices_of(row for rows in answers for row in rows):
            if device.active:
                found.setdefault((device.app, device.user_id), []).append(device)
        return found

    async def _look_up(self, app: AppId, user_id: UserId) -> list[Device]:
        session, statements = await self._link.made()
        return _devices_of(await session.execute(statements.look_up, app, user_id))

    async def _with_token(self, app: AppId, token: str) -> Device | None:
        owner = await owner_of(self._link, app, token_hash(token))
        having = [] if owner is None else [it for it in await self._active(app, owner[0]) if it.token == token]
        return having[0] if having else None

    async def _active(self, app: AppId, user_id: UserId) -> list[Device]:
        return [device for device in await self._look_up(app, user_id) if device.active]

    async def _stop(self, app: AppId, user_id: UserId, is_meant: Callable[[Device], bool]) -> bool | None:
        was = await partition.read(self._link, app, user_id)
        meant = [device for device in was.active() if is_meant(device)]
        if not meant:
            return False
        _, statements = await self._link.made()
        now = self._clock.now()
        parts = [partition.stop(statements, device, now) for device in meant]
        return True if await partition.change(self._link, was, parts) else None

    async def _delete(self, app: AppId, user_id: UserId, is_meant: Callable[[StoredDevice], bool]) -> int | None:
        """Delete rows of inactive devices; their tokens are given up first, so that an attempt's rest is found by them.

        One that registers meanwhile has its token by another claim.
        """
        was = await partition.read(self._link, app, user_id)
        meant = [held for held in was.devices if is_meant(held)]
        if not meant:
            return 0
        for held in meant:
            await forget(self._link, held)
        _, statements = await self._link.made()
        parts = [partition.remove(statements, held.device) for held in meant]
        return len(meant) if await partition.change(self._link, was, parts) else None

    async def _evict(self, one: Eviction) -> tuple[AppId, UserId] | None:
        """Evict a dead token; return the user whose device it stopped."""
        owner = await owner_of(self._link, one.app, one.token_hash)
        if owner is None:
            return None
        user_id = owner[0]

        def is_dead(device: Device) -> bool:
            return device.token_hash == one.token_hash and device.last_seen_at < one.seen_before

        def is_stopped(held: StoredDevice) -> bool:
            return not held.device.active and held.device.token_hash == one.token_hash

        stopped = await self._in_turn(one.app, user_id, lambda: self._stop(one.app, user_id, is_dead))
        if stopped and one.deletes:
            await self._in_turn(one.app, user_id, lambda: self._delete(one.app, user_id, is_stopped))
        return (one.app, user_id) if stopped else None

    async def _touch(self, use: Use) -> None:
        for device in await self._look_up(use.app, use.user_id):
            if device.device_id == use.device_id and (device.last_used_at or 0) < use.at:
                session, statements = await self._link.made()
                key = (use.app, use.user_id, device.platform, use.device_id)
                await session.execute(statements.use, use.at * _US, use.at, *key)

    def _note(self, away: str | None) -> None:
        """Report once that nothing can be looked up, and once that it can be again."""
        if away is not None and not self._is_away:
            self._telemetry.event(Event.REGISTRY_AWAY, why=away)
        if away is None:
            self._telemetry.event(Event.REGISTRY_BACK)
        self._is_away = away is not None

    async def _in_turn(self, app: AppId, user_id: UserId, attempt: Callable[[], Awaitable[T | None]]) -> T:
        """Return the result of the first *attempt* that is not None; those of one user in this process take turns."""
        away = 0
        async with self._users[hash((app, user_id)) % TURNS]:
            for n in range(1, ATTEMPTS + 1):
                try:
                    done = await attempt()
                except Unavailable:
                    away += 1
                    if away == AWAY_ATTEMPTS:
                        raise
                    continue
                if done is not None:
                    return done
                await asyncio.sleep(random.random() * PAUSE_S * n)  # noqa: S311 - who waits less is no secret
        raise Unavailable("too many calls for one user's devices, or for one token, at once")


def _devices_of(rows: Iterable[Row]) -> list[Device]:
    return [device for row in rows if (device := device_of(row)) is not None]


def _by_id(devices: Iterable[Device]) -> list[Device]:
    return sorted(devices, key=lambda device: device.device_id)

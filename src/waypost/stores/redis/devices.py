"""A cache of users' devices, in front of any registry.

    <prefix>devices:<app>:<user>    hash, gone after the TTL
        d           the user's active devices, none included: msgpack
        n           stamp of the last change of this user's devices
        u<device>   a use of the device that is later than what ``d`` says

A change of a user's devices removes all of it and leaves a new stamp. A fill is refused when the stamp is not the one
that its reader saw before it read the registry: so a late reader never brings back a previous owner. What a change
could not remove while Redis was away it removes before this process reads from the cache again; at the latest the TTL
ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from waypost.domain.device import Device, Platform, Registration, SubscriptionKeys, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.devices import Devices, Eviction, Registered, Use
from waypost.stores.redis.commands import Command, Redis, RedisAway, Reply, Script
from waypost.stores.redis.settings import RedisSettings
from waypost.telemetry import Metric, Telemetry

User = tuple[AppId, UserId]

OWED_LIMIT: Final = 10_000
"""The most changes remembered that could not be told to Redis; the TTL ends any beyond."""

_FORGET = Script("""
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'n', ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")
_FILL = Script("""
local stamp = redis.call('HGET', KEYS[1], 'n') or ''
if stamp ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'd', ARGV[2])
if stamp ~= '' then redis.call('HSET', KEYS[1], 'n', stamp) end
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
""")
_TOUCH = Script("""
if redis.call('HEXISTS', KEYS[1], 'd') == 0 then return 0 end
if tonumber(ARGV[2]) <= tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0) then return 0 end
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
""")

_rows = msgspec.msgpack.Decoder(
    list[
        tuple[
            DeviceId,
            Platform,
            str,
            Instant,
            Instant,
            Instant,
            Instant | None,
            SubscriptionKeys | None,
            str | None,
            str | None,
            str | None,
            bool,
            TokenUse,
        ]
    ]
)
"""The fields of Device behind app and user; what an other version has written is read anew from the registry."""


class CachedDevices:
    """The registry behind a cache: ``for_users`` reads through it, everything else goes to the registry itself."""

    def __init__(self, devices: Devices, redis: Redis, settings: RedisSettings, telemetry: Telemetry) -> None:
        self._devices = devices
        self._redis = redis
        self._prefix = f"{settings.prefix}devices:"
        self._ttl_ms = settings.devices_ttl_s * SECOND_MS
        self._telemetry = telemetry
        self._owed: dict[User, object] = {}

    async def for_users(self, users: Sequence[User]) -> list[list[Device]]:
        """See Devices: one round trip for all of them, two where some are not cached."""
        asked = list(dict.fromkeys(users))
        try:
            await self._pay()
            replies = await self._send([("HGETALL", self._key(user)) for user in asked])
        except RedisAway:
            self._count("bypassed", len(asked))
            return await self._devices.for_users(users)
        known: dict[User, list[Device]] = {}
        missing: dict[User, bytes] = {}
        for user, reply in zip(asked, replies, strict=True):
            fields = dict(zip(reply[::2], reply[1::2], strict=True))
            devices = _read(user, fields)
            if devices is None:
                missing[user] = fields.get(b"n", b"")
            else:
                known[user] = devices
        self._count("hit", len(known))
        self._count("miss", len(missing))
        if missing:
            known |= await self._fill(missing)
        return [known[user] for user in users]

    async def warm(self, users: Sequence[User]) -> int:
        """Read *users* from the registry and keep them for the whole TTL from now on; how many devices they have.

        RedisAway where there is nowhere to keep them.
        """
        asked = list(dict.fromkeys(users))
        await self._pay()
        stamps = await self._send([("HGET", self._key(user), "n") for user in asked])
        found = await self._fill({user: stamp or b"" for user, stamp in zip(asked, stamps, strict=True)})
        return sum(map(len, found.values()))

    async def upsert(self, registration: Registration, now: Instant, cap: int) -> Registered:
        """See Devices."""
        return await asyncio.shield(self._upsert(registration, now, cap))

    async def keep(self, registration: Registration, now: Instant) -> Device:
        """See Devices."""
        return await asyncio.shield(self._keep(registration, now))

    async def of_user(self, app: AppId, user_id: UserId, *, inactive: bool = False) -> list[Device]:
        """See Devices."""
        return await self._devices.of_user(app, user_id, inactive=inactive)

    async def with_tokens(self, app: AppId, tokens: Sequence[str]) -> list[Device | None]:
        """See Devices."""
        return await self._devices.with_tokens(app, tokens)

    async def with_contact(self, app: AppId, address: str, n: int) -> list[Device] | None:
        """See Devices."""
        return await self._devices.with_contact(app, address, n)

    async def deactivate(self, app: AppId, user_id: UserId, device_id: DeviceId) -> bool:
        """See Devices."""
        return await asyncio.shield(self._deactivate(app, user_id, device_id))

    async def evict(self, evictions: Sequence[Eviction]) -> list[User]:
        """See Devices."""
        return await asyncio.shield(self._evict(evictions))

    async def purge(self, app: AppId, inactive_since: Instant) -> int:
        """See Devices: what is inactive is not cached."""
        return await self._devices.purge(app, inactive_since)

    async def touch(self, uses: Sequence[Use]) -> None:
        """See Devices: a cached use is brought up to date, since routing would else note it once more each time."""
        await self._devices.touch(uses)
        said = [_TOUCH([self._key((use.app, use.user_id))], f"u{use.device_id}", use.at) for use in uses]
        with contextlib.suppress(RedisAway):  # a use that is noted twice does no harm
            await self._send(said)

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Devices."""
        await asyncio.shield(self._erase(app, user_id, until))

    async def scan(self, app: AppId, after: tuple[UserId, DeviceId] | None, n: int) -> list[Device]:
        """See Devices."""
        return await self._devices.scan(app, after, n)

    async def _upsert(self, registration: Registration, now: Instant, cap: int) -> Registered:
        changed = {(registration.app, registration.user_id)}
        try:
            registered = await self._devices.upsert(registration, now, cap)
            changed.update((registration.app, user_id) for user_id in registered.taken_from)
            return registered
        finally:  # of a failure nobody knows whether it was written
            await self._forget(changed)

    async def _keep(self, registration: Registration, now: Instant) -> Device:
        try:
            return await self._devices.keep(registration, now)
        finally:
            await self._forget([(registration.app, registration.user_id)])

    async def _deactivate(self, app: AppId, user_id: UserId, device_id: DeviceId) -> bool:
        try:
            return await self._devices.deactivate(app, user_id, device_id)
        finally:
            await self._forget([(app, user_id)])

    async def _erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        try:
            await self._devices.erase(app, user_id, until)
        finally:
            await self._forget([(app, user_id)])

    async def _evict(self, evictions: Sequence[Eviction]) -> list[User]:
        owners = await self._devices.evict(evictions)
        await self._forget(owners)
        return owners

    async def _forget(self, users: Iterable[User]) -> None:
        """Remove what is cached of *users*; while Redis is away it is owed."""
        self._owed |= {user: object() for user in users}
        while len(self._owed) > OWED_LIMIT:
            self._owed.pop(next(iter(self._owed)))
        with contextlib.suppress(RedisAway):
            await self._pay()

    async def _pay(self) -> None:
        """Tell Redis of every change that it does not know yet."""
        told = dict(self._owed)
        await self._send([_FORGET([self._key(user)], os.urandom(8), self._ttl_ms) for user in told])
        for user, change in told.items():
            if self._owed.get(user) is change:  # else it changed again meanwhile
                del self._owed[user]

    async def _fill(self, missing: dict[User, bytes]) -> dict[User, list[Device]]:
        """Read users from the registry and cache them, unless they changed since their stamp was seen."""
        found = dict(zip(missing, await self._devices.for_users(list(missing)), strict=True))
        said = [_FILL([self._key(user)], stamp, _written(found[user]), self._ttl_ms) for user, stamp in missing.items()]
        with contextlib.suppress(RedisAway):  # then it is a miss again the next time
            await self._send(said)
        return found

    async def _send(self, commands: Sequence[Command]) -> list[Reply]:
        return await self._redis.execute(commands) if commands else []

    def _count(self, result: str, n: int) -> None:
        if n:
            self._telemetry.count(Metric.CACHE_LOOKUPS, n, cache="devices", result=result)

    def _key(self, user: User) -> str:
        return f"{self._prefix}{user[0]}:{user[1]}"  # an app's id has no colon


def _written(devices: Sequence[Device]) -> bytes:
    return msgspec.msgpack.encode([msgspec.structs.astuple(device)[2:] for device in devices])


def _read(user: User, fields: dict[bytes, bytes]) -> list[Device] | None:
    """Read the cached devices; None where none are, or nothing that this version understands."""
    written = fields.get(b"d")
    if written is None:
        return None
    try:
        devices = [Device(user[0], user[1], *row) for row in _rows.decode(written)]
    except msgspec.DecodeError:
        return None
    if len(fields) > 2 or (len(fields) == 2 and b"n" not in fields):
        return [_used(device, fields.get(b"u" + device.device_id.encode())) for device in devices]
    return devices


def _used(device: Device, at: bytes | None) -> Device:
    if at is None or int(at) <= (device.last_used_at or 0):
        return device
    return msgspec.structs.replace(device, last_used_at=Instant(int(at)))

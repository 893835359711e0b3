"""The registry of devices on SQL.

One row a device, deactivated rows included; key (app, user, device id). The unique index over the active rows' token
hashes is what makes a token belong to one device at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from waypost.domain.device import CONTACTS, Device, Registration, SubscriptionKeys, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.devices import Eviction, Registered, Use
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

DEVICE = (
    "device.app, device.user_id, device.device_id, platform, token, registered_at, last_seen_at, token_updated_at,"
    " last_used_at, p256dh, auth, app_version, os_version, locale, active, token_use"
)
"""The columns that ``device_of`` reads."""
_FOR_USERS = f"SELECT asked.place, {DEVICE} FROM {{devices_of_users}} WHERE active = 1"  # noqa: S608 - columns
_OF_USER = f"""\
SELECT {DEVICE} FROM device WHERE app = ? AND user_id = ? AND active >= ?
ORDER BY registered_at DESC, device_id
"""  # noqa: S608 - a list of columns
_WITH_TOKEN = f"SELECT {DEVICE} FROM device WHERE app = ? AND token_hash = ? AND active = 1"  # noqa: S608 - columns
_WITH_CONTACT = f"""\
SELECT {DEVICE} FROM device INDEXED BY device_contact
WHERE app = ? AND token = ? AND active = 1 AND platform IN ('email', 'phone')
ORDER BY user_id, device_id LIMIT ?
"""  # noqa: S608 - a list of columns
_SCAN = f"""\
SELECT {DEVICE} FROM device WHERE app = ? AND (user_id, device_id) > (?, ?) AND active = 1
ORDER BY user_id, device_id LIMIT ?
"""  # noqa: S608 - a list of columns

_KNOWN = "SELECT 1 FROM device WHERE app = ? AND user_id = ? AND device_id = ?"
_TAKE_OVER = """\
UPDATE device SET active = 0, deactivated_at = ?5
WHERE app = ?1 AND token_hash = ?2 AND active = 1 AND (user_id, device_id) != (?3, ?4)
RETURNING user_id
"""
_UPSERT = f"""\
INSERT INTO device (
    app, user_id, device_id, platform, token, token_hash, p256dh, auth, app_version, os_version, locale,
    token_use, registered_at, last_seen_at, token_updated_at, last_used_at, active
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?13, ?13, 1)
ON CONFLICT (app, user_id, device_id) DO UPDATE SET
    token_updated_at = CASE WHEN device.token = excluded.token THEN device.token_updated_at
        ELSE excluded.token_updated_at END,
    platform = excluded.platform, token = excluded.token, token_hash = excluded.token_hash,
    p256dh = excluded.p256dh, auth = excluded.auth,
    app_version = excluded.app_version, os_version = excluded.os_version, locale = excluded.locale,
    token_use = excluded.token_use,
    last_seen_at = excluded.last_seen_at, last_used_at = excluded.last_used_at, active = 1, deactivated_at = NULL
RETURNING {DEVICE.replace("device.", "")}
"""  # noqa: S608 - a list of columns
_PUSH_OUT = f"""\
UPDATE device SET active = 0, deactivated_at = ?5 WHERE app = ?1 AND user_id = ?2 AND active = 1 AND device_id IN (
    SELECT device_id FROM device WHERE app = ?1 AND user_id = ?2 AND active = 1 AND device_id != ?3
        AND platform NOT IN ({", ".join(f"'{each}'" for each in sorted(CONTACTS))})
    ORDER BY last_seen_at DESC, device_id DESC LIMIT 1000000 OFFSET ?4 - 1
)
RETURNING last_seen_at, device_id
"""  # noqa: S608 - names of ours
_DEACTIVATE = """\
UPDATE device SET active = 0, deactivated_at = ?4 WHERE app = ?1 AND user_id = ?2 AND device_id = ?3 AND active = 1
"""
_EVICT = """\
UPDATE device SET active = 0, deactivated_at = ?4
WHERE app = ?1 AND token_hash = ?2 AND active = 1 AND last_seen_at < ?3
RETURNING app, user_id
"""
_DELETE_DEAD = """\
DELETE FROM device WHERE app = ? AND token_hash = ? AND active = 1 AND last_seen_at < ? RETURNING app, user_id
"""
_PURGE = """\
DELETE FROM device WHERE (app, user_id, device_id) IN (
    SELECT app, user_id, device_id FROM device WHERE app = ? AND active = 0 AND deactivated_at < ? LIMIT ?
)
"""
_PURGED_AT_ONCE = 500
_TOUCHED_AT_ONCE = 50
"""The most devices in one operation: whoever is hurried waits for two of them at most."""
_PARTS_TOGETHER = 4
"""The most operations that wait for a commit: a page of the journal has thousands of uses, and outcomes come behind."""
_ERASE = "DELETE FROM device WHERE app = ? AND user_id = ? AND registered_at <= ?"
_TOUCH = """\
UPDATE device SET last_used_at = ?4
WHERE app = ?1 AND user_id = ?2 AND device_id = ?3 AND coalesce(last_used_at, 0) < ?4
"""


class SqlDevices:
    """The device registry of the store: it looks up for deliveries, reads in a thread, writes by the group commit."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """See Devices."""
        asked = json.dumps(users)
        rows = await self._database.look_up(lambda connection: _for_users(connection, asked))
        found: list[list[Device]] = [[] for _ in users]
        for position, *row in rows:
            found[position].append(device_of(row))
        for devices in found:
            if len(devices) > 1:
                devices.sort(key=lambda device: (device.platform, device.device_id))
        return found

    async def upsert(self, registration: Registration, now: Instant, cap: int) -> Registered:
        """See Devices."""
        return await self._database.commits.submit(_REGISTERING, _Call(registration, now, cap))

    async def keep(self, registration: Registration, now: Instant) -> Device:
        """See Devices."""
        return await self._database.commits.submit(_KEEPING, _Call(registration, now, 0))

    async def of_user(self, app: AppId, user_id: UserId, *, inactive: bool = False) -> list[Device]:
        """See Devices."""
        return await self._read(_OF_USER, (app, user_id, int(not inactive)))

    async def with_tokens(self, app: AppId, tokens: Sequence[str]) -> list[Device | None]:
        """See Devices."""
        digests = [token_hash(token) for token in tokens]
        rows = await self._database.read(
            lambda connection: [connection.execute(_WITH_TOKEN, (app, digest)).fetchone() for digest in digests]
        )
        return [None if row is None else device_of(row) for row in rows]

    async def with_contact(self, app: AppId, address: str, n: int) -> list[Device]:
        """See Devices."""
        rows = await self._database.read(
            lambda connection: connection.execute(_WITH_CONTACT, (app, address, n)).fetchall()
        )
        return [device_of(row) for row in rows]

    async def deactivate(self, app: AppId, user_id: UserId, device_id: DeviceId) -> bool:
        """See Devices."""
        return await self._database.commits.submit(_DEACTIVATING, (app, user_id, device_id, self._clock.now()))

    async def evict(self, evictions: Sequence[Eviction]) -> list[tuple[AppId, UserId]]:
        """See Devices."""
        if not evictions:
            return []
        order = _Evictions(evictions, self._clock.now())
        return await self._database.commits.submit(_EVICTING, order, rows=len(evictions))

    async def purge(self, app: AppId, inactive_since: Instant) -> int:
        """See Devices."""
        purged = 0
        while page := await self._database.commits.submit(_PURGING, (app, inactive_since), _PURGED_AT_ONCE):
            purged += page
        return purged

    async def touch(self, uses: Sequence[Use]) -> None:
        """See Devices."""
        parts = [uses[first : first + _TOUCHED_AT_ONCE] for first in range(0, len(uses), _TOUCHED_AT_ONCE)]
        submit = partial(self._database.commits.submit, _TOUCHING)
        for first in range(0, len(parts), _PARTS_TOGETHER):
            together = parts[first : first + _PARTS_TOGETHER]
            await asyncio.gather(*(submit(part, rows=len(part)) for part in together))

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Devices."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))

    async def scan(self, app: AppId, after: tuple[UserId, DeviceId] | None, n: int) -> list[Device]:
        """See Devices."""
        return await self._read(_SCAN, (app, *(after or ("", "")), n))

    async def _read(self, query: str, arguments: tuple[Any, ...]) -> list[Device]:
        rows = await self._database.read(lambda connection: connection.execute(query, arguments).fetchall())
        return [device_of(row) for row in rows]


def _for_users(connection: Connection, asked: str) -> list[Any]:
    return connection.execute(
        _FOR_USERS.format(devices_of_users=connection.dialect.devices_of_users), (asked,)
    ).fetchall()


class _Call(Struct, frozen=True):
    """A registration call."""

    registration: Registration
    now: Instant
    cap: int


def _register(transaction: Transaction, calls: Sequence[_Call]) -> list[Registered]:
    """Register in the order the calls came: each sees what the one before it took."""
    return [_register_one(transaction.connection, call) for call in calls]


def _keep(transaction: Transaction, calls: Sequence[_Call]) -> list[Device]:
    """Register what nobody has, and take nothing from anybody.

    Where another process registers it between look-up and write, the unique index refuses ours, and we begin again.
    """
    return [_keep_one(transaction.connection, call) for call in calls]


def _keep_one(connection: Connection, call: _Call) -> Device:
    said = call.registration
    row = connection.execute(_WITH_TOKEN, (said.app, said.token_hash)).fetchone()
    return _written(connection, call) if row is None else device_of(row)


def _register_one(connection: Connection, call: _Call) -> Registered:
    said = call.registration
    key = (said.app, said.user_id, said.device_id)
    digest = said.token_hash
    known = connection.execute(_KNOWN, key).fetchone()
    taken = connection.execute(_TAKE_OVER, (said.app, digest, said.user_id, said.device_id, call.now)).fetchall()
    device = _written(connection, call)
    is_capped = call.cap and said.platform not in CONTACTS
    pushed_out = connection.execute(_PUSH_OUT, (*key, call.cap, call.now)).fetchall() if is_capped else []
    longest_ago_first = tuple(DeviceId(device_id) for _, device_id in sorted(pushed_out))
    taken_from = tuple(UserId(user_id) for (user_id,) in taken if user_id != said.user_id)
    return Registered(device, known is None, longest_ago_first, taken_from)


def _written(connection: Connection, call: _Call) -> Device:
    """Write the device as it is now, whatever it was."""
    said = call.registration
    key = (said.app, said.user_id, said.device_id)
    keys = (None, None) if said.keys is None else (said.keys.p256dh, said.keys.auth)
    rest = (said.app_version, said.os_version, said.locale, said.token_use, call.now)
    row = connection.execute(_UPSERT, (*key, said.platform, said.token, said.token_hash, *keys, *rest)).fetchone()
    return device_of(row)


def _deactivate(transaction: Transaction, keys: Sequence[tuple[AppId, UserId, DeviceId, Instant]]) -> list[bool]:
    return [transaction.connection.execute(_DEACTIVATE, key).rowcount > 0 for key in keys]


class _Evictions(Struct, frozen=True):
    """Dead tokens, and when they are deactivated."""

    tokens: Sequence[Eviction]
    at: Instant


def _evict(transaction: Transaction, batches: Sequence[_Evictions]) -> list[list[tuple[AppId, UserId]]]:
    return [
        [owner for one in batch.tokens for owner in _evict_one(transaction.connection, one, batch.at)]
        for batch in batches
    ]


def _evict_one(connection: Connection, one: Eviction, at: Instant) -> list[Any]:
    named = (one.app, one.token_hash, one.seen_before)
    if one.deletes:
        return connection.execute(_DELETE_DEAD, named).fetchall()
    return connection.execute(_EVICT, (*named, at)).fetchall()


def _purge(transaction: Transaction, orders: Sequence[tuple[AppId, Instant]]) -> list[int]:
    return [transaction.connection.execute(_PURGE, (*order, _PURGED_AT_ONCE)).rowcount for order in orders]


def _touch(transaction: Transaction, batches: Sequence[Sequence[Use]]) -> list[None]:
    uses = [(use.app, use.user_id, use.device_id, use.at) for batch in batches for use in batch]
    transaction.connection.executemany(_TOUCH, uses)
    return [None] * len(batches)


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    transaction.connection.executemany(_ERASE, orders)
    return [None] * len(orders)


_TOKEN_USES = {word.value: word for word in TokenUse}

_REGISTERING = OperationKind("register_device", _register, durable=True)
_KEEPING = OperationKind("keep_device", _keep, durable=True)
_DEACTIVATING = OperationKind("deactivate_device", _deactivate, durable=True)
_EVICTING = OperationKind("evict_tokens", _evict, durable=False, patient=True)
_PURGING = OperationKind("purge_devices", _purge, durable=False, patient=True)
_ERASING = OperationKind("erase_devices", _erase, durable=True)
_TOUCHING = OperationKind("touch_devices", _touch, durable=False, patient=True)


def device_of(row: Sequence[Any]) -> Device:
    """Read the device of a row of DEVICE."""
    (
        app, user_id, device_id, platform, token, registered, seen, updated, used,
        p256dh, auth, app_version, os_version, locale, active, token_use,
    ) = row  # fmt: skip
    return Device(
        app,
        user_id,
        device_id,
        platform,
        token,
        registered,
        seen,
        updated,
        used,
        None if p256dh is None else SubscriptionKeys(p256dh, auth),
        app_version,
        os_version,
        locale,
        bool(active),
        _TOKEN_USES.get(token_use, token_use),
    )

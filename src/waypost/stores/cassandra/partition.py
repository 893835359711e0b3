"""A user's partition as it was read, and its change by compare-and-set of its version: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from waypost.domain.device import Device
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import Instant
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.cassandra.session import Statement
from waypost.stores.cassandra.statements import Statements, device_of

Part = tuple[Statement, Sequence[Any]]
"""A statement of a change, and what it binds."""


class StoredDevice(Struct, frozen=True):
    """A stored device, and the claim by which its token came to it."""

    device: Device
    claim: bytes
    deactivated_at: Instant | None = None
    """When it was deactivated last; it counts while it is not active."""


class Partition(Struct, frozen=True):
    """The devices of one user, deactivated ones too; *version* is None where nothing was ever written."""

    app: AppId
    user_id: UserId
    version: int | None
    devices: tuple[StoredDevice, ...]

    def find(self, device_id: DeviceId) -> StoredDevice | None:
        """Find the device of that id; it has one platform at a time."""
        return next((each for each in self.devices if each.device.device_id == device_id), None)

    def active(self) -> Iterator[Device]:
        """Yield the devices that are sent to."""
        return (each.device for each in self.devices if each.device.active)


async def read(link: CassandraLink, app: AppId, user_id: UserId) -> Partition:
    """Read the partition as a quorum knows it. It may be an older one: then a change of it does not apply."""
    session, statements = await link.made()
    rows = await session.execute(statements.partition, app, user_id)
    found = ((device_of(row), row[-3], row[-2]) for row in rows)
    devices = tuple(StoredDevice(device, claim, at) for device, claim, at in found if device is not None)
    return Partition(app, user_id, rows[0][-1] if rows else None, devices)


async def change(link: CassandraLink, was: Partition, parts: Sequence[Part]) -> bool:
    """Carry *parts* out; False (and nothing) where the partition is not any more what it *was*."""
    session, statements = await link.made()
    moved = (statements.move, ((was.version or 0) + 1, was.app, was.user_id, was.version))
    return await session.batch(moved, *parts)


async def drop(link: CassandraLink, was: Partition) -> bool:
    """Delete all of it, its version too; False where it is not any more what it *was*."""
    session, statements = await link.made()
    parts = [remove(statements, held.device) for held in was.devices]
    return await session.batch((statements.drop, (was.app, was.user_id, was.version)), *parts)


def put(statements: Statements, device: Device, claim: bytes) -> Part:
    """Write the whole device."""
    keys = (None, None) if device.keys is None else (device.keys.p256dh, device.keys.auth)
    names = (device.app, device.user_id, device.device_id, device.platform, device.token)
    times = (device.registered_at, device.last_seen_at, device.token_updated_at)
    said = (device.app_version, device.os_version, device.locale, device.active, str(device.token_use), claim)
    return statements.put, (*names, *times, *keys, *said)


def stop(statements: Statements, device: Device, now: Instant) -> Part:
    """Deactivate it, and keep the row."""
    return statements.stop, (now, *_key(device))


def remove(statements: Statements, device: Device) -> Part:
    """Delete its row."""
    return statements.remove, _key(device)


def _key(device: Device) -> tuple[str, ...]:
    return device.app, device.user_id, device.platform, device.device_id

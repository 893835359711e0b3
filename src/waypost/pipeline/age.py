"""Age: devices that nobody used for long are deactivated, and those that were inactive for long are deleted."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.domain.device import CONTACTS, Device
from waypost.domain.ids import AppId
from waypost.domain.time import DAY_MS, Instant, later
from waypost.ports.devices import Devices, Eviction

PAGE = 1_000


class DeviceAges(Struct, frozen=True, kw_only=True):
    """The ages at which devices end; unset, they are kept for ever."""

    unused_days: Annotated[int, Meta(ge=1)] | None = None
    """Days without a registration or successful send after which a device is deactivated. Unset: never."""
    inactive_days: Annotated[int, Meta(ge=1)] | None = None
    """Days after which a deactivated device is deleted. Unset: never."""


class Aged(Struct, frozen=True):
    """The numbers of devices that went."""

    deactivated: int
    deleted: int


NOTHING = Aged(0, 0)


async def age(devices: Devices, app: AppId, ages: DeviceAges, now: Instant) -> Aged:
    """Deactivate what is unused, then delete what is inactive, each for as many days as *ages* says."""
    deactivated = deleted = 0
    if ages.unused_days is not None:
        deactivated = await _deactivate_unused(devices, app, later(now, -ages.unused_days * DAY_MS))
    if ages.inactive_days is not None:
        deleted = await devices.purge(app, later(now, -ages.inactive_days * DAY_MS))
    return Aged(deactivated, deleted)


def is_unused(device: Device, since: Instant) -> bool:
    """Tell whether *device* was neither registered nor reached since; a person's address does not age."""
    return device.platform not in CONTACTS and max(device.last_seen_at, device.last_used_at or 0) < since


async def _deactivate_unused(devices: Devices, app: AppId, since: Instant) -> int:
    """Walk through the app's devices; one that registers meanwhile stays."""
    deactivated = 0
    after = None
    while page := await devices.scan(app, after, PAGE):
        unused = [Eviction(app, device.token_hash, since) for device in page if is_unused(device, since)]
        deactivated += len(await devices.evict(unused))
        after = (page[-1].user_id, page[-1].device_id)
    return deactivated

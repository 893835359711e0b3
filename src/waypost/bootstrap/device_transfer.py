"""Devices taken out of the registry, and those of another one brought in."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import islice

import msgspec
from msgspec import Struct

from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.device_rows import DeadRow, Read, RefusedRow, Row
from waypost.bootstrap.devices import opened_devices
from waypost.bootstrap.paths import log_of
from waypost.bootstrap.registry import installed
from waypost.bootstrap.senders import registration_checks
from waypost.bootstrap.shared import cached, opened_redis
from waypost.config import Config
from waypost.domain.device import Device, Platform, Registration, RegistrationCheck
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.submission import Identity
from waypost.entrypoints.rest.bodies import SubmittedDevice
from waypost.entrypoints.wording import fault_of
from waypost.ports.devices import Devices
from waypost.runtime.clock import SystemClock

PAGE = 256
_BESIDE = 1
"""The number of a process that makes no tables in a registry of its own."""


class Imported(Struct):
    """The count of what became of the rows."""

    read: int = 0
    created: int = 0
    known: int = 0
    """Devices that the registry has, active or not, under the same id or with the same token: they stay as they are."""
    dead: int = 0
    """Rows whose token is dead where it comes from."""
    pushed_out: int = 0
    """Devices that the cap of the app deactivated."""
    refused: int = 0


async def export_devices(config: Config, app: str) -> AsyncIterator[list[Device]]:
    """Yield the active devices of *app* by pages."""
    async with _registry(config) as devices:
        after: tuple[UserId, DeviceId] | None = None
        while page := await devices.scan(AppId(app), after, PAGE):
            yield page
            after = (page[-1].user_id, page[-1].device_id)


async def import_devices(
    config: Config,
    app: str,
    rows: Iterable[Read],
    refuse: Callable[[RefusedRow], None],
    on_progress: Callable[[int], None],
    *,
    is_trial: bool,
) -> Imported:
    """Register the devices that the registry does not know, each checked as by the API; a trial writes nothing."""
    remaining, total = iter(rows), Imported()
    checks = registration_checks(AppId(app), config.apps[AppId(app)], installed())
    async with _registry(config) as devices:
        importing = _Importing(devices, config.apps[AppId(app)].device_cap, total, is_trial)
        while page := list(islice(remaining, PAGE)):
            total.read += len(page)
            by_user: dict[str, list[Registration]] = defaultdict(list)
            for row in page:
                found = _registration(AppId(app), row, checks)
                if isinstance(found, Registration):
                    by_user[found.user_id].append(found)
                elif isinstance(found, RefusedRow):
                    total.refused += 1
                    refuse(found)
                else:
                    total.dead += 1
            await asyncio.gather(*(importing.register(each) for each in by_user.values()))
            on_progress(total.read)
    return total


class _Importing(Struct, frozen=True):
    """The registration of one user's rows after each other, so that a repeated one is known."""

    devices: Devices
    cap: int
    total: Imported
    is_trial: bool

    async def register(self, registrations: list[Registration]) -> None:
        """Register those that are not known."""
        first = registrations[0]
        there = await self.devices.of_user(first.app, first.user_id, inactive=True)
        ids, tokens = {each.device_id for each in there}, {each.token for each in there}
        for each in registrations:
            if each.device_id in ids or each.token in tokens:
                self.total.known += 1
                continue
            ids.add(each.device_id)
            tokens.add(each.token)
            if not self.is_trial:
                stored = await self.devices.upsert(each, SystemClock().now(), self.cap)
                self.total.pushed_out += len(stored.pushed_out)
            self.total.created += 1


def _registration(
    app: AppId, row: Read, checks: Mapping[Platform, RegistrationCheck]
) -> Registration | RefusedRow | DeadRow:
    """Check a row as the API checks a registration; the reason holds no token."""
    if not isinstance(row, Row):
        return row
    check = checks.get(Platform(str(row.fields["platform"])))
    if check is None:
        return RefusedRow(row.line, "unknown_platform", f"platform: must be one of {', '.join(sorted(checks))}")
    try:
        at = "user_id"
        user_id = msgspec.convert(row.user_id, Identity)
        at = "device_id"
        device_id = msgspec.convert(row.device_id, Identity)
        at = ""
        said = msgspec.convert(row.fields, SubmittedDevice)
        registration = said.registration(app, UserId(user_id), DeviceId(device_id), SystemClock().now())
    except msgspec.ValidationError as error:
        return RefusedRow(row.line, "invalid_device", str(InvalidRequest((fault_of(error, SubmittedDevice, at),))))
    except InvalidRequest as wrong:
        return RefusedRow(row.line, "invalid_device", str(wrong))
    if faults := check(registration):
        return RefusedRow(row.line, "invalid_device", "; ".join(f"{fault.path}: {fault.why}" for fault in faults))
    return registration


@asynccontextmanager
async def _registry(config: Config) -> AsyncIterator[Devices]:
    """Open the registry as a worker does, behind its cache, which hears of what is written."""
    telemetry = log_of(config)
    async with (
        open_admin_store(config) as store,
        opened_devices(config, store, _BESIDE, telemetry) as devices,
        opened_redis(config, telemetry) as redis,
    ):
        yield cached(devices, config, redis, telemetry)

"""The registry of devices in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tests.memory.store import MemoryStore
from waypost.domain.device import CONTACTS, EMAIL, PHONE, Device, Registration, registered
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.devices import Eviction, Registered, Use
from waypost.runtime.clock import SystemClock


class MemoryDevices:
    """Devices by (app, user, device id)."""

    def __init__(self, store: MemoryStore, clock: Clock | None = None) -> None:
        self._devices = store.devices
        self._clock = clock or SystemClock()
        self._stopped_at = store.devices_stopped_at

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """See Devices."""
        return [sorted(self._active(*user), key=lambda device: (device.platform, device.device_id)) for user in users]

    async def upsert(self, registration: Registration, now: Instant, cap: int) -> Registered:
        """See Devices."""
        key = (registration.app, registration.user_id, registration.device_id)
        before = self._devices.get(key)
        device = registered(registration, before, now)
        others = [
            other
            for other in self._devices.values()
            if other.active and (other.app, other.token_hash) == (device.app, device.token_hash)
        ]
        self._stop(others)
        taken_from = tuple({other.user_id for other in others} - {device.user_id})
        self._devices[key] = device
        pushed_out: list[Device] = []
        if cap and device.platform not in CONTACTS:
            siblings = (
                other
                for other in self._active(device.app, device.user_id)
                if other is not device and other.platform not in CONTACTS
            )
            longest_ago = sorted(siblings, key=lambda other: (other.last_seen_at, other.device_id))
            pushed_out = longest_ago[: max(0, len(longest_ago) + 1 - cap)]
            self._stop(pushed_out)
        return Registered(device, before is None, tuple(other.device_id for other in pushed_out), taken_from)

    async def keep(self, registration: Registration, now: Instant) -> Device:
        """See Devices."""
        for device in self._devices.values():
            if device.active and (device.app, device.token_hash) == (registration.app, registration.token_hash):
                return device
        return (await self.upsert(registration, now, 0)).device

    async def of_user(self, app: AppId, user_id: UserId, *, inactive: bool = False) -> list[Device]:
        """See Devices."""
        owned = (device for device in self._devices.values() if (device.app, device.user_id) == (app, user_id))
        chosen = [device for device in owned if inactive or device.active]
        return sorted(chosen, key=lambda device: (-device.registered_at, device.device_id))

    async def with_tokens(self, app: AppId, tokens: Sequence[str]) -> list[Device | None]:
        """See Devices."""
        active = {each.token_hash: each for each in self._devices.values() if each.active and each.app == app}
        return [active.get(token_hash(token)) for token in tokens]

    async def with_contact(self, app: AppId, address: str, n: int) -> list[Device]:
        """See Devices."""
        contacts = [each for each in self._devices.values() if each.platform in {EMAIL, PHONE}]
        found = [each for each in contacts if each.active and (each.app, each.token) == (app, address)]
        return sorted(found, key=lambda device: (device.user_id, device.device_id))[:n]

    async def deactivate(self, app: AppId, user_id: UserId, device_id: DeviceId) -> bool:
        """See Devices."""
        device = self._devices.get((app, user_id, device_id))
        if device is None or not device.active:
            return False
        self._stop([device])
        return True

    async def evict(self, evictions: Sequence[Eviction]) -> list[tuple[AppId, UserId]]:
        """See Devices."""
        doomed = {
            device
            for eviction in evictions
            for device in self._devices.values()
            if device.active
            and (device.app, device.token_hash) == (eviction.app, eviction.token_hash)
            and device.last_seen_at < eviction.seen_before
        }
        self._stop(doomed)
        for device in doomed:
            if (device.app, device.token_hash) in {(each.app, each.token_hash) for each in evictions if each.deletes}:
                del self._devices[(device.app, device.user_id, device.device_id)]
        return [(device.app, device.user_id) for device in doomed]

    async def purge(self, app: AppId, inactive_since: Instant) -> int:
        """See Devices."""
        doomed = [
            key
            for key, device in self._devices.items()
            if device.app == app and not device.active and self._stopped_at[key] < inactive_since
        ]
        for key in doomed:
            del self._devices[key]
        return len(doomed)

    async def touch(self, uses: Sequence[Use]) -> None:
        """See Devices."""
        for use in uses:
            key = (use.app, use.user_id, use.device_id)
            device = self._devices.get(key)
            if device is not None and (device.last_used_at or 0) < use.at:
                self._devices[key] = msgspec.structs.replace(device, last_used_at=use.at)

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Devices."""
        for key, device in list(self._devices.items()):
            if key[:2] == (app, user_id) and device.registered_at <= until:
                del self._devices[key]

    async def scan(self, app: AppId, after: tuple[UserId, DeviceId] | None, n: int) -> list[Device]:
        """See Devices."""
        active = (device for device in self._devices.values() if device.app == app and device.active)
        ordered = sorted(active, key=lambda device: (device.user_id, device.device_id))
        return [device for device in ordered if after is None or (device.user_id, device.device_id) > after][:n]

    def _active(self, app: AppId, user_id: UserId) -> list[Device]:
        owned = (device for device in self._devices.values() if (device.app, device.user_id) == (app, user_id))
        return [device for device in owned if device.active]

    def _stop(self, doomed: Iterable[Device]) -> None:
        for device in doomed:
            key = (device.app, device.user_id, device.device_id)
            self._devices[key] = msgspec.structs.replace(device, active=False)
            self._stopped_at[key] = self._clock.now()

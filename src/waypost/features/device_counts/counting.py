"""The counting of devices by user: a walk through the registry by pages, seldom, and never in the way."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from waypost.domain.device import CONTACTS
from waypost.domain.ids import AppId, UserId
from waypost.ports.devices import Devices
from waypost.telemetry import Metric, Telemetry

LOOK_S: Final = 60.0
"""Seconds between two questions whether it is time to count."""
EVERY_S: Final = 3_600.0
"""Seconds from the end of one count to the next."""
PAGE: Final = 1_000
_SHARE: Final = 4
"""How many times as long as a page took the next one waits: a fifth of one reader, however many devices there are."""
_PAUSE: Final = 20
"""How many times as long as a count took the next one waits at least."""


class DeviceCounter:
    """The counter of one process."""

    def __init__(self, telemetry: Telemetry, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._next_s = 0.0

    async def look(self, devices: Devices, apps: Iterable[AppId]) -> None:
        """Count the devices of all users of *apps*, if it is time to, and set the metrics."""
        since_s = self._monotonic()
        if since_s < self._next_s:
            return
        for app in apps:
            for what, n in summary(await self._count(devices, app)).items():
                self._telemetry.gauge(Metric.DEVICES_PER_USER, n, app=app, of=what)
        now_s = self._monotonic()
        self._next_s = now_s + max(EVERY_S, _PAUSE * (now_s - since_s))

    async def _count(self, devices: Devices, app: AppId) -> Counter[int]:
        """Count the users by how many devices they have; mailboxes and the like are none."""
        users, of_last, last = Counter[int](), 0, UserId("")
        after = None
        began_s = self._monotonic()
        while page := await devices.scan(app, after, PAGE):
            for device in page:
                if device.user_id != last:
                    users[of_last] += 1
                    last, of_last = device.user_id, 0
                of_last += device.platform not in CONTACTS
            after = (page[-1].user_id, page[-1].device_id)
            await asyncio.sleep(_SHARE * (self._monotonic() - began_s))
            began_s = self._monotonic()
        users[of_last] += 1
        del users[0]
        return users


def summary(users: Mapping[int, int]) -> dict[str, float]:
    """Sum up how many *users* have how many devices: the average, and the number that 95 or 99 % do not exceed."""
    total = sum(users.values())
    average = sum(devices * n for devices, n in users.items()) / total if total else 0.0
    return {"average": average, "p95": _percentile(users, 95), "p99": _percentile(users, 99)}


def _percentile(users: Mapping[int, int], percent: int) -> int:
    """Find the least number of devices that *percent* of the users do not exceed; 0 where there is no user."""
    total, below = sum(users.values()), 0
    for devices, n in sorted(users.items()):
        below += n
        if below * 100 >= total * percent:
            return devices
    return 0

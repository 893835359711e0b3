"""The part of a worker that counts devices: a duty of one process of all."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from waypost.features.device_counts.counting import LOOK_S, DeviceCounter
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.runtime.roles import Role
from waypost.stores.sql.store import Store

_counters: Final[WeakKeyDictionary[Store, DeviceCounter]] = WeakKeyDictionary()
"""The counter of each store that is open in this process."""


async def count(ground: Ground) -> None:
    """Count the devices of every app, where that was long ago."""
    counter = _counters.setdefault(ground.store, DeviceCounter(ground.telemetry))
    await counter.look(ground.devices, ground.config.apps)


PARTS = Parts(duties=(FeatureDuty("device_counts", Role.SWEEP, LOOK_S, count),))

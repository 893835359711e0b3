"""The parts that the balance adds to a worker: one of all looks whether it adds up, and each shows it."""

from __future__ import annotations

import time
from typing import Final
from weakref import WeakKeyDictionary

from waypost.features.balance.routes import ROUTES
from waypost.features.balance.watch import LOOK_S, BalanceWatch
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.runtime.roles import Role
from waypost.stores.sql.store import Store

_watches: Final[WeakKeyDictionary[Store, BalanceWatch]] = WeakKeyDictionary()
"""The watch over each store that is open in this process."""


async def look(ground: Ground) -> None:
    """Look whether the balance adds up, unless the last look took long and was a moment ago."""
    watch = _watches.setdefault(ground.store, BalanceWatch(ground.telemetry))
    if watch.is_due:
        since_s = time.monotonic()
        sheet = await ground.store.balance.read()
        watch.looked(since_s)
        watch.take(sheet, ground.clock.now())


PARTS = Parts(routes=(*ROUTES,), duties=(FeatureDuty("balance", Role.SWEEP, LOOK_S, look),))

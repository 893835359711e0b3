"""The parts that the balance adds to a worker: one of all looks whether it adds up, and each shows it."""

from __future__ import annotations

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
    """Look whether the balance of the store adds up."""
    watch = _watches.setdefault(ground.store, BalanceWatch(ground.telemetry))
    await watch.look(ground.store.balance, ground.clock)


PARTS = Parts(routes=(*ROUTES,), duties=(FeatureDuty("balance", Role.SWEEP, LOOK_S, look),))

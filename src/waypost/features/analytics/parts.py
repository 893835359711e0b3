"""The parts that analytics add to a worker."""

from __future__ import annotations

from waypost.features.parts import Ground, Parts
from waypost.ports.erasure import Erasure
from waypost.stores.sql.user_events import EVENT_ID, USER_EVENT


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget what the user did."""
    await ground.store.user_events.erase(erasure.app, erasure.user_id)


PARTS = Parts(tables=(USER_EVENT, EVENT_ID), erases=erase)

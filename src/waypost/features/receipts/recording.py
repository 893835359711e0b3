"""Recording: from the reports of devices to what is known of their targets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from waypost.domain.amendment import Confirm, Confirmed, NotConfirmed
from waypost.domain.device_event import DeviceEvent
from waypost.domain.ids import AppId
from waypost.domain.status import DeliveryStatus
from waypost.features.parts import Ground

UNSETTLED: Final = (DeliveryStatus.PENDING, DeliveryStatus.UNKNOWN, None)
"""How a target stands that may still be on its way to being settled; None: on a log it is not recorded yet."""
EARLY_S: Final = (0.2, 0.5, 1.0)
"""Pauses before a report is tried again whose target is not settled yet, s: a device may be faster than we are."""


async def record(ground: Ground, app: AppId, events: Sequence[DeviceEvent]) -> list[DeliveryStatus | None]:
    """Confirm the target of each of *events*, and keep the event; return how each target stands then.

    Late and repeated reports change nothing, and are answered alike. None: no such target was sent.
    """
    standing: list[DeliveryStatus | None] = [None] * len(events)
    left = list(range(len(events)))
    for pause_s in (*EARLY_S, None):
        orders = [
            Confirm(app, events[n].notification_id, events[n].n, events[n].kind.status, events[n].at) for n in left
        ]
        for n, answer in zip(left, await ground.work.amend(orders, ground.clock.now()), strict=True):
            assert isinstance(answer, Confirmed | NotConfirmed), "a confirmation is answered as one"
            standing[n] = answer.status
        left = [n for n in left if standing[n] in UNSETTLED]
        if not left or pause_s is None:
            break
        await asyncio.sleep(pause_s)
    reached = [event for event, status in zip(events, standing, strict=True) if status in _REACHED]
    await ground.store.device_events.add(reached)
    return standing


_REACHED: Final = (DeliveryStatus.DELIVERED, DeliveryStatus.OPENED)

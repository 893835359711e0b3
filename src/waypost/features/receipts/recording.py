"""Recording: what devices report is confirmed, and each event is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.amendment import Confirm
from waypost.domain.device_event import DeviceEvent
from waypost.domain.ids import AppId
from waypost.domain.status import DeliveryStatus
from waypost.features.parts import Ground
from waypost.pipeline.confirm import confirm

_REACHED: Final = (DeliveryStatus.DELIVERED, DeliveryStatus.OPENED)


async def record(ground: Ground, app: AppId, events: Sequence[DeviceEvent]) -> list[DeliveryStatus | None]:
    """Confirm the target of each of *events*, and keep those of what was sent; return how each target stands then."""
    orders = [Confirm(app, each.notification_id, each.n, each.kind.status, each.at) for each in events]
    standing = await confirm(ground.work, ground.clock, orders)
    reached = [event for event, status in zip(events, standing, strict=True) if status in _REACHED]
    await ground.store.device_events.add(reached)
    return standing

"""The parts that bulk sends add to a worker; walking a job puts work in, so those duties are the runtime's."""

from __future__ import annotations

from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.bulk.routes import ROUTES
from waypost.features.parts import Ground, Parts


async def drop_old(ground: Ground, now: Instant) -> int:
    """Delete jobs that ended longer ago than ``retention.notifications_days``."""
    return await ground.store.bulk.drop_before(later(now, -ground.config.retention.notifications_days * DAY_MS))


PARTS = Parts(routes=(*ROUTES,), tags={"Bulk": "One notification to many recipients."}, drops=drop_old)

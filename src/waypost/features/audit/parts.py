"""The parts that the record of orders adds to a worker."""

from __future__ import annotations

from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.audit.routes import ROUTES
from waypost.features.parts import Ground, Parts
from waypost.pipeline.sweep import PAGE


async def drop_old(ground: Ground, now: Instant) -> int:
    """Delete a page of what is older than ``retention.audit_days``."""
    return await ground.store.audit.drop_before(later(now, -ground.config.retention.audit_days * DAY_MS), PAGE)


PARTS = Parts(routes=(*ROUTES,), drops=drop_old)

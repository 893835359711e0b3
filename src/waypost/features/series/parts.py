"""The parts that series add to a worker."""

from __future__ import annotations

from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.features.series.moving import move_due
from waypost.features.series.routes import ROUTES
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.runtime.roles import Role
from waypost.stores.sql.series import EVENT, MEMBER, VERSION, hear

EVERY_S = 1.0
"""Seconds between two looks for whose step is due: so late it may be, and never early."""


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget the user as a member."""
    await ground.store.series.erase(erasure.app, erasure.user_id, erasure.asked_at)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of members who are through, or left, longer ago than ``retention.notifications_days``."""
    before = later(now, -ground.config.retention.notifications_days * DAY_MS)
    return await ground.store.series.drop(before, PAGE)


PARTS = Parts(
    tables=(VERSION, EVENT, MEMBER),
    routes=(*ROUTES,),
    hears=hear,
    tags={"Series": "Steps over days that users go through."},
    duties=(FeatureDuty("series", Role.SWEEP, EVERY_S, move_due),),
    erases=erase,
    drops=drop,
)

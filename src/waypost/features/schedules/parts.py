"""The parts that schedules add to a worker."""

from __future__ import annotations

from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.features.schedules.rescheduling import reschedule
from waypost.features.schedules.routes import ROUTES
from waypost.features.schedules.sending import send_due
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.runtime.roles import Role
from waypost.stores.sql.schedules import SCHEDULE

EVERY_S = 1.0
"""Seconds between two looks for what is due: so late a time may be, and never early."""


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget the schedules of the user."""
    await ground.store.schedules.erase(erasure.app, erasure.user_id, erasure.asked_at)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of schedules that ended longer ago than ``retention.notifications_days``."""
    before = later(now, -ground.config.retention.notifications_days * DAY_MS)
    return await ground.store.schedules.drop(before, PAGE)


PARTS = Parts(
    tables=(SCHEDULE,),
    routes=(reschedule, *ROUTES),
    tags={"Schedules": "What is submitted again and again, at local times."},
    duties=(FeatureDuty("schedules", Role.SWEEP, EVERY_S, send_due),),
    erases=erase,
    drops=drop,
)

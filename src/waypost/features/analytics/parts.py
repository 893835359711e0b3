"""The parts that analytics add to a worker: a reader of the journal that counts once, and what it counts."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.time import Instant
from waypost.features.analytics.routes import ROUTES
from waypost.features.analytics.settings import is_enabled
from waypost.features.analytics.tracking import post_events
from waypost.features.parts import Ground, Parts
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.ports.journal import JournalRow
from waypost.stores.sql.rollup import READER, ROLLUP, ROLLUP_STAGE, USER_HOUR, Platforms, users_in
from waypost.stores.sql.user_events import EVENT_ID, EVENT_SLOT, USER_EVENT
from waypost.telemetry import Metric


async def count(ground: Ground, rows: Sequence[JournalRow]) -> None:
    """Count what *rows* say was sent, delivered, opened and acted on."""
    store = ground.store
    platforms = None if store.rollup.with_devices else await _platforms(ground, rows)
    for (app, event), n in (await store.rollup.take(rows, ground.hears, platforms)).items():
        ground.telemetry.count(Metric.EVENTS, n, app=app, event=event.value)


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget what the user did, and when."""
    await ground.store.rollup.erase(erasure.app, erasure.user_id)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of old counts."""
    return await ground.store.analytics_retention.drop(now, ground.settings.days, PAGE)


async def _platforms(ground: Ground, rows: Sequence[JournalRow]) -> Platforms:
    """Read the platforms of devices from a registry that is not in the store."""
    users = users_in(rows)
    found = await ground.devices.for_users(users)
    return {
        (*user, each.device_id): each.platform for user, devices in zip(users, found, strict=True) for each in devices
    }


PARTS = Parts(
    tables=(USER_EVENT, EVENT_ID, EVENT_SLOT, ROLLUP, ROLLUP_STAGE, USER_HOUR),
    routes=(post_events, *ROUTES),
    tags={"Analytics": "What became of what was sent, and what users did."},
    is_used=is_enabled,
    counters={READER: count},
    erases=erase,
    drops=drop,
)

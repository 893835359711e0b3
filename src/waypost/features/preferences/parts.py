"""The parts that preferences add to a worker."""

from __future__ import annotations

from waypost.domain.time import Instant
from waypost.features.parts import Ground, Parts
from waypost.features.preferences.capping import claims
from waypost.features.preferences.deciding import RULES, facts, is_declared, render
from waypost.features.preferences.page_routes import ROUTES as PAGE_ROUTES
from waypost.features.preferences.routes import ROUTES
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.stores.sql.frequency import COUNTED
from waypost.stores.sql.preferences import PREFERENCE
from waypost.stores.sql.user_changes import CHANGES, LAST_CHANGE


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget what the user said, and was sent."""
    await ground.store.preferences.erase(erasure.app, erasure.user_id, erasure.asked_at)
    await ground.store.frequency.erase(erasure.app, erasure.user_id)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of counts that no cap can ask for any more."""
    return await ground.store.frequency.drop(now, PAGE)


PARTS = Parts(
    tables=(PREFERENCE, CHANGES, LAST_CHANGE, COUNTED),
    routes=(*ROUTES, *PAGE_ROUTES),
    tags={"Preferences": "What users want to be sent."},
    is_used=is_declared,
    rules=RULES,
    facts=facts,
    claims=claims,
    renders=render,
    erases=erase,
    drops=drop,
)

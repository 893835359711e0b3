"""The parts that topics add to a worker."""

from __future__ import annotations

from waypost.domain.time import Instant
from waypost.features.parts import Ground, Parts
from waypost.features.topics.routes import ROUTES
from waypost.features.topics.user_routes import USER_ROUTES
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.stores.sql.topics import MEMBER, TOPIC


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Take the user out of all topics."""
    await ground.store.topics.erase(erasure.app, erasure.user_id, erasure.asked_at)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of the members of a topic that was removed."""
    return await ground.store.topics.drop(PAGE)


PARTS = Parts(
    tables=(TOPIC, MEMBER),
    routes=(*ROUTES, *USER_ROUTES),
    tags={"Topics": "Users subscribe; a bulk send reaches all who did."},
    erases=erase,
    drops=drop,
)

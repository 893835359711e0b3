"""The parts that preferences add to a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.domain.time import Instant
from waypost.features.parts import Ground, Parts
from waypost.features.preferences import capping, deciding, merging
from waypost.features.preferences.deciding import RULES, Facts, is_declared, render
from waypost.features.preferences.merging import CALLER
from waypost.features.preferences.page_routes import ROUTES as PAGE_ROUTES
from waypost.features.preferences.routes import ROUTES
from waypost.pipeline.route import Plan
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.stores.sql.digests import DIGESTS, MEMBERS
from waypost.stores.sql.frequency import COUNTED
from waypost.stores.sql.preferences import PREFERENCE
from waypost.stores.sql.user_changes import CHANGES, LAST_CHANGE


async def facts(ground: Ground, notifications: Sequence[Notification]) -> Sequence[Facts | None]:
    """Read what decides about each of *notifications*; of a digest, what it says."""
    known = await deciding.decide(ground, notifications)
    digests = [each for each in notifications if each.caller == CALLER]
    if not digests:
        return known
    of_digests = await merging.digest_facts(ground, digests)
    return [of_digests.get(each.id, facts) for each, facts in zip(notifications, known, strict=True)]


async def claims(ground: Ground, plans: Sequence[Plan], found: Mapping[NotificationId, Recipient]) -> Sequence[Plan]:
    """Merge what comes by night, and count what is sent."""
    return await capping.claims(ground, await merging.merge(ground, plans, found), found)


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget what the user said, and was sent."""
    await ground.store.preferences.erase(erasure.app, erasure.user_id, erasure.asked_at)
    await ground.store.frequency.erase(erasure.app, erasure.user_id)
    await ground.store.digests.erase(erasure.app, erasure.user_id)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of counts that no cap can ask for any more, and of digests that are over."""
    return await ground.store.frequency.drop(now, PAGE) + await ground.store.digests.drop(now, PAGE)


PARTS = Parts(
    tables=(PREFERENCE, CHANGES, LAST_CHANGE, COUNTED, DIGESTS, MEMBERS),
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

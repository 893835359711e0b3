"""The parts that contacts add to a worker."""

from __future__ import annotations

from waypost.domain.time import Instant
from waypost.features.contacts.routes import ROUTES
from waypost.features.contacts.settings import verifies
from waypost.features.contacts.verifying import RULE, facts, render
from waypost.features.parts import Ground, Parts
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.stores.sql.contact_proofs import CODES, COUNTS, VERIFIED


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget which addresses the user has proved."""
    await ground.store.contact_proofs.erase(erasure.app, erasure.user_id, erasure.asked_at)


async def drop(ground: Ground, now: Instant) -> int:
    """Delete a page of codes that have ended."""
    return await ground.store.contact_proofs.drop(now, PAGE)


PARTS = Parts(
    tables=(VERIFIED, CODES, COUNTS),
    routes=(*ROUTES,),
    is_used=verifies,
    rules=(RULE,),
    facts=facts,
    renders=render,
    erases=erase,
    drops=drop,
)

"""The parts that preferences add to a worker."""

from __future__ import annotations

from waypost.features.parts import Ground, Parts
from waypost.features.preferences.deciding import RULES, facts, is_declared
from waypost.features.preferences.routes import ROUTES
from waypost.ports.erasure import Erasure
from waypost.stores.sql.preferences import PREFERENCE
from waypost.stores.sql.user_changes import CHANGES, LAST_CHANGE


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget what the user said."""
    await ground.store.preferences.erase(erasure.app, erasure.user_id, erasure.asked_at)


PARTS = Parts(
    tables=(PREFERENCE, CHANGES, LAST_CHANGE),
    routes=(*ROUTES,),
    tags={"Preferences": "What users want to be sent."},
    is_used=is_declared,
    rules=RULES,
    facts=facts,
    erases=erase,
)

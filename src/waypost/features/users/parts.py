"""The parts that profiles of users add to a worker."""

from __future__ import annotations

from waypost.features.parts import Ground, Parts
from waypost.features.users.import_routes import IMPORT_ROUTES
from waypost.features.users.routes import ROUTES
from waypost.ports.erasure import Erasure
from waypost.stores.sql.profiles import PROFILE


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget the user's profile."""
    await ground.store.profiles.erase(erasure.app, erasure.user_id, erasure.asked_at)


PARTS = Parts(tables=(PROFILE,), routes=(*ROUTES, *IMPORT_ROUTES), erases=erase)

"""The parts that opting out of bulk sends adds to a worker."""

from __future__ import annotations

from waypost.features.opt_outs.routes import ROUTES
from waypost.features.parts import Ground, Parts
from waypost.ports.erasure import Erasure


async def opt_in(ground: Ground, erasure: Erasure) -> None:
    """Take the user out of those who opted out."""
    await ground.store.opt_outs.remove(erasure.app, erasure.user_id)


PARTS = Parts(routes=(*ROUTES,), erases=opt_in)

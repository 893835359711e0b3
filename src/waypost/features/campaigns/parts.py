"""The parts that campaigns add to a worker: tables and routes, the holdout, and who takes them from step to step."""

from __future__ import annotations

from waypost.features.campaigns.holdout import RULE
from waypost.features.campaigns.routes import ROUTES
from waypost.features.campaigns.running import TEND_S, drop_old, tend
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.ports.erasure import Erasure
from waypost.runtime.roles import Role
from waypost.stores.sql.campaigns import CAMPAIGN, LIST, OPEN


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Strike the user from the lists of campaigns; their bulk jobs are the store's."""
    await ground.store.campaigns.erase(erasure.app, erasure.user_id)


PARTS = Parts(
    tables=(CAMPAIGN, OPEN, LIST),
    routes=(*ROUTES,),
    tags={"Campaigns": "One message to many: drafted, approved, begun slowly, compared."},
    duties=(FeatureDuty("campaigns", Role.EXPAND, TEND_S, tend),),
    rules=(RULE,),
    erases=erase,
    drops=drop_old,
)

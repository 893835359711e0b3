"""The parts that recovery adds to a worker: the search, its tables, and the routes of alerts."""

from __future__ import annotations

from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.features.recovery.routes import ROUTES
from waypost.features.recovery.scanning import drop_old, scan
from waypost.features.recovery.settings import RecoverySettings
from waypost.runtime.roles import Role
from waypost.stores.sql.recovery import ALERT, SUSPECT


def _poll_s(ground: Ground) -> float:
    settings: RecoverySettings = ground.settings
    return settings.poll_s


PARTS = Parts(
    tables=(SUSPECT, ALERT),
    routes=(*ROUTES,),
    tags={"Alerts": "Notifications that nobody moves, for an operator to retry or to resolve."},
    duties=(FeatureDuty("recover", Role.SWEEP, _poll_s, scan),),
    drops=drop_old,
)

"""The parts that forgetting a user adds to a worker; the duty withdraws work, so it is the runtime's."""

from __future__ import annotations

from waypost.features.erasure.routes import ROUTES
from waypost.features.parts import Parts
from waypost.stores.sql.erased import ERASED

PARTS = Parts(tables=(ERASED,), routes=(*ROUTES,), tags={"Users": "What there is of a person, and its end."})

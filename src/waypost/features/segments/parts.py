"""The parts that segments add to a worker; walking one for a bulk job is the store's."""

from __future__ import annotations

from waypost.features.parts import Parts
from waypost.features.segments.routes import ROUTES
from waypost.stores.sql.segments import SEGMENT

PARTS = Parts(
    tables=(SEGMENT,),
    routes=(*ROUTES,),
    tags={"Segments": "Users whom a filter chooses, for bulk sends."},
)

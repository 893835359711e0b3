"""The parts that receipts of devices add to a worker."""

from __future__ import annotations

from waypost.features.parts import Parts
from waypost.features.receipts.routes import ROUTES
from waypost.stores.sql.device_events import TABLE

PARTS = Parts(
    tables=(TABLE,),
    routes=(*ROUTES,),
    tags={"Receipts": "What devices report of the notifications that reached them."},
)

"""The parts that callbacks of providers add to a worker."""

from __future__ import annotations

from waypost.features.callbacks.routes import ROUTES
from waypost.features.parts import Parts

PARTS = Parts(routes=(*ROUTES,), tags={"Callbacks": "What providers report of the messages that they took."})

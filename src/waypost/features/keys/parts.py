"""The parts that API keys add to a worker."""

from __future__ import annotations

from waypost.features.keys.routes import ROUTES
from waypost.features.parts import Parts

PARTS = Parts(routes=(*ROUTES,), tags={"Keys": "Who may call."})

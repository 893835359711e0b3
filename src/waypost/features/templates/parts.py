"""The parts that templates add to a worker."""

from __future__ import annotations

from waypost.features.parts import Parts
from waypost.features.templates.rendering import concerns, facts, render, say
from waypost.features.templates.routes import ROUTES
from waypost.stores.sql.templates import TEMPLATES, VERSIONS

PARTS = Parts(
    tables=(TEMPLATES, VERSIONS),
    routes=(*ROUTES,),
    tags={"Templates": "What messages say, by channel and language, in versions."},
    facts=facts,
    concerns=concerns,
    renders=render,
    says=say,
)

"""Routes for operators: health, metrics."""

from __future__ import annotations

import asyncio

from litestar import Response, get
from msgspec import Struct

from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, Readiness, api_of

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Alive(Struct, frozen=True):
    """The process answers."""

    alive: bool = True


@get(
    "/health/live",
    tags=["Operation"],
    summary="Liveness",
    operation_id="getLiveness",
    opt=speaks({200: Alive}, None),
)
async def live() -> Response[bytes]:
    """Answer as long as a worker's event loop runs."""
    return answer(200, Alive())


@get(
    "/health/ready",
    tags=["Operation"],
    summary="Readiness",
    operation_id="getReadiness",
    opt=speaks({200: Readiness, 503: Readiness}, None),
)
async def ready(request: Call) -> Response[bytes]:
    """Answer 200 if requests can be served now, otherwise 503; for all workers together."""
    api = api_of(request)
    readiness = api.readiness()
    if api.draining():
        readiness = Readiness(False, {**readiness.checks, "process": "shutting down"})
    return answer(200 if readiness.ready else 503, readiness)


@get("/metrics", tags=["Operation"], summary="Metrics", operation_id="getMetrics", opt=speaks({200: str}, None))
async def metrics(request: Call) -> Response[bytes]:
    """Return the metrics in Prometheus text format, summed over the workers."""
    text = await asyncio.to_thread(api_of(request).metrics)
    return Response(text, status_code=200, headers={"content-type": METRICS_TYPE})


ROUTES = [live, ready, metrics]

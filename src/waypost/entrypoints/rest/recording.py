"""The record of orders that routes receive."""

from __future__ import annotations

from collections.abc import Iterable

from waypost.entrypoints.limits import Visit
from waypost.entrypoints.rest.api import Call, api_of
from waypost.ports.audit import Act, Ordered


async def record(request: Call, act: Act, subjects: Iterable[str]) -> None:
    """Record what a request orders, durably, before it is done."""
    api, caller = api_of(request), request.user
    peer = "" if request.client is None else request.client.host
    visit = Visit(request.url.path, peer, lambda header: request.headers.getall(header, []))
    origin = str(api.limits.origin_of(visit) or "unknown")
    now = api.clock.now()
    orders = [Ordered(now, caller.app, caller.name, origin, act, subject) for subject in subjects]
    if orders:
        await api.audit.record(orders)

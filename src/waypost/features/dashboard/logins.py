"""The trace of logins: who was let in and who was not, on record and in the log, and of many refused the first ones."""

from __future__ import annotations

from enum import StrEnum

from waypost.entrypoints.limits import Visit
from waypost.features.dashboard.desk import Asked, site_of
from waypost.features.dashboard.operators import UNKNOWN
from waypost.ports.audit import Act, Ordered
from waypost.telemetry import Event


class Why(StrEnum):
    """A reason why somebody was not let in."""

    PASSWORD = "password"  # noqa: S105 - the name of a reason
    SECOND_FACTOR = "second_factor"
    PROVIDER = "provider"
    LINK = "link"
    TOO_OFTEN = "too_often"


async def note_login(request: Asked, name: str) -> None:
    """Put on record that somebody logs in, before the session begins."""
    await _record(request, Act.ACCOUNT_LOGGED_IN, name)


async def note_refused(request: Asked, why: Why, name: str = UNKNOWN) -> None:
    """Put on record and into the log that somebody was not let in, where few were before from the same address.

    *name* is that of an account that there is. The same is written whether there is one or not: how long the answer
    takes must not tell.
    """
    api = site_of(request).api
    if await api.limits.is_noteworthy(visit_of(request), is_limited=why is Why.TOO_OFTEN):
        api.telemetry.event(Event.LOGIN_REFUSED, why=why, account=name, origin=_origin_of(request))
        await _record(request, Act.ACCOUNT_REFUSED, name)


def visit_of(request: Asked) -> Visit:
    """Return what limits know of a request."""
    peer = "" if request.client is None else request.client.host
    name = f"{request.method} {request.url.path}"
    return Visit(name, peer, lambda header: request.headers.getall(header, []))


def _origin_of(request: Asked) -> str:
    return str(site_of(request).api.limits.origin_of(visit_of(request)) or "unknown")


async def _record(request: Asked, act: Act, name: str) -> None:
    """Put on record what is about no app, for each of them, at once."""
    site, origin = site_of(request), _origin_of(request)
    now, by = site.api.clock.now(), f"dashboard:{name}"
    await site.api.audit.record([Ordered(now, app, by, origin, act, name) for app in site.apps])

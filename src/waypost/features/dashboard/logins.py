"""The trace of logins: who was let in and who was not, on record and in the log, and of many refused the first ones."""

from __future__ import annotations

from enum import StrEnum

from waypost.domain.ids import AppId, CallerId
from waypost.domain.scope import Scope
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.rest.recording import record
from waypost.features.dashboard.desk import Asked, site_of
from waypost.features.dashboard.operators import UNKNOWN
from waypost.pipeline.intake import Caller
from waypost.ports.audit import Act
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
        origin = str(api.limits.origin_of(visit_of(request)) or "unknown")
        api.telemetry.event(Event.LOGIN_REFUSED, why=why, account=name, origin=origin)
        await _record(request, Act.ACCOUNT_REFUSED, name)


def visit_of(request: Asked) -> Visit:
    """Return what limits know of a request."""
    peer = "" if request.client is None else request.client.host
    name = f"{request.method} {request.url.path}"
    return Visit(name, peer, lambda header: request.headers.getall(header, []))


async def _record(request: Asked, act: Act, name: str) -> None:
    """Put on record what is about no app, for each of them."""
    for app in site_of(request).apps:
        request.scope["user"] = Caller(AppId(app), CallerId(f"dashboard:{name}"), frozenset({Scope.READ}))
        await record(request, act, [name])

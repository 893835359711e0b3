"""The gate where nobody logs in: a browser on this machine comes in by a link that only the service's user can make."""

from __future__ import annotations

from typing import Final, NoReturn, Protocol
from urllib.parse import urlsplit

from litestar import Response

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.entrypoints.limits import RateLimited
from waypost.entrypoints.rest.serving import vouch_for
from waypost.features.dashboard.admittance import is_from_here
from waypost.features.dashboard.desk import FOLDER, Asked, redirect, site_of
from waypost.features.dashboard.foreign import new_form_token
from waypost.features.dashboard.invitations import LASTS_MS, Invitations
from waypost.features.dashboard.logins import Why, note_login, note_refused, visit_of
from waypost.features.dashboard.operators import LOCAL, Operator

_SESSION: Final = "waypost_local"
_ONLY_HERE: Final = (
    "without a login, the dashboard is for browsers on this machine alone: open it as http://127.0.0.1 or localhost,"
    " and not through a proxy"
)


class NotInvited(WaypostError):
    """The error that a browser came without a link, or with one that is not good."""

    code = ErrorCode.UNAUTHENTICATED


class Gate(Protocol):
    """A way to find out who is there."""

    async def enter(self, request: Asked) -> Response[bytes] | None:
        """Let somebody in by what the front's address says; None where it says nothing."""
        ...

    async def operator(self, request: Asked) -> Operator:
        """Return the person; WaypostError where nobody is let in."""
        ...


class LocalGate:
    """The gate of this machine: whoever has opened a link is an operator."""

    def __init__(self, invitations: Invitations) -> None:
        self._invitations = invitations

    async def enter(self, request: Asked) -> Response[bytes] | None:
        """See Gate; NotInvited where the link is not good."""
        token = request.query_params.get("token")
        if token is None:
            return None
        _refuse_elsewhere(request)
        if self._has_session(request):
            return redirect(FOLDER)
        site = site_of(request)
        if not self._invitations.is_link(token, site.api.clock.now()):
            await self._refuse(request)
        await note_login(request, LOCAL.name)
        session = self._invitations.session(site.api.clock.now())
        kept = site.cookie(_cookie_name(request), session, max_age=LASTS_MS // 1_000)
        return redirect(FOLDER, [kept, new_form_token(site)])

    async def operator(self, request: Asked) -> Operator:
        """See Gate."""
        _refuse_elsewhere(request)
        if not self._has_session(request):
            raise NotInvited("This browser has not opened the dashboard by its link.")
        vouch_for(request.scope)
        return LOCAL

    async def _refuse(self, request: Asked) -> NoReturn:
        """Refuse a link: NotInvited, or RateLimited past as many as there may be tries to log in."""
        try:
            await site_of(request).api.limits.count_login(visit_of(request), LOCAL.name)
        except RateLimited:
            await note_refused(request, Why.TOO_OFTEN)
            raise
        await note_refused(request, Why.LINK)
        raise NotInvited("This link is not good, or not any more.")

    def _has_session(self, request: Asked) -> bool:
        cookie = request.cookies.get(_cookie_name(request), "")
        return self._invitations.is_session(cookie, site_of(request).api.clock.now())


def _refuse_elsewhere(request: Asked) -> None:
    peer = "" if request.client is None else request.client.host
    version, host = request.scope["http_version"], request.headers.get("host", "")
    if not is_from_here(version, host, peer, request.headers):
        raise WaypostError(_ONLY_HERE, ErrorCode.FORBIDDEN)


def _cookie_name(request: Asked) -> str:
    """Name the cookie by the port: browsers keep one jar for all ports of a host."""
    return f"{_SESSION}_{urlsplit('//' + request.headers.get('host', '')).port or 80}"

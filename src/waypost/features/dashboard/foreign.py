"""Requests that no page of ours sends: of other sites, without a form's token, or with what no store keeps."""

from __future__ import annotations

import secrets
from hmac import compare_digest

from litestar.datastructures import Cookie

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, WaypostError
from waypost.features.dashboard.admittance import is_cross_site
from waypost.features.dashboard.desk import TOKEN, Asked
from waypost.features.dashboard.site import Site


def refuse_foreign(request: Asked) -> None:
    """Refuse what a page of somewhere else makes the browser send."""
    if is_cross_site(request.method, request.headers):
        raise WaypostError("another site sent this", ErrorCode.FORBIDDEN)


def refuse_nul(request: Asked, body: bytes) -> None:
    """Refuse a path, query or form with a NUL, which PostgreSQL has in no text."""
    said = (request.scope["path"].encode(), request.scope["query_string"], body)
    if any(b"%00" in each or b"\0" in each for each in said):
        raise InvalidRequest((Fault("", "holds a NUL"),))


def new_form_token(site: Site) -> Cookie:
    """Make the token of forms anew, for whoever begins a session: one from before may be known to somebody else."""
    return site.cookie(TOKEN, secrets.token_urlsafe(24))


def refuse_forged(request: Asked, given: str) -> None:
    """Refuse a form without the token that our own page gave to this browser; a browser without one has no form."""
    token = request.cookies.get(TOKEN, "")
    if not token or not compare_digest(token.encode(), given.encode()):
        raise WaypostError("the form is too old, or not of this page: load it again", ErrorCode.FORBIDDEN)

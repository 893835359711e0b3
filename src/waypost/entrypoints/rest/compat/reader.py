"""Whose notifications a call under ``/api`` is about."""

from __future__ import annotations

from typing import Annotated

from litestar.params import HeaderParameter

from waypost.domain.errors import ErrorCode, Fault, Forbidden, InvalidRequest, WaypostError
from waypost.domain.ids import UserId
from waypost.domain.scope import Scope
from waypost.entrypoints.rest.parameters import identity_in
from waypost.pipeline.intake import Caller

_HEADER = "X-Waypost-User"

ActingFor = Annotated[
    str | None,
    HeaderParameter(
        name=_HEADER,
        description="The user whose devices and notifications these are, where a backend calls (`send:any-user`); "
        "percent-encode what a header cannot hold.",
        required=False,
    ),
]


def reader(caller: Caller, acting_for: str | None) -> UserId:
    """Return the user who calls, by their own token, or whom a backend vouches for.

    Forbidden where it may not vouch, or a user's token comes with another's name; InvalidRequest where nobody is named.
    """
    if acting_for is None and caller.user is not None:
        return caller.user
    if acting_for is None:
        raise InvalidRequest((Fault(_HEADER, "required"),))
    named = UserId(identity_in(acting_for, _HEADER))
    if caller.user is not None and named != caller.user:
        raise WaypostError(f"{_HEADER} names another than the token does", ErrorCode.FORBIDDEN)
    if caller.user is None and Scope.SEND_ANY_USER not in caller.scopes:
        raise Forbidden(Scope.SEND_ANY_USER)
    return named

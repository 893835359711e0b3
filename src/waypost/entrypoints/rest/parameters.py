"""Path and query parameters: their types, and how they are read."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from litestar.params import Parameter

from waypost.domain.errors import Fault, InvalidRequest, NotFound
from waypost.domain.ids import NotificationId, parse_id
from waypost.domain.submission import Identity
from waypost.entrypoints.rest.bodies import checked

Limit = Annotated[int, Parameter(ge=1, le=500, description="At most this many.")]
CursorGiven = Annotated[
    str | None, Parameter(max_length=128, min_length=1, description="`next` of the page before.", required=False)
]
UserGiven = Annotated[str | None, Parameter(max_length=128, min_length=1, description="Of this user.", required=False)]
PathId = Annotated[str, Parameter(description="The notification's id.")]
PathIdentity = Annotated[
    str, Parameter(min_length=1, max_length=128, description="Percent-encode what a path cannot hold.")
]


def id_in(path_part: str) -> NotificationId:
    """The id a path names; NotFound where it cannot be one."""
    try:
        return parse_id(path_part)
    except ValueError:
        raise NotFound("no such notification") from None


def identity_in(path_part: str, name: str) -> str:
    """The user or device a path names, its percent-encoding undone; InvalidRequest names it by *name*."""
    try:
        text = unquote(path_part, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest((Fault(name, "not valid UTF-8"),)) from None
    identity: str = checked(Identity, text, name)
    return identity

"""Whose notifications a call under ``/api`` is about."""

from __future__ import annotations

from typing import Annotated

from litestar.params import HeaderParameter

from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import UserId
from waypost.entrypoints.rest.parameters import identity_in

_HEADER = "X-Waypost-User"

ActingFor = Annotated[
    str | None,
    HeaderParameter(
        name=_HEADER,
        description="The user whose devices and notifications these are; percent-encode what a header cannot hold.",
        required=False,
    ),
]


def reader(acting_for: str | None) -> UserId:
    """The user that a call acts for, whom the app's key vouches for; InvalidRequest where it names none.

    Users do not log in here yet: whoever has the app's key is the app's own backend, and says whom it has logged in.
    """
    if acting_for is None:
        raise InvalidRequest((Fault(_HEADER, "required"),))
    return UserId(identity_in(acting_for, _HEADER))

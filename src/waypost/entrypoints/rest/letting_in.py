"""Letting in: who calls is known, and their request counted, before anything of its body is read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import UserId
from waypost.domain.scope import Scope as Right
from waypost.entrypoints.admission import caller_of
from waypost.entrypoints.callers import presented
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.compat import envelope
from waypost.entrypoints.rest.parameters import identity_in
from waypost.entrypoints.rest.taken_bodies import BODY_METHODS
from waypost.pipeline.intake import Caller

WRITES: Final = BODY_METHODS | {"DELETE"}
ACTING_FOR: Final = "x-waypost-user"
_CREDENTIALS: Final = frozenset({b"authorization", b"x-api-key"})

RawHeaders = Sequence[tuple[bytes, bytes]]


async def let_in(api: Api, headers: RawHeaders, method: str, path: str, peer: str) -> Caller:
    """Authenticate the caller, and count the request for every limit that holds for it."""
    is_users = path.startswith(envelope.PREFIX)
    visit = Visit(f"{method} {path}", peer, partial(values, headers), is_users)
    caller = await caller_of(api.callers, api.limits, presented_in(headers), visit)
    named = values(headers, ACTING_FOR) if is_users else []
    if len(named) > 1:  # a proxy may have let one of a client's through beside its own
        raise InvalidRequest((Fault("X-Waypost-User", "names two"),))
    user = None
    if method in WRITES:
        user = caller.user
        if user is None and named and Right.SEND_ANY_USER in caller.scopes:
            with contextlib.suppress(InvalidRequest):  # whose route says so, where it takes the header
                user = UserId(identity_in(named[0], "X-Waypost-User"))
    await api.limits.enter(caller, visit, user)
    return caller


def presented_in(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Find the key or token of the request."""
    return presented(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers if name in _CREDENTIALS
    )


def values(headers: Iterable[tuple[bytes, bytes]], name: str) -> list[str]:
    """List the values of a field, in order."""
    wanted = name.encode("latin-1")
    return [value.decode("latin-1") for given, value in headers if given == wanted]

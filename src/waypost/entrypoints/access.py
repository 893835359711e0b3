"""The access to routes and methods: each declares who may call it, which is checked before its message is read."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from waypost.domain.errors import ErrorCode, Forbidden, NotFound, WaypostError
from waypost.domain.ids import UserId
from waypost.domain.scope import Scope
from waypost.pipeline.intake import Caller
from waypost.ports.views import NotificationDetail


class Access(Struct, frozen=True):
    """The scope that a route needs, and whether end users may call it."""

    scope: Scope
    users: bool = False
    """Whether end users may call it with tokens of their own, for what is theirs."""


SENDS: Final = Access(Scope.SEND_ANY_USER)
SENDS_OWN: Final = Access(Scope.SEND, users=True)
READS: Final = Access(Scope.READ)
READS_OWN: Final = Access(Scope.READ, users=True)
DEVICES_OWN: Final = Access(Scope.DEVICES, users=True)
ADMINISTERS: Final = Access(Scope.ADMIN)

GRPC_ACCESS: Final = {"Submit": SENDS, "SubmitBatch": SENDS, "SubmitStream": SENDS, "Get": READS_OWN}
"""The access to each method of gRPC; here, because what serves them is an optional extra."""


def admit(caller: Caller, access: Access) -> None:
    """Raise Forbidden where *caller* has not the right, or is an end user where only backends may call."""
    if access.scope not in caller.scopes:
        raise Forbidden(access.scope)
    if caller.user is not None and not access.users:
        raise WaypostError("an end user's token does not reach this", ErrorCode.FORBIDDEN)


def reached(caller: Caller, detail: NotificationDetail | None) -> NotificationDetail:
    """Return *detail*, where the caller reaches it; NotFound where there is none, or it is another user's."""
    if detail is None or caller.user not in (None, detail.record.notification.user_id):
        raise NotFound("no such notification")
    return detail


def own(caller: Caller, user: UserId) -> UserId:
    """Return *user*, where the caller reaches them; NotFound where an end user names somebody else."""
    if caller.user is not None and caller.user != user:
        raise NotFound("no such user")
    return user

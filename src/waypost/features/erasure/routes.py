"""The route that forgets a user."""

from __future__ import annotations

import secrets
from typing import Annotated

from litestar import Response, delete
from msgspec import Meta, Struct

from waypost.domain.ids import UserId, format_id
from waypost.domain.time import isoformat
from waypost.entrypoints.access import ADMINISTERS
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import PathIdentity, identity_in
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.views import Timestamp
from waypost.ports.audit import Act
from waypost.ports.erasure import Erasure


class ErasureView(Struct, frozen=True):
    """An erasure that has been ordered."""

    id: Annotated[str, Meta(description="The erasure's id; the event `user.erased` names it at the end.")]
    asked_at: Annotated[Timestamp, Meta(description="The time of the order; anything newer is not erased.")]


@delete(
    "/v1/users/{user_id:str}",
    tags=["Users"],
    summary="Erase a user",
    operation_id="eraseUser",
    status_code=202,
    opt=speaks({202: ErasureView}, ADMINISTERS, codes=WRITE_CODES),
)
async def erase(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Cancel open notifications, delete devices and content, and remove the user's id from the records that stay.
    This cannot be undone. It runs in the background for at least a minute; asking again meanwhile returns the same
    erasure.
    """
    api = api_of(request)
    app, user = request.user.app, UserId(identity_in(user_id, "user_id"))
    standing = await api.erasures.of(app, user)
    order = standing or Erasure(
        api.intake.ids.next(1)[0], app, user, UserId(f"erased-{secrets.token_hex(16)}"), api.clock.now()
    )
    await record(request, Act.USER_ERASED, [format_id(order.id)])
    if standing is None:
        order = await api.erasures.ask(order)
    return answer(202, ErasureView(format_id(order.id), isoformat(order.asked_at)))


ROUTES = [erase]

"""Routes of opting out of bulk sends."""

from __future__ import annotations

from litestar import Response, delete, get, put
from msgspec import Struct

from waypost.domain.errors import ErrorCode, NotFound
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import PathIdentity, user_in


class OptOut(Struct, frozen=True):
    """Whether a user is left out of bulk sends."""

    opted_out: bool


@put(
    "/v1/users/{user_id:str}/bulk-opt-out",
    tags=["Bulk"],
    summary="Leave a user out of bulk sends",
    operation_id="putBulkOptOut",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=WRITE_CODES),
)
async def opt_out(request: Call, user_id: PathIdentity) -> None:
    """From now on, also of jobs that are under way. What is sent to one user at a time is not affected."""
    api = api_of(request)
    await api.opt_outs.put(request.user.app, user_in(request.user, user_id), api.clock.now())


@get(
    "/v1/users/{user_id:str}/bulk-opt-out",
    tags=["Bulk"],
    summary="Is a user left out of bulk sends",
    operation_id="getBulkOptOut",
    opt=speaks({200: OptOut}, DEVICES_OWN),
)
async def opted_out(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """A user nobody has heard of is not."""
    user = user_in(request.user, user_id)
    return answer(200, OptOut(await api_of(request).opt_outs.has(request.user.app, user)))


@delete(
    "/v1/users/{user_id:str}/bulk-opt-out",
    tags=["Bulk"],
    summary="Let a user have bulk sends again",
    operation_id="deleteBulkOptOut",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def opt_in(request: Call, user_id: PathIdentity) -> None:
    """Jobs that passed them by already stay as they are."""
    if not await api_of(request).opt_outs.remove(request.user.app, user_in(request.user, user_id)):
        raise NotFound("the user had not opted out")


ROUTES = [opt_out, opted_out, opt_in]

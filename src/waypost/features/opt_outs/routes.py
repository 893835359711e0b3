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
    """A user's choice: opted out of bulk sends, or not."""

    opted_out: bool


@put(
    "/v1/users/{user_id:str}/bulk-opt-out",
    tags=["Bulk"],
    summary="Opt a user out of bulk sends",
    operation_id="putBulkOptOut",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=WRITE_CODES),
)
async def opt_out(request: Call, user_id: PathIdentity) -> None:
    """Opt the user out at once, also of running jobs. Notifications to a single user are not affected."""
    api = api_of(request)
    await api.opt_outs.put(request.user.app, user_in(request.user, user_id), api.clock.now())


@get(
    "/v1/users/{user_id:str}/bulk-opt-out",
    tags=["Bulk"],
    summary="Look up a user's bulk opt-out",
    operation_id="getBulkOptOut",
    opt=speaks({200: OptOut}, DEVICES_OWN),
)
async def opted_out(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Tell whether the user has opted out; an unknown user has not."""
    user = user_in(request.user, user_id)
    return answer(200, OptOut(await api_of(request).opt_outs.has(request.user.app, user)))


@delete(
    "/v1/users/{user_id:str}/bulk-opt-out",
    tags=["Bulk"],
    summary="End a user's bulk opt-out",
    operation_id="deleteBulkOptOut",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def opt_in(request: Call, user_id: PathIdentity) -> None:
    """Opt the user in again. Jobs that skipped the user already do not return to them."""
    if not await api_of(request).opt_outs.remove(request.user.app, user_in(request.user, user_id)):
        raise NotFound("the user had not opted out")


ROUTES = [opt_out, opted_out, opt_in]

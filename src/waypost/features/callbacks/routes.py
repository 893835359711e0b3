"""The route by which providers report; each request is signed by its provider, which the channel's plug-in checks."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from litestar import post
from litestar.params import PathParameter, RawBody

from waypost.domain.amendment import Confirm
from waypost.domain.errors import ErrorCode, NotFound, WaypostError
from waypost.domain.ids import AppId
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.rest.answers import WRITE_CODES, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import PathApp
from waypost.entrypoints.rest.serving import vouch_for
from waypost.features.parts import Ground
from waypost.pipeline.confirm import confirm, refuse_unsettled
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, credential_at

PathChannel = Annotated[str, PathParameter(description="The channel.")]
PathName = Annotated[str, PathParameter(description="The name of the credential; `default` for the one without.")]


@post(
    "/callbacks/{app:str}/{channel:str}/{name:str}",
    tags=["Callbacks"],
    summary="Take a provider's report",
    operation_id="postCallback",
    status_code=204,
    opt=speaks({204: None}, None, body=bytes, codes=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN, *WRITE_CODES)),
)
async def take_callback(request: Call, app: PathApp, channel: PathChannel, name: PathName, body: RawBody) -> None:
    """Take what a provider posts of a message that it took: delivered, opened, or that it came back."""
    ground: Ground = ground_of(request, "callbacks")
    scope: Any = request.scope
    visit = Visit("POST /callbacks", (scope["client"] or ("",))[0], partial(request.headers.getall, default=[]))
    read = api_of(request).callbacks.get(credential_at(app, channel, name))
    if read is None:
        await api_of(request).limits.count_unvouched(visit)
        raise NotFound("no such credential takes reports")
    target = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    url = f"{api_of(request).settings.public_url}{target}{'?' if query else ''}{query}"
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    try:
        reports = read(CallbackRequest(url, headers, body))
    except ForgedCallback:
        await api_of(request).limits.count_unvouched(visit)
        raise WaypostError("the request is not signed by the provider", ErrorCode.FORBIDDEN) from None
    vouch_for(scope)
    now = api_of(request).clock.now()
    orders = [
        Confirm(AppId(app), each.notification_id, each.n, each.status, now, each.code, each.why, each.is_dead)
        for each in reports
    ]
    refuse_unsettled(await confirm(ground.work, api_of(request).clock, orders))


ROUTES = [take_callback]

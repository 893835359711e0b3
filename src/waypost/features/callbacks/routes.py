"""The route by which providers report; each request is signed by its provider, which the channel's plug-in checks."""

from __future__ import annotations

from typing import Annotated, Any, Final

from litestar import post
from litestar.params import PathParameter, RawBody

from waypost.domain.amendment import Confirm
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ErrorCode, NotFound, Unavailable, WaypostError
from waypost.domain.ids import AppId
from waypost.entrypoints.rest.answers import WRITE_CODES, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.serving import VOUCH
from waypost.features.parts import Ground
from waypost.pipeline.confirm import UNSETTLED, confirm
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, TargetReport

DEFAULT: Final = "default"
"""The name of a channel's credential that has none."""
PathApp = Annotated[str, PathParameter(description="The app.")]
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
    credential = CredentialId(AppId(app), Channel(channel), "" if name == DEFAULT else name)
    read = api_of(request).callbacks.get(credential)
    if read is None:
        raise NotFound("no such credential takes reports")
    scope: Any = request.scope
    target = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    url = f"{api_of(request).settings.public_url}{target}{'?' if query else ''}{query}"
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    try:
        reports = read(CallbackRequest(url, headers, body))
    except ForgedCallback:
        raise WaypostError("the request is not signed by the provider", ErrorCode.FORBIDDEN) from None
    if (vouch := scope.get(VOUCH)) is not None:
        vouch()
    now = api_of(request).clock.now()
    orders = []
    for each in reports:
        forgets = await _dead(request, AppId(app), each) if each.is_dead else None
        orders.append(Confirm(AppId(app), each.notification_id, each.n, each.status, now, each.code, each.why, forgets))
    if set(await confirm(ground.work, api_of(request).clock, orders)) & set(UNSETTLED):
        raise Unavailable("the delivery is not settled yet: say it again", ErrorCode.STORAGE_BUSY, 2)


async def _dead(request: Call, app: AppId, report: TargetReport) -> bytes | None:
    """Find the hash of the token that the target was last sent to; None where it was not."""
    detail = await api_of(request).views.detail(app, report.notification_id)
    receipts = () if detail is None else detail.receipts
    attempts = next((each.attempts for each in receipts if each.n == report.n), ())
    return attempts[-1].token_hash if attempts else None


ROUTES = [take_callback]

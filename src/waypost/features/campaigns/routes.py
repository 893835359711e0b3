"""Routes of campaigns: draft one, give it its list, approve, schedule, follow and stop it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from litestar import Response, get, post, put
from litestar.params import PathParameter, RawBody

from waypost.domain.bulk import Recipient
from waypost.domain.bulk_submission import recipient_of
from waypost.domain.campaign import Campaign, CampaignOrder, CampaignState, CampaignSubmission
from waypost.domain.errors import ErrorCode, WaypostError
from waypost.domain.submission import CampaignName
from waypost.domain.time import Instant, from_datetime
from waypost.entrypoints.access import READS, SENDS
from waypost.entrypoints.decoding import checked, decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import Limit, LongCursor, identity_in
from waypost.entrypoints.rest.recipient_lists import recipients_in
from waypost.entrypoints.rest.recording import record
from waypost.features.campaigns import ordering
from waypost.features.campaigns.forecasting import forecast as foresee
from waypost.features.campaigns.jobs import LIST_PAGE, drafted, records_of
from waypost.features.campaigns.results import ResultsView
from waypost.features.campaigns.results import results as compare
from waypost.features.campaigns.views import (
    CampaignPage,
    CampaignView,
    ForecastView,
    SubmittedTime,
    campaign_view,
    forecast_view,
)
from waypost.features.parts import Ground
from waypost.ports.audit import Act

FEATURE = "campaigns"
_E = ErrorCode
_submission = msgspec.json.Decoder(CampaignSubmission)
_time = msgspec.json.Decoder(SubmittedTime)

PathCampaign = Annotated[str, PathParameter(description="The campaign's name.")]
_ORDERED = speaks({200: CampaignView}, SENDS, codes=(_E.NOT_FOUND, _E.WRONG_STATE, *WRITE_CODES))
_EXAMPLE = {
    "notification": {
        "title": "Our sale begins",
        "body": "Today only.",
        "variants": [{"name": "plain"}, {"name": "named", "title": "{{name}}, our sale begins"}],
        "holdout": 5,
    },
    "upload": True,
    "variables": {"name": "Dear friend"},
    "rate": 1000,
    "ramp": {"steps": [1, 10], "hold": 300, "max_failed": 0.1},
}


@put(
    "/v1/campaigns/{campaign:str}",
    tags=["Campaigns"],
    summary="Draft a campaign",
    operation_id="putCampaign",
    opt=speaks(
        {200: CampaignView, 201: CampaignView},
        SENDS,
        body=CampaignSubmission,
        example=_EXAMPLE,
        meanings={200: "Changed; it is a draft again.", 201: "New."},
        codes=(_E.TOO_LARGE, _E.WRONG_STATE, *WRITE_CODES),
    ),
)
async def draft(request: Call, campaign: PathCampaign, body: RawBody) -> Response[bytes]:
    """Make a draft under a name of yours, or change it. What was approved has to be approved again."""
    api, asked = api_of(request), decode(_submission, body)
    checks = api.bulk.checks.get(request.user.app, ())
    named = checked(CampaignName, identity_in(campaign, "campaign"), "campaign")
    chosen = await api.bulk.chosen(request.user.app, asked.to)
    version = await api.bulk.version(request.user.app, asked)
    by = request.user.app, named, request.user.name
    await record(request, Act.CAMPAIGN_PUT, [named])
    made, is_new = await ordering.put(_ground(request), *by, asked, checks, chosen, version)
    return await _shown(request, made, 201 if is_new else 200)


@put(
    "/v1/campaigns/{campaign:str}/recipients",
    tags=["Campaigns"],
    summary="Upload a campaign's list",
    operation_id="uploadCampaignRecipients",
    status_code=200,
    opt=speaks(
        {200: CampaignView},
        SENDS,
        meanings={200: "All of it is stored."},
        codes=(_E.NOT_FOUND, _E.WRONG_STATE, _E.TOO_LARGE, _E.UNSUPPORTED_MEDIA_TYPE, *WRITE_CODES),
    ),
)
async def upload(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Add a list, NDJSON or CSV, to the draft's: each user once, the last mention counts.

    Nothing is sent before the campaign begins. Whoever adds to a list has changed the campaign.
    """
    ground, api = _ground(request), api_of(request)
    before = await _found(request, campaign)
    if before.state is not CampaignState.DRAFT or not before.has_list:
        raise _no_list()
    job = drafted(before, api.bulk.ids.next(1)[0], ground, api.clock.now())
    await record(request, Act.CAMPAIGN_UPLOADED, [before.name])
    given = recipients_in(request.scope["headers"], request.receive, api.settings)
    async for page in _pages(recipient_of(fields, job, at) async for at, fields in given):  # type: ignore[arg-type]  # checked there
        if not await ground.store.campaigns.add(before.app, before.name, page, request.user.name, api.clock.now()):
            raise _no_list()
    return await _shown(request, await _found(request, campaign))


async def _pages(recipients: AsyncIterator[Recipient]) -> AsyncIterator[list[Recipient]]:
    page: list[Recipient] = []
    async for each in recipients:
        page.append(each)
        if len(page) == LIST_PAGE:
            yield page
            page = []
    if page:
        yield page


def _no_list() -> WaypostError:
    return WaypostError("only a draft with upload: true takes a list", ErrorCode.WRONG_STATE)


@get(
    "/v1/campaigns/{campaign:str}",
    tags=["Campaigns"],
    summary="Look up a campaign",
    operation_id="getCampaign",
    opt=speaks({200: CampaignView}, READS, codes=(_E.NOT_FOUND,)),
)
async def look_up(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Return how a campaign stands, with its recipients by status and an estimate of when it ends."""
    return await _shown(request, await _found(request, campaign))


@get(
    "/v1/campaigns",
    tags=["Campaigns"],
    summary="List campaigns",
    operation_id="listCampaigns",
    opt=speaks({200: CampaignPage}, READS, codes=(_E.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List campaigns by name."""
    ground = _ground(request)
    page = await ground.store.campaigns.page(request.user.app, cursors.name(cursor), limit)
    views = [campaign_view(each, await records_of(ground, each), ground.clock.now()) for each in page]
    return answer(200, CampaignPage(tuple(views), cursors.of_name([each.name for each in page], limit)))


@get(
    "/v1/campaigns/{campaign:str}/forecast",
    tags=["Campaigns"],
    summary="Forecast a campaign",
    operation_id="forecastCampaign",
    opt=speaks({200: ForecastView}, READS, codes=(_E.NOT_FOUND, _E.WRONG_STATE)),
)
async def forecast(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Say what a campaign that has not begun would do: whom it would reach by which channel, when, and at what price.

    It takes users through the rules that decide when something is sent: all of a few thousand, a sample of more.
    """
    found = await _found(request, campaign)
    if found.state not in (CampaignState.DRAFT, CampaignState.APPROVED, CampaignState.SCHEDULED):
        raise WaypostError(f"the campaign is {found.state}", ErrorCode.WRONG_STATE)
    return answer(200, forecast_view(await foresee(_ground(request), api_of(request).explain, found)))


@get(
    "/v1/campaigns/{campaign:str}/results",
    tags=["Campaigns"],
    summary="Compare a campaign's variants",
    operation_id="getCampaignResults",
    opt=speaks({200: ResultsView}, READS, codes=(_E.NOT_FOUND, _E.WRONG_STATE)),
)
async def results(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Return what became of each variant, and whether it is better or worse than the first, or `not_enough_yet`.

    You may look as often as you like, and stop when you like: all looks together are wrong in at most 5 %.
    """
    ground, found = _ground(request), await _found(request, campaign)
    if not getattr(ground.config.features.get("analytics"), "enabled", False):
        raise WaypostError("nothing is counted: analytics.enabled is false", ErrorCode.WRONG_STATE)
    return answer(200, await compare(ground, found))


@post(
    "/v1/campaigns/{campaign:str}/approve",
    tags=["Campaigns"],
    summary="Approve a campaign",
    operation_id="approveCampaign",
    status_code=200,
    opt=_ORDERED,
)
async def approve(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Agree to a draft as it stands. Where the app says so, by another caller than the one that changed it last."""
    return await _order(request, campaign, CampaignOrder.APPROVE)


@post(
    "/v1/campaigns/{campaign:str}/schedule",
    tags=["Campaigns"],
    summary="Schedule a campaign",
    operation_id="scheduleCampaign",
    status_code=200,
    opt=speaks(
        {200: CampaignView},
        SENDS,
        body=SubmittedTime,
        example={"at": "2026-12-01T09:00:00+01:00"},
        codes=(_E.NOT_FOUND, _E.WRONG_STATE, *WRITE_CODES),
    ),
)
async def schedule(request: Call, campaign: PathCampaign, body: RawBody) -> Response[bytes]:
    """Begin at a time; until then, another time may be set."""
    said = decode(_time, body)
    return await _order(request, campaign, CampaignOrder.SCHEDULE, from_datetime(said.at))


@post(
    "/v1/campaigns/{campaign:str}/start",
    tags=["Campaigns"],
    summary="Start a campaign",
    operation_id="startCampaign",
    status_code=200,
    opt=_ORDERED,
)
async def start(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Begin within a second."""
    return await _order(request, campaign, CampaignOrder.SCHEDULE)


@post(
    "/v1/campaigns/{campaign:str}/pause",
    tags=["Campaigns"],
    summary="Pause a campaign",
    operation_id="pauseCampaign",
    status_code=200,
    opt=_ORDERED,
)
async def pause(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Hand nobody more to the senders until it is resumed. Retries go on, and so does the TTL."""
    return await _order(request, campaign, CampaignOrder.PAUSE)


@post(
    "/v1/campaigns/{campaign:str}/resume",
    tags=["Campaigns"],
    summary="Resume a campaign",
    operation_id="resumeCampaign",
    status_code=200,
    opt=_ORDERED,
)
async def resume(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """Go on where it was paused. What failed before counts no more for the ramp's rate of failures."""
    return await _order(request, campaign, CampaignOrder.RESUME)


@post(
    "/v1/campaigns/{campaign:str}/cancel",
    tags=["Campaigns"],
    summary="Cancel a campaign",
    operation_id="cancelCampaign",
    status_code=200,
    opt=_ORDERED,
)
async def cancel(request: Call, campaign: PathCampaign) -> Response[bytes]:
    """End it for good. Deliveries under way end with their present attempt."""
    return await _order(request, campaign, CampaignOrder.CANCEL)


_ACTS = {
    CampaignOrder.APPROVE: Act.CAMPAIGN_APPROVED,
    CampaignOrder.SCHEDULE: Act.CAMPAIGN_SCHEDULED,
    CampaignOrder.PAUSE: Act.CAMPAIGN_PAUSED,
    CampaignOrder.RESUME: Act.CAMPAIGN_RESUMED,
    CampaignOrder.CANCEL: Act.CAMPAIGN_CANCELLED,
}


async def _order(request: Call, campaign: str, order: CampaignOrder, at: Instant | None = None) -> Response[bytes]:
    app, name = request.user.app, identity_in(campaign, "campaign")
    await record(request, _ACTS[order], [name])
    ordered = await ordering.order(_ground(request), app, name, request.user.name, order, at)
    return await _shown(request, ordered)


async def _found(request: Call, campaign: str) -> Campaign:
    return await ordering.found(_ground(request), request.user.app, identity_in(campaign, "campaign"))


async def _shown(request: Call, campaign: Campaign, status: int = 200) -> Response[bytes]:
    ground = _ground(request)
    return answer(status, campaign_view(campaign, await records_of(ground, campaign), ground.clock.now()))


def _ground(request: Call) -> Ground:
    ground: Ground = ground_of(request, FEATURE)
    return ground


ROUTES = [draft, upload, listed, look_up, forecast, results, approve, schedule, start, pause, resume, cancel]

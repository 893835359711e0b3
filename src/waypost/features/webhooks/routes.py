"""Routes of webhooks out: where they come from, what was posted, and posting it again."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.openapi.spec.enums import OpenAPIFormat
from litestar.params import QueryParameter, RawBody
from msgspec import Meta, Struct

from waypost.channels.webhook.settings import CHANNEL, WebhookSettings
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.domain.ids import AppId, NotificationId, format_id, parse_id
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import Moment
from waypost.domain.text import NO_NUL
from waypost.domain.time import SECOND_MS, from_datetime, isoformat
from waypost.entrypoints.access import ADMINISTERS, READS
from waypost.entrypoints.decoding import checked, decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.bodies import IdText
from waypost.entrypoints.rest.parameters import CursorGiven, Limit
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.replaying import ReplayResult, replay_result
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.entrypoints.submitting import Id
from waypost.features.parts import Ground
from waypost.features.webhooks.events import TTL_MS
from waypost.features.webhooks.log import (
    FAILED,
    LogQuery,
    Told,
    endpoint_of,
    events_among,
    page,
    said_by,
    with_receipts,
)
from waypost.features.webhooks.settings import WebhooksSettings
from waypost.ports.audit import Act
from waypost.ports.views import NotificationDetail

REPLAY_LIMIT = 500
"""Events of one replay, or of one page of it."""

Endpoint = Annotated[str, Meta(max_length=64, pattern=r"^[0-9a-f]{64}(?!\n)$")]
EndpointGiven = Annotated[
    str | None,
    QueryParameter(
        pattern="^[0-9a-f]{64}$",
        description="The SHA-256 of the URL in hex, since a URL is a secret; left out: the `status_url` of the app.",
        required=False,
    ),
]
StatusesGiven = Annotated[
    list[NotificationStatus] | None,
    QueryParameter(description="Only with these statuses; may be repeated.", required=False),
]
SinceGiven = Annotated[
    str | None,
    QueryParameter(format=OpenAPIFormat.DATE_TIME, description="What it tells happened then or later.", required=False),
]
UntilGiven = Annotated[
    str | None,
    QueryParameter(format=OpenAPIFormat.DATE_TIME, description="What it tells happened before.", required=False),
]


class WebhookSources(Struct, frozen=True):
    """The addresses and networks that webhooks come from, as the operator set them."""

    addresses: tuple[str, ...]


class WebhookEventView(Struct, frozen=True):
    """An event, and how telling it fared."""

    id: Id
    webhook_id: Annotated[str, Meta(description="As its receiver got it.")]
    status: NotificationStatus
    attempts: int
    code: Annotated[str | None, Meta(description="The answer to the last attempt, such as `http_500`.")]
    at: Annotated[Timestamp, Meta(description="When happened what it tells.")]
    finished_at: Timestamp | None
    type: str
    notification_id: Annotated[str, Meta(description="The notification that it tells of.")]
    told: Annotated[str, Meta(description="The status that it tells.")]


class WebhookEventPage(Struct, frozen=True):
    """Events to one URL, newest first."""

    items: tuple[WebhookEventView, ...]
    next: Cursor


class WebhookReplayOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """The events to post again: either *ids*, or a page of those to one URL in a time."""

    ids: Annotated[tuple[IdText, ...], Meta(min_length=1, max_length=REPLAY_LIMIT)] | None = None
    since: Annotated[Moment | None, Meta(description="What they tell happened then or later.")] = None
    until: Annotated[Moment | None, Meta(description="What they tell happened before.")] = None
    endpoint: Endpoint | None = None
    sent: Annotated[bool, Meta(description="Whether to post those again, too, that the receiver took.")] = False
    cursor: Annotated[str, Meta(max_length=128, pattern=NO_NUL)] | None = None


class WebhooksReplayed(Struct, frozen=True):
    """The events that are posted again."""

    replayed: int
    results: tuple[ReplayResult, ...]
    next: Cursor


_order = msgspec.json.Decoder(WebhookReplayOrder)


@get(
    "/v1/webhooks/sources",
    tags=["Webhooks"],
    summary="List the addresses that webhooks come from",
    operation_id="listWebhookSources",
    opt=speaks({200: WebhookSources}, READS),
)
async def sources(request: Call) -> Response[bytes]:
    """List what `webhooks.source_addresses` says, for receivers who let in nothing else."""
    settings: WebhooksSettings = ground_of(request, "webhooks").settings
    return answer(200, WebhookSources(settings.source_addresses))


@get(
    "/v1/webhooks/events",
    tags=["Webhooks"],
    summary="List what was told to a URL",
    operation_id="listWebhookEvents",
    opt=speaks({200: WebhookEventPage}, READS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def events(
    request: Call,
    endpoint: EndpointGiven = None,
    status: StatusesGiven = None,
    since: SinceGiven = None,
    until: UntilGiven = None,
    cursor: CursorGiven = None,
    limit: Limit = 50,
) -> Response[bytes]:
    """List status changes that were or are to be told to one URL, newest first, with how that fared."""
    asked = WebhookReplayOrder(
        since=None if since is None else checked(Moment, since, "since"),
        until=None if until is None else checked(Moment, until, "until"),
        endpoint=endpoint,
        cursor=cursor,
    )
    told = await page(api_of(request).views, _query(request, asked, tuple(status or ()), limit))
    items = tuple(map(_view, await with_receipts(api_of(request).views, told)))
    return answer(200, WebhookEventPage(items, _cursor(told)))


@post(
    "/v1/webhooks/replay",
    tags=["Webhooks"],
    summary="Tell events again",
    operation_id="replayWebhooks",
    opt=speaks(
        {202: WebhooksReplayed, 200: WebhooksReplayed},
        ADMINISTERS,
        body=WebhookReplayOrder,
        example={"since": "2026-01-31T09:00:00Z", "until": "2026-01-31T10:00:00Z", "sent": True},
        meanings={202: "Some are posted again.", 200: "None is."},
        codes=(ErrorCode.INVALID_CURSOR, *WRITE_CODES),
    ),
)
async def replay(request: Call, body: RawBody) -> Response[bytes]:
    """Post the named events again, or one page of those in a time; repeat with `next` until it is null.

    Each has the `webhook-id` that it had. They are posted side by side: `occurred_at` says in which order it happened.
    """
    order = decode(_order, body)
    api = api_of(request)
    if (order.ids is None) == (order.since is None):
        raise InvalidRequest((Fault("", "give either ids or since"),))
    if order.ids is not None:
        asked = list(dict.fromkeys(map(parse_id, order.ids)))
        ids, following = await events_among(api.views, request.user.app, asked), None
    else:
        statuses = (*FAILED, NotificationStatus.SENT) if order.sent else FAILED
        told = await page(api.views, _query(request, order, statuses, REPLAY_LIMIT))
        ids, following = [each.notification.id for each in reversed(told.records)], _cursor(told)
    await record(request, Act.NOTIFICATION_REPLAYED, map(format_id, ids))
    answers = await api.intake.replay(request.user, ids, TTL_MS // SECOND_MS, taken=order.sent) if ids else []
    results = tuple(replay_result(each, result) for each, result in zip(ids, answers, strict=True))
    begun = sum(1 for result in results if result.error is None)
    return answer(202 if begun else 200, WebhooksReplayed(begun, results, following))


def _query(request: Call, order: WebhookReplayOrder, statuses: tuple[NotificationStatus, ...], limit: int) -> LogQuery:
    ground, app = ground_of(request, "webhooks"), request.user.app
    return LogQuery(
        app,
        order.endpoint or _own_endpoint(ground, app),
        statuses,
        since=None if order.since is None else from_datetime(order.since),
        until=None if order.until is None else from_datetime(order.until),
        before=None if order.cursor is None else cursors.notification(order.cursor),
        limit=limit,
    )


def _own_endpoint(ground: Ground, app: AppId) -> str:
    settings = ground.config.apps[app].senders.get(CHANNEL)
    if not isinstance(settings, WebhookSettings) or settings.status_url is None:
        raise InvalidRequest((Fault("endpoint", "is needed: the app has no status_url"),))
    return endpoint_of(settings.status_url)


def _cursor(told: Told) -> str | None:
    return None if told.next is None else cursors.of_notification(told.next)


def _view(detail: NotificationDetail) -> WebhookEventView:
    event, said = detail.record, said_by(detail.record)
    receipt = detail.receipts[0] if detail.receipts else None
    name: NotificationId = event.notification.id
    return WebhookEventView(
        id=format_id(name),
        webhook_id=f"{format_id(name)}-0",
        status=event.status,
        attempts=0 if receipt is None else receipt.attempt,
        code=None if receipt is None else receipt.code,
        at=isoformat(event.notification.created_at),
        finished_at=None if event.finished_at is None else isoformat(event.finished_at),
        type=str(said.get("type", "")),
        notification_id=str(said.get("notification_id", "")),
        told=str(said.get("status", "")),
    )


ROUTES = [sources, events, replay]

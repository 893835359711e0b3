"""Routes of notifications: submit, look up, list, cancel, replay."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, assert_never

import msgspec
from litestar import Response, get, post
from litestar.params import QueryParameter, RawBody
from msgspec import Struct

from waypost.domain.amendment import NotOpen, TooLate, Withdrawn
from waypost.domain.errors import ErrorCode, NotFound, WaypostError
from waypost.domain.ids import UserId, format_id
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import Submission
from waypost.domain.vocabulary import Vocabulary, notification_word
from waypost.entrypoints.access import READS_OWN, SENDS, own, reached
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import INTAKE_CODES, ONE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.bodies import Batch, ReplayOrder
from waypost.entrypoints.rest.parameters import CursorGiven, HeaderKey, Limit, PathId, UserGiven, id_in
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.submitting import BatchAnswer, submit_batch, submit_one
from waypost.entrypoints.rest.views import NotificationPage, NotificationView, summary, whole
from waypost.entrypoints.submitting import Id, Submitted
from waypost.pipeline.intake import require_replayable
from waypost.ports.audit import Act
from waypost.ports.views import HistoryQuery

_E = ErrorCode
_replay_order = msgspec.json.Decoder(ReplayOrder)

StatusesGiven = Annotated[
    list[NotificationStatus] | None,
    QueryParameter(description="Only with these statuses; may be repeated.", required=False),
]

ArchivedGiven = Annotated[
    bool,
    QueryParameter(
        description="List the archive; a page of it may hold fewer than `limit`, even none, and go on.", required=False
    ),
]

WordsGiven = Annotated[
    Vocabulary | None,
    QueryParameter(description="Also return the statuses as another API names them.", required=False),
]


class Cancelling(StrEnum):
    """The outcome of a cancellation."""

    CANCELLED = "cancelled"  # nothing more of it will be sent
    CANCELLING = "cancelling"  # it is being sent right now; no attempt after the present one is made


class Cancellation(Struct, frozen=True):
    """The result of a cancellation; *result* is not a status of the notification."""

    id: Id
    result: Cancelling
    cancelled: int
    """Deliveries stopped."""
    handed_over: int
    """Deliveries that are with a provider, or settled."""


class Replayed(Struct, frozen=True):
    """A new round has begun."""

    id: Id
    status: NotificationStatus = NotificationStatus.PENDING


_FIRST_ID = "019c1234-5678-7abc-8def-0123456789ab"
_NEW = {"id": _FIRST_ID, "status": "pending", "content_hash": "9f86d081884c7d65", "deduplicated": False}
_REPEATED = _NEW | {"status": "sent", "deduplicated": True, "record_id": "019c1234-9abc-7def-8012-3456789abcde"}


@post(
    "/v1/notifications",
    tags=["Notifications"],
    summary="Submit a notification",
    operation_id="submitNotification",
    opt=speaks(
        {202: Submitted, 200: Submitted},
        SENDS,
        body=Submission,
        example={"user_id": "user-1", "title": "Your parcel is here", "body": "Left at the front door."},
        shown={202: _NEW, 200: _REPEATED},
        meanings={202: "Accepted: durable, and will be sent.", 200: "Said before: the first one's id."},
        codes=ONE_CODES,
    ),
)
async def submit(request: Call, body: RawBody, header_key: HeaderKey = None) -> Response[bytes]:
    """Store the notification durably before the answer: 202 for a new one, 200 with `deduplicated` and the first
    one's id for a duplicate.
    """
    return answer(*await submit_one(api_of(request), request.user, header_key, body))


@post(
    "/v1/notifications/batch",
    tags=["Notifications"],
    summary="Submit up to 1,000 notifications",
    operation_id="submitBatch",
    opt=speaks(
        {202: BatchAnswer, 200: BatchAnswer},
        SENDS,
        body=Batch,
        example={"notifications": [{"user_id": "user-1", "title": "One"}, {"user_id": "user-2", "title": "Two"}]},
        meanings={202: "Some are new.", 200: "None is new: repeated, or refused."},
        codes=INTAKE_CODES,
    ),
)
async def submit_many(request: Call, body: RawBody) -> Response[bytes]:
    """Return one result per item, in order. 202 if any item is new, 200 if all are duplicates or refused.

    An item with the same content as an earlier one is its duplicate. If the store fails, nothing of the batch is
    accepted; with the `log` stack, each item has its own result.
    """
    return answer(*await submit_batch(api_of(request), request.user, None, body))


@get(
    "/v1/notifications/{notification_id:str}",
    tags=["Notifications"],
    summary="Look up a notification",
    operation_id="getNotification",
    opt=speaks({200: NotificationView}, READS_OWN, codes=(_E.NOT_FOUND,)),
)
async def look_up(request: Call, notification_id: PathId, words: WordsGiven = None) -> Response[bytes]:
    """Return the content and, for each device, a receipt with every attempt; also from the archive.

    A duplicate is shown as the first notification where the API asked for has no word for it.
    """
    views, app = api_of(request).views, request.user.app
    wanted = id_in(notification_id)
    found = await views.detail(app, wanted) or await api_of(request).archive.detail(app, wanted)
    detail = reached(request.user, found)
    first = detail.record.duplicate_of
    if first is not None and words is not None and notification_word(words, detail.record.status) is None:
        detail = await views.detail(app, first) or detail
    return answer(200, whole(detail, words))


@get(
    "/v1/notifications",
    tags=["Notifications"],
    summary="List notifications",
    operation_id="listNotifications",
    opt=speaks({200: NotificationPage}, READS_OWN, codes=(_E.INVALID_CURSOR,)),
)
async def history(
    request: Call,
    user_id: UserGiven = None,
    status: StatusesGiven = None,
    cursor: CursorGiven = None,
    limit: Limit = 50,
    archived: ArchivedGiven = False,
) -> Response[bytes]:
    """List notifications, newest first: those of the store, or with `archived` those that left it for the archive."""
    query = HistoryQuery(
        app=request.user.app,
        user_id=request.user.user if user_id is None else own(request.user, UserId(user_id)),
        statuses=tuple(status or ()),
        before=None if cursor is None else cursors.notification(cursor),
        limit=limit,
    )
    if archived:
        page = await api_of(request).archive.history(query)
        following = None if page.before is None else cursors.of_notification(page.before)
        return answer(200, NotificationPage(tuple(map(summary, page.records)), following))
    records = await api_of(request).views.history(query)
    following = cursors.of_notification(records[-1].notification.id) if len(records) == limit else None
    return answer(200, NotificationPage(tuple(summary(record) for record in records), following))


@post(
    "/v1/notifications/{notification_id:str}/cancel",
    tags=["Notifications"],
    summary="Cancel a notification",
    operation_id="cancelNotification",
    opt=speaks(
        {200: Cancellation, 202: Cancellation},
        SENDS,
        meanings={200: "`cancelled`: nothing more is sent.", 202: "`cancelling`: no attempt after the present one."},
        codes=(_E.NOT_FOUND, _E.ALREADY_FINAL),
    ),
)
async def cancel(request: Call, notification_id: PathId) -> Response[bytes]:
    """Cancel the notification. 200 `cancelled`: nothing more is sent. 202 `cancelling`: the present attempt ends it."""
    wanted = id_in(notification_id)
    text = format_id(wanted)
    await record(request, Act.NOTIFICATION_CANCELLED, [text])
    withdrawal = await api_of(request).intake.cancel(request.user, wanted)
    match withdrawal:
        case Withdrawn(cancelled, handed_over):
            return answer(200, Cancellation(text, Cancelling.CANCELLED, cancelled, handed_over))
        case TooLate(handed_over):
            return answer(202, Cancellation(text, Cancelling.CANCELLING, 0, handed_over))
        case NotOpen(None):
            raise NotFound("no such notification")
        case NotOpen(NotificationStatus.CANCELLED):
            return answer(200, Cancellation(text, Cancelling.CANCELLED, 0, 0))
        case NotOpen(status):
            raise WaypostError(f"it is {status} already", ErrorCode.ALREADY_FINAL)
        case _:
            assert_never(withdrawal)


@post(
    "/v1/notifications/{notification_id:str}/replay",
    tags=["Notifications"],
    summary="Replay what failed of a notification",
    operation_id="replayNotification",
    opt=speaks(
        {202: Replayed},
        SENDS,
        body=ReplayOrder,
        body_required=False,
        example={"ttl": 3600},
        codes=(_E.NOT_FOUND, _E.NOT_REPLAYABLE, *INTAKE_CODES),
    ),
)
async def replay(request: Call, notification_id: PathId, body: RawBody) -> Response[bytes]:
    """Start a new round for the failed, expired and unknown deliveries."""
    order = decode(_replay_order, body) if body else ReplayOrder()
    wanted = id_in(notification_id)
    await record(request, Act.NOTIFICATION_REPLAYED, [format_id(wanted)])
    (result,) = await api_of(request).intake.replay(request.user, [wanted], order.ttl)
    require_replayable(result)
    return answer(202, Replayed(format_id(wanted)))


ROUTES = [submit, submit_many, look_up, history, cancel, replay]

"""``/api/notifications``: the user API, with which users create and read notifications of their own."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import QueryParameter, RawBody
from msgspec import Meta, Struct

from waypost.domain.content import Urgency
from waypost.domain.errors import ErrorCode, Fault, Forbidden, InvalidRequest, NotFound, WaypostError
from waypost.domain.ids import UserId, parse_id
from waypost.domain.scope import Scope
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import Identity, Moment, Seconds, Submission, TypeName
from waypost.domain.text import cleaned, cleaned_line
from waypost.domain.vocabulary import Vocabulary, meant_by, notification_word, readable_in
from waypost.entrypoints.access import READS_OWN, SENDS_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import ONE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Api, Call, api_of
from waypost.entrypoints.rest.compat.reader import ActingFor, reader
from waypost.entrypoints.rest.compat.user_rows import (
    DEFAULT_TYPE,
    Created,
    CreatedAnswer,
    NotificationAnswer,
    NotificationList,
    Pagination,
    Priority,
    Status,
    row,
    shown_at,
)
from waypost.entrypoints.rest.parameters import HeaderKey, PathId, id_in
from waypost.entrypoints.rest.submitting import accept
from waypost.ports.feed import Mark, Marking
from waypost.ports.views import NotificationDetail, PageQuery

MOST_AT_ONCE = 100
_USER_API = Vocabulary.USER_API
_E = ErrorCode


class SubmittedNotification(Struct, frozen=True):
    """A notification to submit; repeated content is sent again unless a window is given."""

    user_id: Identity
    title: Annotated[str, Meta(min_length=1, max_length=255)]
    body: Annotated[str, Meta(min_length=1)]
    data: Annotated[dict[str, Any], Meta(description="Any JSON object, passed to the app.")] = {}
    type: TypeName = DEFAULT_TYPE
    priority: Priority = Priority.NORMAL
    scheduled_for: Annotated[Moment | None, Meta(description="The earliest time of sending (RFC 3339).")] = None
    dedup_window: Annotated[
        Seconds, Meta(description="Seconds within which the same content is not sent again; 0 turns this off.")
    ] = 0


_notification = msgspec.json.Decoder(SubmittedNotification)


@post(
    "/api/notifications",
    tags=["Other APIs"],
    summary="Create a notification (user API)",
    operation_id="postNotification",
    status_code=201,
    opt=speaks(
        {201: CreatedAnswer, 200: CreatedAnswer},
        SENDS_OWN,
        body=SubmittedNotification,
        example={"user_id": "user-1", "title": "Sale", "body": "Only today.", "type": "promotion"},
        meanings={201: "Accepted: durable, and will be sent.", 200: "Said before: the first one."},
        codes=ONE_CODES,
        enveloped=True,
    ),
)
async def create(
    request: Call, body: RawBody, header_key: HeaderKey = None, acting_for: ActingFor = None
) -> Response[bytes]:
    """Create a notification; control characters are removed from `title` and `body`.

    An end user, or a backend acting for one, may notify only that user.
    """
    api = api_of(request)
    submission = _submission(decode(_notification, body))
    if submission.user_id != request.user.user and Scope.SEND_ANY_USER not in request.user.scopes:
        raise Forbidden(Scope.SEND_ANY_USER)
    if acting_for is not None and reader(request.user, acting_for) != submission.user_id:
        raise WaypostError("a user may create notifications for themselves alone", ErrorCode.FORBIDDEN)
    made = await accept(api, request.user, header_key, submission)
    status = Status(notification_word(_USER_API, made.status) or Status.PENDING)
    created = Created(made.id, status, shown_at(parse_id(made.id)))
    return answer(200 if made.deduplicated else 201, CreatedAnswer(created))


def _submission(said: SubmittedNotification) -> Submission:
    title, text = cleaned_line(said.title), cleaned(said.body)
    faults = [Fault(name, "holds nothing to show") for name, left in (("title", title), ("body", text)) if not left]
    if faults:
        raise InvalidRequest(tuple(faults))
    return Submission(
        user_id=said.user_id,
        title=title,
        body=text,
        data=said.data,
        type=said.type,
        urgency=Urgency(said.priority.value),
        scheduled_at=said.scheduled_for,
        dedup_window=said.dedup_window,
    )


@get(
    "/api/notifications",
    tags=["Other APIs"],
    summary="List a user's notifications (user API)",
    operation_id="listOwnNotifications",
    opt=speaks({200: NotificationList}, READS_OWN, enveloped=True),
)
async def own(
    request: Call,
    acting_for: ActingFor = None,
    page: Annotated[int, QueryParameter(ge=1, le=1_000_000)] = 1,
    limit: Annotated[int, QueryParameter(ge=1, le=1_000_000, description="More than 100 is 100.")] = 20,
    status: Annotated[Status | None, QueryParameter(description="Only in this one.", required=False)] = None,
    type: Annotated[
        str | None, QueryParameter(min_length=1, max_length=50, description="Only of this type.", required=False)
    ] = None,
) -> Response[bytes]:
    """List visible notifications that the user has not deleted, newest first."""
    at_once = min(limit, MOST_AT_ONCE)
    query = PageQuery(
        app=request.user.app,
        user_id=reader(request.user, acting_for),
        statuses=readable_in(_USER_API) if status is None else meant_by(_USER_API, status),
        types=() if type is None else (type, None) if type == DEFAULT_TYPE else (type,),
        offset=(page - 1) * at_once,
        limit=at_once,
    )
    if status is Status.FAILED:
        query = msgspec.structs.replace(query, statuses=(*query.statuses, NotificationStatus.PROCESSING), waiting=True)
    elif status is Status.PENDING:
        query = msgspec.structs.replace(query, waiting=False)
    found = await api_of(request).views.page(query)
    has_more = query.offset + len(found.details) < found.total
    pagination = Pagination(page, at_once, found.total, has_more)
    return answer(200, NotificationList(tuple(map(row, found.details)), pagination))


@get(
    "/api/notifications/{notification_id:str}",
    tags=["Other APIs"],
    summary="Look up a user's notification (user API)",
    operation_id="getOwnNotification",
    opt=speaks({200: NotificationAnswer}, READS_OWN, codes=(_E.NOT_FOUND,), enveloped=True),
)
async def look_up_own(request: Call, notification_id: PathId, acting_for: ActingFor = None) -> Response[bytes]:
    """Answer 404 for another user's notification and for a deleted one."""
    return answer(200, NotificationAnswer(row(await _own(request, notification_id, reader(request.user, acting_for)))))


@patch(
    "/api/notifications/{notification_id:str}/read",
    tags=["Other APIs"],
    summary="Mark a notification as read (user API)",
    operation_id="readOwnNotification",
    opt=speaks({200: NotificationAnswer}, READS_OWN, codes=(_E.NOT_FOUND, _E.SHUTTING_DOWN), enveloped=True),
)
async def mark_read(request: Call, notification_id: PathId, acting_for: ActingFor = None) -> Response[bytes]:
    """Set `read_at`; a repeated call leaves it unchanged."""
    api, user = api_of(request), reader(request.user, acting_for)
    detail = await _own(request, notification_id, user)
    await _mark(api, detail, Mark.READ)
    return answer(200, NotificationAnswer(row(await _own(request, notification_id, user))))


@patch(
    "/api/notifications/{notification_id:str}/unread",
    tags=["Other APIs"],
    summary="Mark a notification as not read",
    operation_id="unreadOwnNotification",
    opt=speaks({200: NotificationAnswer}, READS_OWN, codes=(_E.NOT_FOUND, _E.SHUTTING_DOWN), enveloped=True),
)
async def mark_unread(request: Call, notification_id: PathId, acting_for: ActingFor = None) -> Response[bytes]:
    """Set `read_at` to null."""
    api, user = api_of(request), reader(request.user, acting_for)
    detail = await _own(request, notification_id, user)
    await _mark(api, detail, Mark.UNREAD)
    return answer(200, NotificationAnswer(row(await _own(request, notification_id, user))))


@delete(
    "/api/notifications/{notification_id:str}",
    tags=["Other APIs"],
    summary="Delete a notification from a user's history (user API)",
    operation_id="deleteOwnNotification",
    status_code=200,
    opt=speaks({200: NotificationAnswer}, READS_OWN, codes=(_E.NOT_FOUND, _E.SHUTTING_DOWN), enveloped=True),
)
async def hide(request: Call, notification_id: PathId, acting_for: ActingFor = None) -> Response[bytes]:
    """Hide it from its user; under `/v1` it stays as long as any other."""
    api = api_of(request)
    detail = await _own(request, notification_id, reader(request.user, acting_for))
    await _mark(api, detail, Mark.DELETED)
    return answer(200, NotificationAnswer(row(detail)))


async def _mark(api: Api, detail: NotificationDetail, mark: Mark) -> None:
    """Mark a notification that is known to be its reader's."""
    notification = detail.record.notification
    ids = (notification.id,)
    await api.mark(Marking(notification.app, notification.user_id, mark, api.clock.now(), ids, vouched=True))


async def _own(request: Call, path_part: str, user: UserId) -> NotificationDetail:
    """Find a notification that *user* sees as theirs; a duplicate's record stands for the first."""
    views, app = api_of(request).views, request.user.app
    detail = await views.detail(app, id_in(path_part))
    if detail is not None and detail.record.duplicate_of is not None:
        detail = await views.detail(app, detail.record.duplicate_of)
    if detail is None or detail.record.notification.user_id != user or detail.marked.hidden_at is not None:
        raise NotFound("no such notification")
    return detail


ROUTES = [create, own, look_up_own, mark_read, mark_unread, hide]

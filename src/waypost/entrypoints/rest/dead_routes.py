"""Routes of dead letters: list and replay."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.openapi.spec.enums import OpenAPIFormat
from litestar.params import QueryParameter, RawBody
from msgspec import Struct

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.domain.ids import NotificationId, UserId, format_id, parse_id
from waypost.domain.submission import Moment
from waypost.domain.text import LONGEST, NO_NUL
from waypost.domain.time import from_datetime
from waypost.entrypoints.access import ADMINISTERS, READS
from waypost.entrypoints.decoding import checked, decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.bodies import DeadFilter, DeadReplayOrder
from waypost.entrypoints.rest.parameters import CursorGiven, Limit, UserGiven
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.replaying import ReplayResult, replay_result
from waypost.entrypoints.rest.views import Cursor, DeadPage, dead_letter
from waypost.ports.audit import Act
from waypost.ports.views import DeadLetter, DeadQuery

_order = msgspec.json.Decoder(DeadReplayOrder)


CodeGiven = Annotated[
    str | None,
    QueryParameter(
        max_length=LONGEST, min_length=1, pattern=NO_NUL, description="The provider's own error code.", required=False
    ),
]
SinceGiven = Annotated[
    str | None,
    QueryParameter(format=OpenAPIFormat.DATE_TIME, description="Resolved at or after (RFC 3339).", required=False),
]


class DeadReplayed(Struct, frozen=True):
    """The notifications that started a new round."""

    replayed: int
    results: tuple[ReplayResult, ...]
    next: Cursor


@get(
    "/v1/dead",
    tags=["Dead letters"],
    summary="List dead letters",
    operation_id="listDeadLetters",
    opt=speaks({200: DeadPage}, READS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def dead(
    request: Call,
    code: CodeGiven = None,
    user_id: UserGiven = None,
    since: SinceGiven = None,
    cursor: CursorGiven = None,
    limit: Limit = 50,
) -> Response[bytes]:
    """List deliveries that failed for good, newest first."""
    moment = None if since is None else checked(Moment, since, "since")
    letters, following = await _page(request, DeadFilter(code, user_id, moment), cursor, limit)
    return answer(200, DeadPage(tuple(dead_letter(letter) for letter in letters), following))


@post(
    "/v1/dead/replay",
    tags=["Dead letters"],
    summary="Replay dead letters",
    operation_id="replayDeadLetters",
    opt=speaks(
        {202: DeadReplayed, 200: DeadReplayed},
        ADMINISTERS,
        body=DeadReplayOrder,
        example={"filter": {"code": "BadDeviceToken"}},
        meanings={202: "Some rounds began.", 200: "None began."},
        codes=(ErrorCode.INVALID_CURSOR,),
    ),
)
async def replay_dead(request: Call, body: RawBody) -> Response[bytes]:
    """Replay the named notifications, or one page of those that match a filter; repeat with `next` until it is null.

    202 if any new round began, otherwise 200.
    """
    order = decode(_order, body)
    ids, following = await _ordered(request, order)
    await record(request, Act.DEAD_REPLAYED, map(format_id, ids))
    answers = await api_of(request).intake.replay(request.user, ids, order.ttl) if ids else []
    results = tuple(replay_result(each, result) for each, result in zip(ids, answers, strict=True))
    begun = sum(1 for result in results if result.error is None)
    return answer(202 if begun else 200, DeadReplayed(begun, results, following))


async def _ordered(request: Call, order: DeadReplayOrder) -> tuple[list[NotificationId], str | None]:
    if (order.ids is None) == (order.filter is None):
        raise InvalidRequest((Fault("", "give either ids or a filter"),))
    if order.ids is not None:
        return list(dict.fromkeys(parse_id(each) for each in order.ids)), None
    letters, following = await _page(request, order.filter or DeadFilter(), order.cursor, order.limit)
    return list(dict.fromkeys(letter.record.notification.id for letter in letters)), following


async def _page(
    request: Call, wanted: DeadFilter, cursor: str | None, limit: int
) -> tuple[list[DeadLetter], str | None]:
    query = DeadQuery(
        app=request.user.app,
        code=wanted.code,
        user_id=None if wanted.user_id is None else UserId(wanted.user_id),
        since=None if wanted.since is None else from_datetime(wanted.since),
        before=None if cursor is None else cursors.target(cursor),
        limit=limit,
    )
    letters = await api_of(request).views.dead(query)
    if len(letters) < limit:
        return letters, None
    return letters, cursors.of_target(letters[-1].receipt.notification_id, letters[-1].receipt.n)


ROUTES = [dead, replay_dead]

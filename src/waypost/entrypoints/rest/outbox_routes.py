"""The route of the outbox: what is published to topics that others read, and how far it has come."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get
from litestar.params import QueryParameter

from waypost.domain.errors import ErrorCode
from waypost.entrypoints.access import ADMINISTERS
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import CursorGiven, Limit
from waypost.entrypoints.rest.views import OutboxPage, outbox_entry
from waypost.ports.outbox import EntryState, OutboxQuery

StatusGiven = Annotated[
    list[EntryState] | None, QueryParameter(description="Only with these statuses; may be repeated.", required=False)
]


@get(
    "/v1/outbox",
    tags=["Operation"],
    summary="List the outbox",
    operation_id="listOutbox",
    opt=speaks({200: OutboxPage}, ADMINISTERS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def outbox(
    request: Call, status: StatusGiven = None, cursor: CursorGiven = None, limit: Limit = 50
) -> Response[bytes]:
    """List what is published to topics that others read (`outbox.to`), newest first; else empty."""
    view, app = api_of(request).outbox, request.user.app
    before = None if cursor is None else cursors.number(cursor)
    counts = {word.value: count for word, count in (await view.counts(app)).items()}
    entries = await view.entries(OutboxQuery(app, tuple(status or ()), before, limit))  # never behind what was counted
    following = cursors.of_number(entries[-1].seq) if len(entries) == limit else None
    return answer(200, OutboxPage(tuple(map(outbox_entry, entries)), counts, following))


ROUTES = [outbox]

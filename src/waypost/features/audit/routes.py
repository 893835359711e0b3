"""The route of the record of who ordered what."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get
from litestar.params import QueryParameter
from msgspec import Meta, Struct

from waypost.domain.errors import ErrorCode
from waypost.domain.text import NO_NUL
from waypost.domain.time import isoformat
from waypost.entrypoints.access import ADMINISTERS
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import CursorGiven, Limit
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.ports.audit import Act, AuditEntry, AuditQuery

ActGiven = Annotated[Act | None, QueryParameter(description="Only these.", required=False)]
ByGiven = Annotated[
    str | None,
    QueryParameter(
        max_length=140, min_length=1, pattern=NO_NUL, description="Only orders of this caller.", required=False
    ),
]


class AuditEntryView(Struct, frozen=True):
    """One order."""

    at: Timestamp
    by: Annotated[str, Meta(description="The caller; `cli:` and a system's user where it was given on the machine.")]
    origin: Annotated[str, Meta(description="The caller's address, or the machine's name.")]
    act: Act
    subject: Annotated[str, Meta(description="The id, or the prefix of the key, that it was about.")]


class AuditPage(Struct, frozen=True):
    """Orders, newest first."""

    items: tuple[AuditEntryView, ...]
    next: Cursor


@get(
    "/v1/audit",
    tags=["Operation"],
    summary="List audit entries",
    operation_id="listAudit",
    opt=speaks({200: AuditPage}, ADMINISTERS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def audit(
    request: Call, act: ActGiven = None, by: ByGiven = None, cursor: CursorGiven = None, limit: Limit = 50
) -> Response[bytes]:
    """List administrative orders, newest first: keys created and revoked, notifications cancelled and
    replayed, dead letters replayed, dedup keys forgotten, jobs paused or ended, users erased.
    """
    before = None if cursor is None else cursors.number(cursor)
    entries = await api_of(request).audit.page(AuditQuery(request.user.app, act, by, before, limit))
    following = cursors.of_number(entries[-1].seq) if len(entries) == limit else None
    return answer(200, AuditPage(tuple(map(_view, entries)), following))


def _view(entry: AuditEntry) -> AuditEntryView:
    one = entry.ordered
    return AuditEntryView(isoformat(one.at), one.by, one.origin, one.act, one.subject)


ROUTES = [audit]

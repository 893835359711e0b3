"""Routes of the feed: a user's entries, counts, and what the user does with them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, get, post
from litestar.params import QueryParameter, RawBody
from msgspec import Meta, Struct

from waypost.domain.content import Action, Urgency
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import DeviceId, UserId, format_id, parse_id
from waypost.domain.submission import NO_CONTROLS, Identity
from waypost.domain.time import isoformat
from waypost.entrypoints.access import READS_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.bodies import IdText
from waypost.entrypoints.rest.parameters import CursorGiven, Limit, PathIdentity, user_in
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.entrypoints.submitting import Id
from waypost.features.parts import Ground
from waypost.pipeline.feed import worded
from waypost.ports.feed import Entry, FeedCounts, FeedQuery, Folder, Mark, Marking

IDS_LIMIT = 500
"""Entries of one request."""


class EntryView(Struct, frozen=True):
    """An entry: what the app shows, and what its user did with it."""

    id: Id
    type: str | None
    urgency: Urgency
    title: str | None
    subtitle: str | None
    body: str | None
    data: dict[str, Any]
    image: str | None
    icon: str | None
    link: str | None
    actions: tuple[Action, ...]
    category: str | None
    thread: str | None
    tags: tuple[str, ...]
    shown_at: Annotated[Timestamp, Meta(description="When it came into the feed.")]
    seen_at: Timestamp | None
    read_at: Timestamp | None
    archived_at: Timestamp | None


class CountsView(Struct, frozen=True):
    """The number of entries of the inbox that are not read, and not seen."""

    unread: int
    unseen: int


class FeedView(CountsView, frozen=True):
    """A page of a feed, newest first, with the counts of all of it."""

    items: tuple[EntryView, ...]
    next: Cursor


class SubmittedMarks(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A user's mark on the entries `ids`, or on all of the inbox up to the entry `until`."""

    mark: Mark
    ids: Annotated[tuple[IdText, ...], Meta(max_length=IDS_LIMIT)] = ()
    until: IdText | None = None
    device_id: Annotated[
        Identity | None, Meta(description="The device that it came from, which needs no push to hear of it.")
    ] = None


class MarkedView(CountsView, frozen=True):
    """The number of entries that changed, and the counts afterwards."""

    changed: int


_marks = msgspec.json.Decoder(SubmittedMarks)

FolderGiven = Annotated[Folder, QueryParameter(description="The part of the feed.")]
TypeGiven = Annotated[
    str | None,
    QueryParameter(
        min_length=1, max_length=50, pattern=NO_CONTROLS, description="Only entries of this type.", required=False
    ),
]
TagGiven = Annotated[
    str | None,
    QueryParameter(
        min_length=1, max_length=50, pattern=NO_CONTROLS, description="Only entries with this tag.", required=False
    ),
]


@get(
    "/v1/users/{user_id:str}/feed",
    tags=["Feed"],
    summary="List a user's feed",
    operation_id="getFeed",
    opt=speaks({200: FeedView}, READS_OWN),
)
async def feed(
    request: Call,
    user_id: PathIdentity,
    folder: FolderGiven = Folder.INBOX,
    type: TypeGiven = None,
    tag: TagGiven = None,
    limit: Limit = 50,
    cursor: CursorGiven = None,
) -> Response[bytes]:
    """List what was sent to the channel `inapp`, newest first; empty for an unknown user."""
    ground, user = _ground(request), user_in(request.user, user_id)
    before = None if cursor is None else cursors.place(cursor)
    query = FeedQuery(request.user.app, user, folder, () if type is None else (type,), before, limit, tag)
    reads = ground.pages or ground.store.feed
    found = await reads.page(query)
    entries = await worded(found.entries, api_of(request).say)
    counts = await _counts(request, user)
    following = None if found.before is None else cursors.of_place(found.before)
    return answer(200, FeedView(counts.unread, counts.unseen, tuple(map(view, entries)), following))


@get(
    "/v1/users/{user_id:str}/feed/counts",
    tags=["Feed"],
    summary="Count what is new in a user's feed",
    operation_id="getFeedCounts",
    opt=speaks({200: CountsView}, READS_OWN),
)
async def counts(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Count the entries of the inbox that are not read, and those that are not seen."""
    found = await _counts(request, user_in(request.user, user_id))
    return answer(200, CountsView(found.unread, found.unseen))


@post(
    "/v1/users/{user_id:str}/feed/marks",
    tags=["Feed"],
    summary="Mark entries of a user's feed",
    operation_id="postFeedMarks",
    status_code=200,
    opt=speaks(
        {200: MarkedView},
        READS_OWN,
        body=SubmittedMarks,
        example={"mark": "read", "ids": ["019c1234-5678-7abc-8def-0123456789ab"]},
        codes=WRITE_CODES,
    ),
)
async def post_marks(request: Call, user_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Mark entries as seen, read, unread, archived, unarchived, deleted or restored; a repeat changes nothing.

    What is read counts as `opened` in its receipt, what is seen as `delivered`.
    """
    said = decode(_marks, body)
    if bool(said.ids) == (said.until is not None):
        raise InvalidRequest((Fault("ids", "give ids, or until"),))
    api, user = api_of(request), user_in(request.user, user_id)
    until = None if said.until is None else parse_id(said.until)
    device = None if said.device_id is None else DeviceId(said.device_id)
    marking = Marking(
        request.user.app, user, said.mark, api.clock.now(), tuple(map(parse_id, said.ids)), until, device_id=device
    )
    read = await api.mark(marking)
    return answer(200, MarkedView(read.counts.unread, read.counts.unseen, len(read.changed)))


def _ground(request: Call) -> Ground:
    ground: Ground = ground_of(request, "feed")
    return ground


async def _counts(request: Call, user: UserId) -> FeedCounts:
    ground = _ground(request)
    if ground.pages is not None:
        return await ground.pages.counts(request.user.app, user)
    (found,) = await ground.store.feed.counts([(request.user.app, user)])
    return found


def view(entry: Entry) -> EntryView:
    notification = entry.record.notification
    content = notification.content
    times = (None if at is None else isoformat(at) for at in (entry.seen_at, entry.read_at, entry.archived_at))
    return EntryView(
        format_id(notification.id),
        content.type,
        notification.urgency,
        content.title,
        content.subtitle,
        content.body,
        content.data,
        content.image,
        content.icon,
        content.link,
        content.actions,
        content.category,
        content.thread,
        content.tags,
        isoformat(entry.shown_at),
        *times,
    )


ROUTES = [feed, counts, post_marks]

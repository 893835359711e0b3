"""Routes of segments: name a filter, see whom it chooses."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import PathParameter, RawBody

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound
from waypost.domain.scope import Scope
from waypost.domain.segment import Filter, SegmentName, filter_faults, is_in
from waypost.entrypoints.access import Access
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import Limit, LongCursor, text_in
from waypost.entrypoints.rest.recording import record
from waypost.features.segments.views import Preview, SegmentPage, SegmentView, SubmittedSegment, segment_view
from waypost.ports.audit import Act
from waypost.ports.segments import Segments

FEATURE: Final = "segments"
KEEPS_SEGMENTS: Final = Access(Scope.DEVICES)
"""Who says what users there are says whom a segment is for."""
EXAMPLES: Final = 10
PathSegment = Annotated[str, PathParameter(description="The segment's name.")]
_EXAMPLE: Final = {
    "filter": {
        "and": [
            {"attribute": {"name": "plan", "is": "premium"}},
            {"locale": ["de"]},
            {"not": {"event": {"name": "opened", "within_days": 7}}},
        ]
    }
}

_submitted = msgspec.json.Decoder(SubmittedSegment)


@put(
    "/v1/segments/{segment:str}",
    tags=["Segments"],
    summary="Put a segment",
    operation_id="putSegment",
    opt=speaks(
        {200: SegmentView, 201: SegmentView},
        KEEPS_SEGMENTS,
        body=SubmittedSegment,
        example=_EXAMPLE,
        meanings={200: "Replaced.", 201: "New."},
        codes=WRITE_CODES,
    ),
)
async def put_segment(request: Call, segment: PathSegment, body: RawBody) -> Response[bytes]:
    """Give a filter a name. Bulk jobs that began with it keep the filter as it was."""
    said, name, app = _filter_in(request, body), _segment_in(segment), request.user.app
    await record(request, Act.SEGMENT_PUT, [name])
    is_new = await _segments(request).put(app, name, said, api_of(request).clock.now())
    return answer(201 if is_new else 200, await _known(request, name))


@get(
    "/v1/segments/{segment:str}",
    tags=["Segments"],
    summary="Get a segment",
    operation_id="getSegment",
    opt=speaks({200: SegmentView}, KEEPS_SEGMENTS, codes=(ErrorCode.NOT_FOUND,)),
)
async def get_segment(request: Call, segment: PathSegment) -> Response[bytes]:
    """Return a segment's filter."""
    return answer(200, await _known(request, _segment_in(segment)))


@get(
    "/v1/segments",
    tags=["Segments"],
    summary="List segments",
    operation_id="listSegments",
    opt=speaks({200: SegmentPage}, KEEPS_SEGMENTS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List segments by name."""
    found = await _segments(request).page(request.user.app, cursors.name(cursor), limit)
    following = cursors.of_name([each.name for each in found], limit)
    return answer(200, SegmentPage(tuple(map(segment_view, found)), following))


@delete(
    "/v1/segments/{segment:str}",
    tags=["Segments"],
    summary="Delete a segment",
    operation_id="deleteSegment",
    status_code=204,
    opt=speaks({204: None}, KEEPS_SEGMENTS, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def remove_segment(request: Call, segment: PathSegment) -> None:
    """Forget a filter's name. Bulk jobs that began with it go on."""
    name = _segment_in(segment)
    await record(request, Act.SEGMENT_REMOVED, [name])
    if not await _segments(request).remove(request.user.app, name):
        raise NotFound("no such segment")


@post(
    "/v1/segments/preview",
    tags=["Segments"],
    summary="Count a filter's users",
    operation_id="previewSegment",
    status_code=200,
    opt=speaks({200: Preview}, KEEPS_SEGMENTS, body=SubmittedSegment, example=_EXAMPLE),
)
async def preview(request: Call, body: RawBody) -> Response[bytes]:
    """Count whom a filter chooses now, with ten examples. All users may have to be read: seconds for millions."""
    said, now = _filter_in(request, body), api_of(request).clock.now()
    counted = await _segments(request).count(request.user.app, said, now, EXAMPLES)
    return answer(200, Preview(counted.count, counted.examples, counted.looked_at))


def _filter_in(request: Call, body: bytes) -> Filter:
    said = decode(_submitted, body).filter
    faults = filter_faults(said, "filter")
    if not faults and is_in(said, "device") and ground_of(request, FEATURE).config.devices != "store":
        faults = [Fault("filter", "the devices are kept in another database: ask for none")]
    if faults:
        raise InvalidRequest(tuple(faults))
    return said


def _segment_in(path_part: str) -> str:
    return text_in(path_part, "segment", SegmentName)


def _segments(request: Call) -> Segments:
    segments: Segments = ground_of(request, FEATURE).store.segments
    return segments


async def _known(request: Call, name: str) -> SegmentView:
    found = await _segments(request).find(request.user.app, name)
    if found is None:
        raise NotFound("no such segment")
    return segment_view(found)


ROUTES = [put_segment, get_segment, listed, remove_segment, preview]

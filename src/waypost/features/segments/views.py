"""The shapes of segments in the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.domain.segment import Filter, SegmentName
from waypost.domain.time import isoformat
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.ports.segments import Segment


class SubmittedSegment(Struct, frozen=True, forbid_unknown_fields=True):
    """A filter of users."""

    filter: Filter


class SegmentView(Struct, frozen=True):
    """A segment."""

    name: SegmentName
    filter: Filter
    changed_at: Annotated[Timestamp, Meta(description="When its filter was put.")]


class SegmentPage(Struct, frozen=True):
    """Segments by name."""

    items: tuple[SegmentView, ...]
    next: Cursor


class Preview(Struct, frozen=True):
    """The number of users whom a filter chooses now."""

    count: Annotated[int, Meta(description="How many users it is.")]
    examples: Annotated[tuple[str, ...], Meta(description="The first ten of them, by id.")]
    looked_at: Annotated[int, Meta(description="The users who were read to find them: what a walk costs.")]


def segment_view(segment: Segment) -> SegmentView:
    """Describe a segment."""
    return SegmentView(segment.name, segment.filter, isoformat(segment.changed_at))

"""Schedules as the API takes and shows them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from waypost.domain.bulk_submission import BulkSubmission
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.local_time import ChosenZone, LocalTime, ZoneSource
from waypost.domain.schedule import Schedule, ScheduleStatus, upcoming
from waypost.domain.submission import Line, Submission
from waypost.domain.text import NO_NUL, Text
from waypost.domain.time import Instant, isoformat
from waypost.entrypoints.rest.parameters import NameText
from waypost.entrypoints.rest.views import Timestamp
from waypost.entrypoints.submitting import Id

SHOWN: int = 3
"""The next times that a schedule is shown with."""


class SubmittedSchedule(Struct, frozen=True, forbid_unknown_fields=True):
    """A submission (`notification` or `bulk`), and when it is made."""

    starts: Annotated[LocalTime, Meta(description="The first time, and the time of day of all others; local.")]
    rule: Annotated[
        Annotated[str, Meta(max_length=500, pattern=NO_NUL)] | None,
        Meta(description="An `RRULE` (RFC 5545). Left out: once.", examples=["FREQ=WEEKLY;BYDAY=MO"]),
    ] = None
    time_zone: Annotated[
        Text | None, Meta(description="The zone of all its times. Left out: the user's, else the app's.")
    ] = None
    without: Annotated[
        tuple[LocalTime, ...], Meta(max_length=500, description="Times of the rule that are left out (`EXDATE`).")
    ] = ()
    also: Annotated[tuple[LocalTime, ...], Meta(max_length=500, description="Times beside the rule (`RDATE`).")] = ()
    notification: Annotated[
        Submission | None, Meta(description="As for `POST /v1/notifications`, without a time and a key.")
    ] = None
    bulk: Annotated[BulkSubmission | None, Meta(description="As for `POST /v1/bulk`, to devices of the registry.")] = (
        None
    )


class MovedOccurrence(Struct, frozen=True, forbid_unknown_fields=True):
    """Another time for one occurrence."""

    to: Annotated[LocalTime, Meta(description="The new local time.")]


class Occurrence(Struct, frozen=True):
    """A time of a schedule."""

    local: Annotated[LocalTime, Meta(description="The local time, by which one occurrence is named.")]
    at: Timestamp


class LastOccurrence(Struct, frozen=True):
    """The last time of a schedule, and what became of it."""

    local: Annotated[LocalTime, Meta(description="The local time.")]
    at: Annotated[Timestamp, Meta(description="When it was submitted.")]
    id: Annotated[Id | None, Meta(description="The notification or job; null if it was refused.")]
    error: Annotated[Line | None, Meta(description="Why it was refused.")]


class ScheduleView(Struct, frozen=True):
    """A schedule and how it stands."""

    name: NameText
    status: ScheduleStatus
    starts: Annotated[LocalTime, Meta(description="The first time, and the time of day of all others; local.")]
    rule: Annotated[str | None, Meta(description="The `RRULE`, with a local `UNTIL`; null is once.")]
    time_zone: Annotated[str, Meta(description="The zone in which its times are meant now.")]
    time_zone_of: Annotated[ZoneSource, Meta(description="Whose zone that is.")]
    without: Annotated[tuple[LocalTime, ...], Meta(description="Times of the rule that are left out.")]
    also: Annotated[tuple[LocalTime, ...], Meta(description="Times beside the rule.")]
    next: Annotated[tuple[Occurrence, ...], Meta(description="The next times; of a paused one those that would come.")]
    last: Annotated[LastOccurrence | None, Meta(description="The last time, and what became of it.")]
    sent: Annotated[int, Meta(description="Times that were submitted.")]
    missed: Annotated[int, Meta(description="Times that nobody was there for.")]
    notification: Annotated[Submission | None, Meta(description="What is submitted each time.")]
    bulk: Annotated[BulkSubmission | None, Meta(description="The bulk job that is made each time.")]


class SchedulePage(Struct, frozen=True):
    """Schedules by name."""

    items: tuple[ScheduleView, ...]
    next: Annotated[str | None, Meta(description="The `cursor` of the next page; null on the last one.")]


class OccurrenceList(Struct, frozen=True):
    """The next times of a schedule."""

    items: tuple[Occurrence, ...]


def view(schedule: Schedule, zone: ChosenZone, now: Instant, n: int = SHOWN) -> ScheduleView:
    """Describe a schedule with its next *n* times."""
    told, bulk, recurrence = schedule.notification, schedule.bulk, schedule.recurrence
    return ScheduleView(
        schedule.name,
        schedule.status,
        recurrence.starts,
        recurrence.rule,
        zone.name,
        zone.source,
        recurrence.without,
        recurrence.also,
        occurrences(schedule, zone, now, n),
        _last(schedule),
        schedule.sent,
        schedule.missed,
        None if told is None else msgspec.json.decode(told, type=Submission),
        None if bulk is None else msgspec.json.decode(bulk, type=BulkSubmission),
    )


def occurrences(schedule: Schedule, zone: ChosenZone, now: Instant, n: int) -> tuple[Occurrence, ...]:
    """List the next *n* times."""
    if schedule.status is ScheduleStatus.ENDED:
        return ()
    return tuple(Occurrence(local, isoformat(at)) for local, at in upcoming(schedule, zone, now, n))


def _last(schedule: Schedule) -> LastOccurrence | None:
    last = schedule.last
    if last is None:
        return None
    made = None if last.id is None else format_id(NotificationId(last.id))
    return LastOccurrence(last.local, isoformat(last.at), made, last.error)

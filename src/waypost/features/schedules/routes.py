"""Routes of schedules: put one, look at it, hold it, end it, and change one of its times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Final

import msgspec
from litestar import Response, delete, get, patch, post, put
from litestar.params import QueryParameter, RawBody
from msgspec.structs import replace

from waypost.domain.errors import ErrorCode, InvalidRequest, NotFound, Unavailable, WaypostError
from waypost.domain.local_time import ChosenZone, LocalTime, local_at, local_faults, parse_local
from waypost.domain.recurrence import is_one, without
from waypost.domain.schedule import Schedule, ScheduleStatus, awaiting, paused
from waypost.entrypoints.access import READS, SENDS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import INTAKE_CODES, WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import (
    Limit,
    LongCursor,
    NameText,
    PathOccurrence,
    PathSchedule,
    text_in,
)
from waypost.entrypoints.rest.recording import record
from waypost.features.parts import Ground
from waypost.features.schedules.making import made_of, named_by
from waypost.features.schedules.sending import zones_for
from waypost.features.schedules.views import (
    MovedOccurrence,
    OccurrenceList,
    SchedulePage,
    ScheduleView,
    SubmittedSchedule,
    occurrences,
    view,
)
from waypost.ports.audit import Act
from waypost.stores.sql.schedules import SqlSchedules

FEATURE: Final = "schedules"
_E = ErrorCode
_CHANGES: Final = (_E.NOT_FOUND, _E.WRONG_STATE, *WRITE_CODES)
_TRIES: Final = 5
"""The most attempts at a change: somebody else, such as the duty, may write the same schedule meanwhile."""

_said = msgspec.json.Decoder(SubmittedSchedule)
_moved = msgspec.json.Decoder(MovedOccurrence)
Count = Annotated[int, QueryParameter(ge=1, le=100, description="The number of times to list.")]


@put(
    "/v1/schedules/{schedule:str}",
    tags=["Schedules"],
    summary="Put a schedule",
    operation_id="putSchedule",
    opt=speaks(
        {200: ScheduleView, 201: ScheduleView},
        SENDS,
        body=SubmittedSchedule,
        example={
            "starts": "2026-12-01T09:00",
            "rule": "FREQ=WEEKLY;BYDAY=MO",
            "notification": {"user_id": "user-1", "title": "A new week"},
        },
        meanings={200: "Changed.", 201: "New."},
        codes=(_E.WRONG_STATE, *INTAKE_CODES),
    ),
)
async def put_schedule(request: Call, schedule: PathSchedule, body: RawBody) -> Response[bytes]:
    """Submit a notification or a bulk job again and again, from its next time on; what was submitted stays submitted.

    The times are local: nine o'clock stays nine o'clock over clock changes.
    """
    name, said, api = text_in(schedule, "schedule", NameText), decode(_said, body), api_of(request)
    named = await named_by(said, request.user, api.intake, api.bulk)
    made = await asyncio.to_thread(made_of, name, said, request.user, api.intake, api.clock.now(), named)
    await record(request, Act.SCHEDULE_PUT, [name])
    zone = await _zone(request, made)
    if await _schedules(request).add(awaiting(made, zone, api.clock.now()), api.clock.now()):
        return await _shown(request, name, 201)

    def changed(before: Schedule, zone: ChosenZone) -> Schedule:
        kept = {each: getattr(before, each) for each in ("created_at", "claimed", "last", "sent", "missed")}
        now, after = api.clock.now(), replace(made, **kept)
        if before.status is ScheduleStatus.PAUSED:
            return replace(after, status=before.status, following=before.following, due_at=before.due_at)
        return _as_claimed(before, awaiting(after, zone, now))

    await _change(request, name, changed, like=made)
    return await _shown(request, name)


@get(
    "/v1/schedules",
    tags=["Schedules"],
    summary="List schedules",
    operation_id="listSchedules",
    opt=speaks({200: SchedulePage}, READS, codes=(_E.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List schedules by name; those that ended are kept as long as notifications are."""
    found = await _schedules(request).page(request.user.app, cursors.name(cursor), limit)
    zones, now = await zones_for(_ground(request), found), api_of(request).clock.now()
    items = tuple(view(each, zones[each.app, each.name], now) for each in found)
    return answer(200, SchedulePage(items, cursors.of_name([each.name for each in found], limit)))


@get(
    "/v1/schedules/{schedule:str}",
    tags=["Schedules"],
    summary="Look up a schedule",
    operation_id="getSchedule",
    opt=speaks({200: ScheduleView}, READS, codes=(_E.NOT_FOUND,)),
)
async def look_up(request: Call, schedule: PathSchedule) -> Response[bytes]:
    """Return the schedule, its next times, and what became of the last one."""
    return await _shown(request, text_in(schedule, "schedule", NameText))


@get(
    "/v1/schedules/{schedule:str}/occurrences",
    tags=["Schedules"],
    summary="List the next times of a schedule",
    operation_id="listOccurrences",
    opt=speaks({200: OccurrenceList}, READS, codes=(_E.NOT_FOUND,)),
)
async def next_times(request: Call, schedule: PathSchedule, limit: Count = 10) -> Response[bytes]:
    """List the next times, local and as instants."""
    found = await _found(request, text_in(schedule, "schedule", NameText))
    now = api_of(request).clock.now()
    return answer(200, OccurrenceList(occurrences(found, await _zone(request, found), now, limit)))


@delete(
    "/v1/schedules/{schedule:str}",
    tags=["Schedules"],
    summary="Remove a schedule",
    operation_id="deleteSchedule",
    status_code=204,
    opt=speaks({204: None}, SENDS, codes=(_E.NOT_FOUND, *WRITE_CODES)),
)
async def remove(request: Call, schedule: PathSchedule) -> None:
    """Submit nothing more. What was submitted already can be cancelled by its id."""
    name = text_in(schedule, "schedule", NameText)
    await record(request, Act.SCHEDULE_REMOVED, [name])
    if not await _schedules(request).remove(request.user.app, name):
        raise NotFound("no such schedule")


@post(
    "/v1/schedules/{schedule:str}/pause",
    tags=["Schedules"],
    summary="Pause a schedule",
    operation_id="pauseSchedule",
    status_code=200,
    opt=speaks({200: ScheduleView}, SENDS, codes=_CHANGES),
)
async def pause(request: Call, schedule: PathSchedule) -> Response[bytes]:
    """Submit nothing until it is resumed; the times in between are not made up for."""
    return await _ordered(request, schedule, Act.SCHEDULE_PAUSED, lambda before, _: paused(_open(before)))


@post(
    "/v1/schedules/{schedule:str}/resume",
    tags=["Schedules"],
    summary="Resume a schedule",
    operation_id="resumeSchedule",
    status_code=200,
    opt=speaks({200: ScheduleView}, SENDS, codes=_CHANGES),
)
async def resume(request: Call, schedule: PathSchedule) -> Response[bytes]:
    """Go on with the next time from now on."""

    def resumed(before: Schedule, zone: ChosenZone) -> Schedule:
        if _open(before).status is ScheduleStatus.ACTIVE:
            return before
        return _as_claimed(before, awaiting(before, zone, api_of(request).clock.now()))

    return await _ordered(request, schedule, Act.SCHEDULE_RESUMED, resumed)


@delete(
    "/v1/schedules/{schedule:str}/occurrences/{occurrence:str}",
    tags=["Schedules"],
    summary="Leave out one time of a schedule",
    operation_id="deleteOccurrence",
    status_code=200,
    opt=speaks({200: ScheduleView}, SENDS, codes=_CHANGES),
)
async def leave_out(request: Call, schedule: PathSchedule, occurrence: PathOccurrence) -> Response[bytes]:
    """Leave out one time, named by its local time. Once it is being submitted that is too late: 409 `wrong_state`."""
    return await _replaced(request, schedule, occurrence, None)


@patch(
    "/v1/schedules/{schedule:str}/occurrences/{occurrence:str}",
    tags=["Schedules"],
    summary="Move one time of a schedule",
    operation_id="moveOccurrence",
    status_code=200,
    opt=speaks({200: ScheduleView}, SENDS, body=MovedOccurrence, example={"to": "2026-12-08T11:00"}, codes=_CHANGES),
)
async def move(request: Call, schedule: PathSchedule, occurrence: PathOccurrence, body: RawBody) -> Response[bytes]:
    """Submit at another time, once; the others stay."""
    to = decode(_moved, body).to
    if faults := local_faults("to", to):
        raise InvalidRequest(tuple(faults))
    return await _replaced(request, schedule, occurrence, parse_local(to))


async def _replaced(request: Call, schedule: str, occurrence: str, to: datetime | None) -> Response[bytes]:
    said = text_in(occurrence, "occurrence", LocalTime)
    if local_faults("occurrence", said):
        raise NotFound("the schedule has no such time")
    local = parse_local(said)

    def changed(before: Schedule, zone: ChosenZone) -> Schedule:
        now = api_of(request).clock.now()
        _check_is_to_come(_open(before), zone, local, to, local_at(now, zone.name))
        after = replace(before, recurrence=without(before.recurrence, local, to))
        return after if after.status is ScheduleStatus.PAUSED else _as_claimed(before, awaiting(after, zone, now))

    return await _ordered(request, schedule, Act.SCHEDULE_CHANGED, changed)


def _check_is_to_come(
    schedule: Schedule, zone: ChosenZone, local: datetime, to: datetime | None, now: datetime
) -> None:
    if not is_one(schedule.recurrence, local):
        raise NotFound("the schedule has no such time")
    done = schedule.claimed or schedule.last
    begun = parse_local(done.local) if done is not None else None
    if local <= now or (begun is not None and local <= begun):
        raise WaypostError("that time is over, or is being submitted", _E.WRONG_STATE)
    if to is not None and (to <= now or (begun is not None and to <= begun)):
        raise WaypostError("the new time is over already", _E.WRONG_STATE)


def _as_claimed(before: Schedule, after: Schedule) -> Schedule:
    """Let what is being submitted be left behind first: the schedule is looked at until then."""
    if before.claimed is None:
        return after
    return replace(after, status=ScheduleStatus.ACTIVE, following=before.following, due_at=before.due_at)


def _open(schedule: Schedule) -> Schedule:
    if schedule.status is ScheduleStatus.ENDED:
        raise WaypostError("the schedule has ended", _E.WRONG_STATE)
    return schedule


async def _ordered(
    request: Call, schedule: str, act: Act, change: Callable[[Schedule, ChosenZone], Schedule]
) -> Response[bytes]:
    name = text_in(schedule, "schedule", NameText)
    await _found(request, name)
    await record(request, act, [name])
    await _change(request, name, change)
    return await _shown(request, name)


async def _change(
    request: Call, name: str, change: Callable[[Schedule, ChosenZone], Schedule], like: Schedule | None = None
) -> None:
    """Write what *change* makes of the schedule as it is, in the zone that it has, or that *like* has."""
    for _ in range(_TRIES):
        before = await _found(request, name)
        after = change(before, await _zone(request, like or before))
        if await _schedules(request).replace(before, after, api_of(request).clock.now()) is not None:
            return
    raise Unavailable("the schedule is being changed by others")


async def _shown(request: Call, name: str, status: int = 200) -> Response[bytes]:
    found = await _found(request, name)
    return answer(status, view(found, await _zone(request, found), api_of(request).clock.now()))


async def _found(request: Call, name: str) -> Schedule:
    found = await _schedules(request).find(request.user.app, name)
    if found is None:
        raise NotFound("no such schedule")
    return found


async def _zone(request: Call, schedule: Schedule) -> ChosenZone:
    return (await zones_for(_ground(request), [schedule]))[schedule.app, schedule.name]


def _schedules(request: Call) -> SqlSchedules:
    return _ground(request).store.schedules


def _ground(request: Call) -> Ground:
    ground: Ground = ground_of(request, FEATURE)
    return ground


ROUTES = [put_schedule, listed, look_up, next_times, remove, pause, resume, leave_out, move]

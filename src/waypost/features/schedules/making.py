"""Making a schedule of what was said: checked as if it were submitted now."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from waypost.domain.bulk_submission import draft_job
from waypost.domain.drafting import TOO_FAR, draft
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import UserId
from waypost.domain.local_time import UTC_NAME, instant_at, local_faults, parse_local
from waypost.domain.profile import zone_faults
from waypost.domain.recurrence import BadRule, Recurrence, has_times, normalised
from waypost.domain.schedule import Schedule
from waypost.domain.submission import SCHEDULE_LIMIT_MS
from waypost.domain.template import Version
from waypost.domain.time import Instant
from waypost.features.schedules.views import SubmittedSchedule
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.intake import Caller, Intake
from waypost.ports.templates import Said

_encode = msgspec.json.Encoder().encode
_TIMED = ("scheduled_at", "send_at", "idempotency_key")


class Named(Struct, frozen=True):
    """The template that a schedule names, as it is now."""

    said: Said = None
    """Of a notification."""
    version: Version | None = None
    """Of a bulk job."""


async def named_by(said: SubmittedSchedule, caller: Caller, intake: Intake, bulk: BulkIntake) -> Named:
    """Look up the template that a schedule names."""
    if said.notification is not None:
        return Named((await intake.templates.chosen(caller.app, [said.notification]))[0])
    return Named() if said.bulk is None else Named(version=await bulk.version(caller.app, said.bulk))


def made_of(name: str, said: SubmittedSchedule, caller: Caller, intake: Intake, now: Instant, named: Named) -> Schedule:
    """Make the schedule that was said; InvalidRequest carries every fault found."""
    recurrence, found = _recurrence(said, now)
    found += list(_faults(said))
    if not found:
        _check_submission(said, caller, intake, now, named)
        if not has_times(recurrence):
            found.append(Fault("rule" if said.rule else "starts", "there is no such time"))
    if found:
        raise InvalidRequest(tuple(found))
    told = said.notification
    return Schedule(
        app=caller.app,
        name=name,
        caller=caller.name,
        recurrence=recurrence,
        zone=said.time_zone,
        user_id=UserId(told.user_id) if told is not None and told.user_id is not None else None,
        notification=None if told is None else _encode(told),
        bulk=None if said.bulk is None else _encode(said.bulk),
        created_at=now,
    )


def _recurrence(said: SubmittedSchedule, now: Instant) -> tuple[Recurrence, list[Fault]]:
    found = zone_faults(said.time_zone)
    for path, times in (("starts", (said.starts,)), ("without", said.without), ("also", said.also)):
        found += [fault for each in times for fault in local_faults(path, each)]
    zone, rule = UTC_NAME if found or said.time_zone is None else said.time_zone, None
    if not found and abs(instant_at(parse_local(said.starts), zone) - now) > SCHEDULE_LIMIT_MS:
        found.append(Fault("starts", f"{TOO_FAR}, or as far back"))
    if said.rule is not None:
        try:
            rule = normalised(said.rule, zone)
        except BadRule as bad:
            found.append(Fault("rule", str(bad)))
    return Recurrence(said.starts, rule, said.without, said.also), found


def _faults(said: SubmittedSchedule) -> Iterator[Fault]:
    if (said.notification is None) == (said.bulk is None):
        yield Fault("", "give notification or bulk")
    if said.notification is not None:
        for name in _TIMED:
            if getattr(said.notification, name) is not None:
                yield Fault(f"notification.{name}", "is the schedule's to say")
    if said.bulk is not None and said.bulk.notification.send_at is not None:
        yield Fault("bulk.notification.send_at", "is the schedule's to say")
    if said.bulk is not None and said.bulk.registry is None:
        yield Fault("bulk.registry", "required: a list of users would be old by the next time")


def _check_submission(said: SubmittedSchedule, caller: Caller, intake: Intake, now: Instant, named: Named) -> None:
    """Refuse what could not be submitted now."""
    (some_id,) = intake.ids.next(1)
    who = caller.app, caller.name, intake.defaults[caller.app], now, intake.checks.get(caller.app, ())
    place = "notification" if said.bulk is None else "bulk"
    try:
        if isinstance(named.said, InvalidRequest):
            raise named.said
        if said.notification is not None:
            draft(said.notification, some_id, *who, template=named.said)
        elif said.bulk is not None:
            draft_job(said.bulk, some_id, *who, version=named.version)
    except InvalidRequest as invalid:
        faults = tuple(Fault(f"{place}.{fault.path}".rstrip("."), fault.why) for fault in invalid.faults)
        raise InvalidRequest(faults, invalid.code) from None

"""The duty of schedules: what is due is claimed, submitted by the ordinary door, and left behind.

A crash in between is met with the claim again, and the door knows the idempotency key. The door may be closed for an
app (its backlog is full): then its schedules wait, and the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from waypost.domain.bulk_submission import BulkSubmission
from waypost.domain.errors import Conflict, InvalidRequest, Unavailable
from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.local_time import ChosenZone, ZoneSource, choose_zone
from waypost.domain.schedule import Schedule, claim, is_in_doubt, left_behind
from waypost.domain.submission import Submission
from waypost.domain.time import SECOND_MS, Instant
from waypost.features.parts import Ground
from waypost.features.schedules.settings import ScheduleSettings
from waypost.pipeline.intake import Caller
from waypost.pipeline.submitted import Made, made_of
from waypost.pipeline.zones import zones_of
from waypost.runtime.ticker import Rest, until
from waypost.telemetry import Event

PAGE: Final = 200
IN_DOUBT: Final = "nobody knows whether it was submitted"

_Said = TypeVar("_Said")
_submission: Final = msgspec.json.Decoder(Submission)
_bulk: Final = msgspec.json.Decoder(BulkSubmission)


async def send_due(ground: Ground) -> Rest | None:
    """Submit what is due, page by page, until nothing is."""
    now, found = ground.clock.now(), False
    async for page in ground.store.schedules.due(now, PAGE):
        found = True
        await _send_page(ground, [each for each in page if each.app in ground.config.apps], now)
    return None if found else until(await ground.store.schedules.next_due(), now)


async def _send_page(ground: Ground, page: Sequence[Schedule], now: Instant) -> None:
    zones = await zones_for(ground, page)
    claimed = [each for each in await _claimed(ground, page, zones, now) if each is not None and each.claimed]
    lost = [each for each in claimed if is_in_doubt(each, now)]
    made = await _submitted(ground, [each for each in claimed if not is_in_doubt(each, now)])
    ends = [*((each, Made(error=IN_DOUBT)) for each in lost), *made]
    for each, end in ends:
        if end.error is not None:
            ground.telemetry.event(Event.SCHEDULE_REFUSED, app=each.app, schedule=each.name)
    await asyncio.gather(
        *(
            ground.store.schedules.replace(
                each, left_behind(each, zones[each.app, each.name], now, end.id, end.error), now
            )
            for each, end in ends
        )
    )


async def _claimed(
    ground: Ground, page: Sequence[Schedule], zones: Mapping[tuple[AppId, str], ChosenZone], now: Instant
) -> list[Schedule | None]:
    """Claim the times that are due; None where somebody changed the schedule meanwhile: it is read again."""
    settings: ScheduleSettings = ground.settings

    async def one(schedule: Schedule) -> Schedule | None:
        after = claim(schedule, zones[schedule.app, schedule.name], now, settings.grace_s * SECOND_MS)
        return schedule if after is schedule else await ground.store.schedules.replace(schedule, after, now)

    return await asyncio.gather(*map(one, page))


async def _submitted(ground: Ground, claimed: Sequence[Schedule]) -> list[tuple[Schedule, Made]]:
    """Submit what is claimed, each caller's together; what the door does not take now is left out."""
    callers: dict[tuple[AppId, CallerId], list[Schedule]] = {}
    for each in claimed:
        callers.setdefault((each.app, each.caller), []).append(each)
    made: list[tuple[Schedule, Made]] = []
    for (app, name), schedules in callers.items():
        with suppress(Unavailable):
            made += await _single(ground, Caller(app, name, frozenset()), schedules)
        for each in schedules:
            with suppress(Unavailable):
                made += await _job(ground, each)
    return made


async def _single(ground: Ground, caller: Caller, schedules: Sequence[Schedule]) -> list[tuple[Schedule, Made]]:
    read = [(each, _read(ground, each, _submission, each.notification)) for each in schedules]
    single = [(each, msgspec.structs.replace(said, idempotency_key=each.key)) for each, said in read if said]
    answers = await ground.door.intake.submit(caller, [said for _, said in single]) if single else []
    ends = [(each, made_of(answer)) for (each, _), answer in zip(single, answers, strict=True)]
    return [(each, made) for each, made in ends if made is not None]


async def _job(ground: Ground, schedule: Schedule) -> list[tuple[Schedule, Made]]:
    said = _read(ground, schedule, _bulk, schedule.bulk)
    if said is None:
        return []
    try:
        made = await ground.door.bulk.submit(schedule.app, schedule.caller, said, schedule.key)
    except (InvalidRequest, Conflict) as refused:
        return [(schedule, Made(error=str(refused)))]
    return [(schedule, Made(made.record.job.id))]


def _read(ground: Ground, schedule: Schedule, decoder: msgspec.json.Decoder[_Said], said: bytes | None) -> _Said | None:
    """Read what a schedule says; None where it says nothing of the kind, or this version cannot read it.

    That is told, and the schedule waits for a worker that can: the others go on.
    """
    if said is None:
        return None
    try:
        return decoder.decode(said)
    except msgspec.MsgspecError:
        ground.telemetry.event(Event.SCHEDULE_REFUSED, app=schedule.app, schedule=schedule.name)
        return None


async def zones_for(ground: Ground, schedules: Sequence[Schedule]) -> dict[tuple[AppId, str], ChosenZone]:
    """Find the zone of each schedule: its own, its user's, or its app's."""
    users: dict[AppId, set[UserId]] = {}
    for each in schedules:
        if each.zone is None and each.user_id is not None:
            users.setdefault(each.app, set()).add(each.user_id)
    of_apps = {app: chosen.time_zone for app, chosen in ground.config.apps.items()}
    found = {app: await zones_of(ground.store.profiles, of_apps, app, sorted(asked)) for app, asked in users.items()}
    return {(each.app, each.name): _zone(each, of_apps, found) for each in schedules}


def _zone(
    schedule: Schedule, of_apps: Mapping[AppId, str | None], found: Mapping[AppId, Mapping[UserId, ChosenZone]]
) -> ChosenZone:
    if schedule.zone is not None:
        return ChosenZone(schedule.zone, ZoneSource.SCHEDULE)
    if schedule.user_id is not None:
        return found[schedule.app][schedule.user_id]
    return choose_zone(None, of_apps.get(schedule.app))

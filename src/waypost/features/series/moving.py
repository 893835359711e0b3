"""The duty of series: who is due is claimed, told what the step says by the ordinary door, and goes on to the next.

A crash in between is met with the claim again, and the door knows the idempotency key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId
from waypost.domain.local_time import ChosenZone
from waypost.domain.series import Member, Series, asks_for, claim, exited, is_for, is_in_doubt, left_behind
from waypost.domain.status import DeliveryStatus
from waypost.domain.submission import Submission
from waypost.domain.time import Instant
from waypost.features.parts import Ground
from waypost.pipeline.intake import Caller
from waypost.pipeline.submitted import Made, made_of
from waypost.pipeline.zones import zones_of
from waypost.runtime.ticker import Rest, until
from waypost.telemetry import Event

PAGE: Final = 200
IN_DOUBT: Final = "nobody knows whether it was submitted"
REMOVED: Final = "the series was removed"
SKIPPED: Final = Made()
_UP: Final = (DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED)

_submission: Final = msgspec.json.Decoder(Submission)
_Version = tuple[AppId, str, int]
_Versions = dict[_Version, Series]
_Zones = Mapping[tuple[AppId, UserId], ChosenZone]


async def move_due(ground: Ground) -> Rest | None:
    """Move on every member whose step is due, page by page, until none is."""
    now, found = ground.clock.now(), False
    async for page in ground.store.series.due(now, PAGE):
        found = True
        await _move_page(ground, [each for each in page if each.app in ground.config.apps], now)
    return None if found else until(await ground.store.series.next_due(), now)


async def _move_page(ground: Ground, page: Sequence[Member], now: Instant) -> None:
    (versions, gone), zones = await _versions(ground, page), await _zones(ground, page)
    await asyncio.gather(*(_ended(ground, each, now) for each in page if _version_of(each) in gone))
    known = [each for each in page if _version_of(each) in versions]
    claimed = [each for each in await asyncio.gather(*(_claimed(ground, each, now) for each in known)) if each]
    ends: list[tuple[Member, Made]] = []
    to_send: list[tuple[Member, Series]] = []
    for each in claimed:
        series = versions[each.app, each.series, each.version]
        if is_in_doubt(each, now):
            ends.append((each, Made(error=IN_DOUBT)))
        elif await _is_for(ground, each, series):
            to_send.append((each, series))
        else:
            ends.append((each, SKIPPED))
    ends += await _sent(ground, to_send)
    for each, made in ends:
        if made.error is not None:
            step = versions[each.app, each.series, each.version].steps[each.step].name
            ground.telemetry.event(Event.SERIES_REFUSED, app=each.app, series=each.series, step=step)
    await asyncio.gather(*(_moved(ground, each, made, versions, zones, now) for each, made in ends))


async def _claimed(ground: Ground, member: Member, now: Instant) -> Member | None:
    after = claim(member, now)
    if after is member:
        return member if member.claimed_at is not None else None
    return await ground.store.series.replace(member, after, now)


async def _is_for(ground: Ground, member: Member, series: Series) -> bool:
    step = series.steps[member.step]
    reached = {name: await _reached(ground, member, name) for name in asks_for(step)}
    return is_for(member, step, reached.get)


async def _reached(ground: Ground, member: Member, step: str) -> DeliveryStatus | None:
    """Return how far the notification of a step before has come at its best target; None where it was not sent."""
    made = next((each.id for each in member.done if each.step == step and each.id is not None), None)
    detail = None if made is None else await ground.store.views.detail(member.app, NotificationId(made))
    found = {receipt.status for receipt in detail.receipts} if detail is not None else set()
    return next((each for each in reversed(_UP) if each in found), None)


async def _sent(ground: Ground, members: Sequence[tuple[Member, Series]]) -> list[tuple[Member, Made]]:
    """Submit the steps of *members*, each caller's together; what the door does not take now is left out."""
    callers: dict[tuple[AppId, CallerId], list[tuple[Member, Series]]] = {}
    for each, series in members:
        callers.setdefault((each.app, series.caller), []).append((each, series))
    ends: list[tuple[Member, Made]] = []
    for (app, name), of_caller in callers.items():
        read = [(each, _submission_of(ground, each, series)) for each, series in of_caller]
        wanted = [(each, said) for each, said in read if said is not None]
        with suppress(Unavailable):
            asked = [said for _, said in wanted]
            answers = await ground.door.intake.submit(Caller(app, name, frozenset()), asked) if asked else []
            made = [made_of(answer) for answer in answers]
            ends += [(each, it) for (each, _), it in zip(wanted, made, strict=True) if it is not None]
    return ends


def _submission_of(ground: Ground, member: Member, series: Series) -> Submission | None:
    """Make the submission of a member's step; None, and told, where this version cannot read it: the member waits."""
    step = series.steps[member.step]
    try:
        said = _submission.decode(step.notification)
    except msgspec.MsgspecError:
        ground.telemetry.event(Event.SERIES_REFUSED, app=member.app, series=member.series, step=step.name)
        return None
    return msgspec.structs.replace(said, user_id=member.user_id, idempotency_key=member.key(series))


async def _moved(ground: Ground, member: Member, made: Made, versions: _Versions, zones: _Zones, now: Instant) -> None:
    """Let a member leave the step behind; who left or was told of something meanwhile is read again."""
    series, zone = versions[member.app, member.series, member.version], zones[member.app, member.user_id].name
    found: Member | None = member
    while found is not None and found.claimed_at == member.claimed_at and found.step == member.step:
        after = left_behind(found, series, zone, now, made.id, made.error)
        if await ground.store.series.replace(found, after, now) is not None:
            return
        found = await ground.store.series.member(member.app, member.series, member.user_id)


async def _ended(ground: Ground, member: Member, now: Instant) -> None:
    """End a member whose version is gone, so that it is dropped in its time like who left."""
    after = msgspec.structs.replace(exited(member, REMOVED), due_at=None, claimed_at=None)
    await ground.store.series.replace(member, after, now)


def _version_of(member: Member) -> _Version:
    return member.app, member.series, member.version


async def _versions(ground: Ground, page: Sequence[Member]) -> tuple[_Versions, set[_Version]]:
    """Find the versions of *page*, and name those that are gone; who has one that cannot be read here waits."""
    versions: _Versions = {}
    gone: set[_Version] = set()
    for app, name, version in {_version_of(each) for each in page}:
        try:
            found = await ground.store.series.version(app, name, version)
        except msgspec.MsgspecError:
            ground.telemetry.event(Event.SERIES_REFUSED, app=app, series=name)
            continue
        if found is None:
            gone.add((app, name, version))
        else:
            versions[app, name, version] = found
    return versions, gone


async def _zones(ground: Ground, page: Sequence[Member]) -> dict[tuple[AppId, UserId], ChosenZone]:
    of_apps = {app: chosen.time_zone for app, chosen in ground.config.apps.items()}
    zones: dict[tuple[AppId, UserId], ChosenZone] = {}
    for app in {each.app for each in page}:
        users = [each.user_id for each in page if each.app == app]
        found = await zones_of(ground.store.profiles, of_apps, app, users)
        zones |= {(app, user): zone for user, zone in found.items()}
    return zones

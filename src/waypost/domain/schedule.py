"""A schedule: something that is submitted again and again, and what each event makes of it. Pure.

Each time is claimed before it is submitted, and left behind afterwards; both are one compare-and-set of the row. So
whoever changes the schedule meanwhile is told, and a crash between them submits the same time again, under the same
idempotency key.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.local_time import ChosenZone, format_local, instant_at, local_at, parse_local
from waypost.domain.recurrence import Recurrence, first_after, following
from waypost.domain.time import HOUR_MS, Instant

SURE_MS: Final = 23 * HOUR_MS
"""Milliseconds after a claim in which the idempotency key still tells a repeat; it is kept for a day."""


class ScheduleStatus(StrEnum):
    """The status of a schedule."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Claimed(Struct, frozen=True):
    """A time that is being submitted."""

    local: str
    at: Instant
    """The time of the claim."""


class Last(Struct, frozen=True, omit_defaults=True):
    """The last time, and what became of it."""

    local: str
    at: Instant
    """The time of its submission."""
    id: bytes | None = None
    """The id of the notification or job; None where it was refused, or nobody knows."""
    error: str | None = None


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule."""

    app: AppId
    name: str
    caller: CallerId
    """The caller in whose name is submitted."""
    recurrence: Recurrence
    zone: str | None
    """The zone of its times; None is that of its user, else the app's."""
    user_id: UserId | None
    notification: bytes | None = None
    """The submission in JSON; None where it is a bulk job."""
    bulk: bytes | None = None
    """The bulk job in JSON."""
    created_at: Instant
    status: ScheduleStatus = ScheduleStatus.ACTIVE
    version: int = 1
    """The number of times that it was written."""
    following: str | None = None
    """The next local time; None where there is none."""
    due_at: Instant | None = None
    """The instant of that; None where none is awaited."""
    claimed: Claimed | None = None
    last: Last | None = None
    sent: int = 0
    missed: int = 0
    """Times that were over by more than the grace when anybody looked."""

    @property
    def key(self) -> str:
        """The idempotency key of the time that is claimed."""
        assert self.claimed is not None, "nothing is submitted without a claim"
        return f"schedule/{self.name}/{self.created_at}/{self.claimed.local}"


def awaiting(schedule: Schedule, zone: ChosenZone, now: Instant) -> Schedule:
    """Let *schedule* await its first time that is neither over nor was submitted."""
    first = next(_from(schedule, zone, now), None)
    return _awaiting(schedule, zone, None if first is None else format_local(first))


def _from(schedule: Schedule, zone: ChosenZone, now: Instant) -> Iterator[datetime]:
    """Yield the times that are not over, and were not claimed before."""
    after = local_at(Instant(now - 1), zone.name)
    done = schedule.claimed or schedule.last
    if done is not None:
        after = max(after, parse_local(done.local))
    return (each for each in following(schedule.recurrence, after) if instant_at(each, zone.name) >= now)


def _awaiting(schedule: Schedule, zone: ChosenZone, local: str | None) -> Schedule:
    if local is None:
        return replace(schedule, following=None, due_at=None, status=ScheduleStatus.ENDED)
    due_at = instant_at(parse_local(local), zone.name)
    return replace(schedule, following=local, due_at=due_at, status=ScheduleStatus.ACTIVE)


def claim(schedule: Schedule, zone: ChosenZone, now: Instant, grace_ms: int) -> Schedule:
    """Claim the time that is due: of several the latest, unless that is over by more than the grace.

    Nothing is claimed where the user's clock shows another time by now, or all are over for too long.
    """
    if schedule.claimed is not None or schedule.following is None or schedule.due_at is None or schedule.due_at > now:
        return schedule
    first = parse_local(schedule.following)
    if schedule.zone is None and instant_at(first, zone.name) > now:
        return _awaiting(schedule, zone, schedule.following)
    latest, due_at, over = first, schedule.due_at, 0
    for each in following(schedule.recurrence, first):
        at = instant_at(each, zone.name)
        if at > now:
            break
        latest, due_at, over = each, at, over + 1
    is_late = now - due_at > grace_ms
    missed = schedule.missed + over + is_late
    if is_late:
        after = first_after(schedule.recurrence, latest)
        return replace(_awaiting(schedule, zone, format_local(after) if after is not None else None), missed=missed)
    local = format_local(latest)
    return replace(schedule, claimed=Claimed(local, now), following=local, due_at=due_at, missed=missed)


def is_in_doubt(schedule: Schedule, now: Instant) -> bool:
    """Tell whether a claim is so old that a repeat would be accepted as new: then nothing is submitted again."""
    return schedule.claimed is not None and now - schedule.claimed.at > SURE_MS


def left_behind(schedule: Schedule, zone: ChosenZone, now: Instant, sent: bytes | None, error: str | None) -> Schedule:
    """Leave the claimed time behind, and await the one after it, where it is not paused."""
    assert schedule.claimed is not None, "only what was claimed is left behind"
    local = schedule.claimed.local
    done = replace(
        schedule,
        claimed=None,
        last=Last(local, now, sent, error),
        sent=schedule.sent + (error is None),
    )
    if schedule.status is ScheduleStatus.PAUSED:
        return replace(done, following=None, due_at=None)
    after = first_after(schedule.recurrence, parse_local(local))
    return _awaiting(done, zone, None if after is None else format_local(after))


def paused(schedule: Schedule) -> Schedule:
    """Await nothing until it is resumed; a time that is claimed is still submitted."""
    if schedule.claimed is not None:
        return replace(schedule, status=ScheduleStatus.PAUSED)
    return replace(schedule, status=ScheduleStatus.PAUSED, following=None, due_at=None)


def upcoming(schedule: Schedule, zone: ChosenZone, now: Instant, n: int) -> list[tuple[str, Instant]]:
    """List the next times with their instants; a paused one shows what would come."""
    return [(format_local(each), instant_at(each, zone.name)) for each in islice(_from(schedule, zone, now), n)]

"""A series: steps over days that each member goes through, and what each event makes of a member. Pure.

It is a small state machine in data: a member is at one step, waits for its time, and leaves it behind sent or skipped.
A definition never changes, a new one is another version, and who began with one ends with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.local_time import instant_at, local_at
from waypost.domain.schedule import SURE_MS
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import SECOND_MS, Instant, later

STEPS_LIMIT: Final = 50


class Condition(Struct, frozen=True, omit_defaults=True):
    """A condition on a member: all that it says must hold."""

    data: dict[str, Any] = {}
    """What the member's data must say."""
    event: str | None = None
    """An event of the user since they joined."""
    step: str | None = None
    """A step before, whose notification must have reached *reached*."""
    reached: DeliveryStatus | None = None


class Step(Struct, frozen=True, omit_defaults=True):
    """A step: when it is due after the one before, for whom, and what is submitted."""

    name: str
    notification: bytes
    """The submission in JSON, without a user."""
    after_s: int = 0
    at: str | None = None
    """The local time of day, such as ``09:00``: the first after that."""
    when: tuple[Condition, ...] = ()
    """What must hold; else the step is skipped."""
    unless: tuple[Condition, ...] = ()
    """What must not hold."""


class Series(Struct, frozen=True, kw_only=True):
    """One version of a series."""

    app: AppId
    name: str
    version: int
    caller: CallerId
    """The caller in whose name is submitted."""
    steps: tuple[Step, ...]
    exit_on: tuple[str, ...] = ()
    """The events with which a member leaves."""
    created_at: Instant


class MemberState(StrEnum):
    """The state of a member."""

    ACTIVE = "active"
    DONE = "done"
    EXITED = "exited"


class StepDone(Struct, frozen=True, omit_defaults=True):
    """A step that a member left behind."""

    step: str
    at: Instant
    id: bytes | None = None
    """The notification; None where the step was skipped or refused."""
    error: str | None = None


class Member(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a series."""

    app: AppId
    series: str
    user_id: UserId
    version: int
    """The version of the series that it began with."""
    joined_at: Instant
    data: dict[str, Any] = {}
    state: MemberState = MemberState.ACTIVE
    step: int = 0
    """The step that it waits for."""
    due_at: Instant | None = None
    claimed_at: Instant | None = None
    """When that step was claimed, while it is being submitted."""
    done: tuple[StepDone, ...] = ()
    events: tuple[str, ...] = ()
    """The events since it joined that conditions ask for."""
    why: str | None = None
    """Why it left."""
    written: int = 1
    """The number of times that it was written."""

    def key(self, series: Series) -> str:
        """Return the idempotency key of the step that it waits for."""
        user = hashlib.blake2b(self.user_id.encode(), digest_size=16).hexdigest()
        return f"series/{self.series}/{self.version}/{user}/{self.joined_at}/{series.steps[self.step].name}"


def joined(series: Series, user_id: UserId, zone: str, now: Instant, data: Mapping[str, Any]) -> Member:
    """Make a member that waits for the first step."""
    member = Member(
        app=series.app, series=series.name, user_id=user_id, version=series.version, joined_at=now, data=dict(data)
    )
    return _at_step(member, series, 0, zone, now)


def due_after(step: Step, zone: str, now: Instant) -> Instant:
    """Return when *step* is due for whom nothing is due before it any more."""
    earliest = later(now, step.after_s * SECOND_MS)
    if step.at is None:
        return earliest
    local, of_day = local_at(earliest, zone), time.fromisoformat(step.at)
    today = datetime.combine(local, of_day)
    first = instant_at(today, zone)
    return first if first >= earliest else instant_at(today + timedelta(days=1), zone)


def claim(member: Member, now: Instant) -> Member:
    """Claim the step that is due."""
    is_due = member.state is MemberState.ACTIVE and member.due_at is not None and member.due_at <= now
    return replace(member, claimed_at=now) if is_due and member.claimed_at is None else member


def is_in_doubt(member: Member, now: Instant) -> bool:
    """Tell whether a claim is so old that a repeat would be accepted as new: then nothing is submitted again."""
    return member.claimed_at is not None and now - member.claimed_at > SURE_MS


def left_behind(
    member: Member, series: Series, zone: str, now: Instant, sent: bytes | None, error: str | None
) -> Member:
    """Leave the step behind, and wait for the one after it, unless the member left meanwhile."""
    step = series.steps[member.step]
    done = replace(member, claimed_at=None, done=(*member.done, StepDone(step.name, now, sent, error)))
    if member.state is not MemberState.ACTIVE:
        return replace(done, due_at=None)
    return _at_step(done, series, member.step + 1, zone, now)


def _at_step(member: Member, series: Series, n: int, zone: str, now: Instant) -> Member:
    if n == len(series.steps):
        return replace(member, step=n, state=MemberState.DONE, due_at=None)
    return replace(member, step=n, due_at=due_after(series.steps[n], zone, now))


def exited(member: Member, why: str) -> Member:
    """Let a member leave: what is being submitted in this moment is its last."""
    if member.state is not MemberState.ACTIVE:
        return member
    due_at = member.due_at if member.claimed_at is not None else None
    return replace(member, state=MemberState.EXITED, why=why, due_at=due_at)


def events_of(series: Series) -> frozenset[str]:
    """Name the events that a series asks for."""
    asked = (each.event for step in series.steps for each in (*step.when, *step.unless))
    return frozenset([*series.exit_on, *(each for each in asked if each is not None)])


def told(member: Member, event: str, series: Series) -> Member:
    """Tell a member of an event of its user: it leaves, or a condition may ask for it."""
    if member.state is not MemberState.ACTIVE:
        return member
    if event in series.exit_on:
        return exited(member, f"event: {event}")
    is_asked_for = event in events_of(series) and event not in member.events
    return replace(member, events=(*member.events, event)) if is_asked_for else member


def is_for(member: Member, step: Step, reached: Callable[[str], DeliveryStatus | None]) -> bool:
    """Tell whether *step* is for a member; *reached* says how far a step's notification has come."""
    return all(_holds(member, each, reached) for each in step.when) and not any(
        _holds(member, each, reached) for each in step.unless
    )


def asks_for(step: Step) -> frozenset[str]:
    """Name the steps whose fate the conditions of *step* ask for."""
    return frozenset(each.step for each in (*step.when, *step.unless) if each.step is not None)


def _holds(member: Member, condition: Condition, reached: Callable[[str], DeliveryStatus | None]) -> bool:
    if any(member.data.get(name) != value for name, value in condition.data.items()):
        return False
    if condition.event is not None and condition.event not in member.events:
        return False
    if condition.step is None:
        return True
    wanted, found = condition.reached or DeliveryStatus.SENT, reached(condition.step)
    return found in _FROM[wanted]


_UP: Final = (DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED)
_FROM: Final = {status: frozenset(_UP[n:]) for n, status in enumerate(_UP)}

"""Series as the API takes and shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from waypost.domain.channel_steps import Duration
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.series import STEPS_LIMIT, Condition, Member, MemberState, Series, Step, StepDone
from waypost.domain.submission import Line, Submission
from waypost.domain.text import NO_NUL, Text
from waypost.domain.time import Instant, isoformat
from waypost.entrypoints.rest.parameters import NameText
from waypost.entrypoints.rest.views import Timestamp
from waypost.entrypoints.submitting import Id

EventName = Annotated[
    str, Meta(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_.:-]{0,63}(?!\n)$", examples=["order_paid"])
]


class SubmittedCondition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition on a member; all that it says must hold."""

    data: Annotated[dict[Text, Any], Meta(max_length=20, description="What the data given at joining must say.")] = {}
    event: Annotated[EventName | None, Meta(description="An event of the user since they joined.")] = None
    step: Annotated[NameText | None, Meta(description="A step before this one.")] = None
    reached: Annotated[
        Literal["sent", "delivered", "opened"] | None,
        Meta(description="How far that step's notification must have come; `sent` if left out."),
    ] = None


class SubmittedSeriesStep(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A step: when, for whom, and what is submitted."""

    name: Annotated[NameText, Meta(description="The step's name.")]
    notification: Annotated[
        Submission, Meta(description="As for `POST /v1/notifications`, without a user, a time and a key.")
    ]
    after: Annotated[
        Duration | None, Meta(description="How long after the step before, or after joining: `2d`. Left out: at once.")
    ] = None
    at: Annotated[
        Annotated[str, Meta(max_length=5, pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9](?!\n)$")] | None,
        Meta(description="The first such time of day after that, on the user's clock.", examples=["09:00"]),
    ] = None
    when: Annotated[
        tuple[SubmittedCondition, ...], Meta(max_length=10, description="What must hold; else the step is skipped.")
    ] = ()
    unless: Annotated[tuple[SubmittedCondition, ...], Meta(max_length=10, description="What must not hold.")] = ()


class SubmittedSeries(Struct, frozen=True, forbid_unknown_fields=True):
    """A series."""

    steps: Annotated[
        tuple[SubmittedSeriesStep, ...],
        Meta(min_length=1, max_length=STEPS_LIMIT, description="The steps, in their order."),
    ]
    exit_on: Annotated[
        tuple[EventName, ...], Meta(max_length=20, description="The events with which a member leaves.")
    ] = ()


class Joining(Struct, frozen=True, forbid_unknown_fields=True):
    """A user who joins; the body may be omitted."""

    data: Annotated[dict[Text, Any], Meta(max_length=50, description="For conditions: any JSON object.")] = {}
    again: Annotated[bool, Meta(description="Begin anew where the user is through, or left.")] = False


class Leaving(Struct, frozen=True, forbid_unknown_fields=True):
    """A member who leaves; the body may be omitted."""

    why: Annotated[
        Annotated[str, Meta(max_length=256, pattern=NO_NUL)] | None, Meta(description="Why, for whoever looks.")
    ] = None


class SeriesView(Struct, frozen=True):
    """A series in its newest version."""

    name: NameText
    version: Annotated[int, Meta(description="The number of the version; running members end with their own.")]
    steps: Annotated[tuple[SubmittedSeriesStep, ...], Meta(description="The steps, in their order.")]
    exit_on: Annotated[tuple[EventName, ...], Meta(description="The events with which a member leaves.")]
    created_at: Timestamp


class SeriesDetail(SeriesView, frozen=True):
    """A series, and how many members it has."""

    members: Annotated[
        dict[MemberState, int],
        Meta(description="The number of members by state; of more than 100,000, some are not counted."),
    ]


class SeriesPage(Struct, frozen=True):
    """Series by name."""

    items: tuple[SeriesView, ...]
    next: Annotated[str | None, Meta(description="The `cursor` of the next page; null on the last one.")]


class StepDoneView(Struct, frozen=True):
    """A step that a member left behind."""

    step: Annotated[NameText, Meta(description="The step's name.")]
    at: Timestamp
    id: Annotated[Id | None, Meta(description="Its notification; null if it was skipped or refused.")]
    error: Annotated[Line | None, Meta(description="Why it was refused.")]


class MemberView(Struct, frozen=True):
    """A member, and where in the series they are."""

    user_id: str
    version: Annotated[int, Meta(description="The version of the series that they began with.")]
    state: MemberState
    joined_at: Annotated[Timestamp, Meta(description="When they joined.")]
    next_step: Annotated[NameText | None, Meta(description="The step that they wait for.")]
    due_at: Annotated[Timestamp | None, Meta(description="When that is due.")]
    done: Annotated[tuple[StepDoneView, ...], Meta(description="The steps that they left behind.")]
    events: Annotated[tuple[EventName, ...], Meta(description="The events since then that conditions ask for.")]
    why: Annotated[str | None, Meta(description="Why they left.")]
    data: dict[str, Any]


class SeriesMemberPage(Struct, frozen=True):
    """Members by user."""

    items: tuple[MemberView, ...]
    next: Annotated[str | None, Meta(description="The `cursor` of the next page; null on the last one.")]


def series_view(series: Series) -> SeriesView:
    """Describe a series."""
    return SeriesView(*_told(series))


def detail(series: Series, members: dict[MemberState, int]) -> SeriesDetail:
    """Describe a series with the number of its *members*."""
    return SeriesDetail(*_told(series), {state: members.get(state, 0) for state in MemberState})


def _told(series: Series) -> tuple[str, int, tuple[SubmittedSeriesStep, ...], tuple[str, ...], str]:
    return series.name, series.version, tuple(map(_step, series.steps)), series.exit_on, isoformat(series.created_at)


def _step(step: Step) -> SubmittedSeriesStep:
    return SubmittedSeriesStep(
        step.name,
        msgspec.json.decode(step.notification, type=Submission),
        duration_of(step.after_s) if step.after_s else None,
        step.at,
        tuple(map(_condition, step.when)),
        tuple(map(_condition, step.unless)),
    )


def _condition(condition: Condition) -> SubmittedCondition:
    reached: Any = None if condition.reached is None else condition.reached.value
    return SubmittedCondition(condition.data, condition.event, condition.step, reached)


def duration_of(seconds: int) -> str:
    """Write a duration in the largest unit that it is a whole number of."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def member_view(member: Member, series: Series | None) -> MemberView:
    """Describe a member of a version."""
    is_waiting = member.state is MemberState.ACTIVE and series is not None and member.step < len(series.steps)
    due_at: Instant | None = member.due_at if is_waiting else None
    return MemberView(
        member.user_id,
        member.version,
        member.state,
        isoformat(member.joined_at),
        series.steps[member.step].name if is_waiting and series is not None else None,
        None if due_at is None else isoformat(due_at),
        tuple(map(_done, member.done)),
        member.events,
        member.why,
        member.data,
    )


def _done(done: StepDone) -> StepDoneView:
    made = None if done.id is None else format_id(NotificationId(done.id))
    return StepDoneView(done.step, isoformat(done.at), made, done.error)

"""Making a version of a series of what was said: each step is checked as if it were submitted now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from waypost.domain.channel_steps import seconds_of
from waypost.domain.drafting import draft
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.series import Condition, Series, Step
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.features.series.views import SubmittedCondition, SubmittedSeries, SubmittedSeriesStep
from waypost.pipeline.intake import Caller, Intake
from waypost.ports.templates import Said

_encode = msgspec.json.Encoder().encode
_ANYBODY = "anybody"
_OWN = ("user_id", "to", "device", "scheduled_at", "send_at", "idempotency_key")
"""The fields that the series says, or that would reach somebody else than the member."""


async def made_of(name: str, said: SubmittedSeries, caller: Caller, intake: Intake, now: Instant) -> Series:
    """Make the first version of the series that was said; InvalidRequest carries every fault found."""
    chosen = await intake.templates.chosen(caller.app, [step.notification for step in said.steps])
    found: list[Fault] = []
    for n, step in enumerate(said.steps):
        found += _faults(step, n, said.steps, caller, intake, now, chosen[n])
    if found:
        refused = [each for each in chosen if isinstance(each, InvalidRequest)]
        is_all = len(found) == sum(len(each.faults) for each in refused)
        raise InvalidRequest(tuple(found), refused[0].code if refused and is_all else None)
    steps = tuple(map(_step, said.steps))
    return Series(
        app=caller.app, name=name, version=1, caller=caller.name, steps=steps, exit_on=said.exit_on, created_at=now
    )


def is_same(one: Series, other: Series) -> bool:
    """Tell whether two versions say the same."""
    return (one.steps, one.exit_on) == (other.steps, other.exit_on)


def _step(said: SubmittedSeriesStep) -> Step:
    return Step(
        said.name,
        _encode(said.notification),
        0 if said.after is None else seconds_of(said.after),
        said.at,
        tuple(map(_condition, said.when)),
        tuple(map(_condition, said.unless)),
    )


def _condition(said: SubmittedCondition) -> Condition:
    reached = None if said.reached is None else DeliveryStatus(said.reached)
    return Condition(said.data, said.event, said.step, reached)


def _faults(
    step: SubmittedSeriesStep,
    n: int,
    steps: Sequence[SubmittedSeriesStep],
    caller: Caller,
    intake: Intake,
    now: Instant,
    named: Said,
) -> Iterator[Fault]:
    before = [each.name for each in steps[:n]]
    if step.name in before:
        yield Fault(f"steps[{n}].name", "another step has it")
    for path, conditions in (("when", step.when), ("unless", step.unless)):
        for place, each in enumerate(conditions):
            yield from _condition_faults(each, f"steps[{n}].{path}[{place}]", before)
    own = [name for name in _OWN if getattr(step.notification, name) is not None]
    yield from (Fault(f"steps[{n}].notification.{name}", "is the series' to say: leave it out") for name in own)
    if not own:
        yield from _content_faults(step, n, caller, intake, now, named)


def _condition_faults(said: SubmittedCondition, path: str, before: Sequence[str]) -> Iterator[Fault]:
    if not said.data and said.event is None and said.step is None:
        yield Fault(path, "says nothing: give data, event or step")
    if said.step is not None and said.step not in before:
        yield Fault(f"{path}.step", "no step before this one has that name")
    if said.reached is not None and said.step is None:
        yield Fault(f"{path}.reached", "of which step?")


def _content_faults(
    step: SubmittedSeriesStep, n: int, caller: Caller, intake: Intake, now: Instant, named: Said
) -> Iterator[Fault]:
    (some_id,) = intake.ids.next(1)
    told = msgspec.structs.replace(step.notification, user_id=_ANYBODY)
    checks = intake.checks.get(caller.app, ())
    try:
        if isinstance(named, InvalidRequest):
            raise named
        draft(told, some_id, caller.app, caller.name, intake.defaults[caller.app], now, checks, template=named)
    except InvalidRequest as invalid:
        yield from (Fault(f"steps[{n}].notification.{fault.path}".rstrip("."), fault.why) for fault in invalid.faults)

"""A campaign: one message to many, drafted, approved, begun slowly, and stopped where too much fails. Pure.

Its users are drawn into the steps of its ramp; each step is a bulk job of its own, for a part of the users.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from waypost.domain.bulk import JobId
from waypost.domain.bulk_submission import BulkSubmission
from waypost.domain.ids import AppId, CallerId
from waypost.domain.segment import Filter
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import CampaignName, TypeName
from waypost.domain.template import Version
from waypost.domain.time import SECOND_MS, Instant
from waypost.domain.variants import Part

ENDED_LEAST: Final = 20
"""The fewest notifications that have ended before a step is stopped while it still runs."""


class CampaignState(StrEnum):
    """The state of a campaign."""

    DRAFT = "draft"  # may be changed; nothing is sent
    APPROVED = "approved"  # somebody has agreed to it as it stands
    SCHEDULED = "scheduled"  # begins at its time
    RUNNING = "running"
    PAUSED = "paused"  # by order, or since too much failed
    DONE = "done"  # every recipient's notification has a final status
    CANCELLED = "cancelled"


class CampaignOrder(StrEnum):
    """An order that changes a campaign's state."""

    CHANGE = "change"
    APPROVE = "approve"
    SCHEDULE = "schedule"
    BEGIN = "begin"  # its time has come
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    FINISH = "finish"


_S, _O = CampaignState, CampaignOrder

TRANSITIONS: Final[Mapping[CampaignState, Mapping[CampaignOrder, CampaignState]]] = {
    _S.DRAFT: {_O.CHANGE: _S.DRAFT, _O.APPROVE: _S.APPROVED, _O.SCHEDULE: _S.SCHEDULED, _O.CANCEL: _S.CANCELLED},
    _S.APPROVED: {
        _O.CHANGE: _S.DRAFT,
        _O.APPROVE: _S.APPROVED,
        _O.SCHEDULE: _S.SCHEDULED,
        _O.CANCEL: _S.CANCELLED,
    },
    _S.SCHEDULED: {_O.SCHEDULE: _S.SCHEDULED, _O.BEGIN: _S.RUNNING, _O.CANCEL: _S.CANCELLED},
    _S.RUNNING: {_O.PAUSE: _S.PAUSED, _O.RESUME: _S.RUNNING, _O.CANCEL: _S.CANCELLED, _O.FINISH: _S.DONE},
    _S.PAUSED: {_O.PAUSE: _S.PAUSED, _O.RESUME: _S.RUNNING, _O.CANCEL: _S.CANCELLED},
    _S.DONE: {},
    _S.CANCELLED: {_O.CANCEL: _S.CANCELLED},
}
"""What each order makes of each state; what is not here is refused. An order that was carried out may be repeated."""

ENDED: Final = frozenset({_S.DONE, _S.CANCELLED})


class Metric(StrEnum):
    """An event that counts as the success of a variant."""

    OPENED = "opened"
    ACTION = "action"
    CONVERSION = "conversion"


class Ramp(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A slow beginning: a few users first, more where those went well."""

    steps: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=99)], ...],
        Meta(max_length=5, description="Percent of the users who have been told at the end of each step, rising."),
    ] = (1, 10)
    hold: Annotated[
        int, Meta(ge=0, le=86_400, description="Seconds from the end of a step's sending to the next step.")
    ] = 300
    max_failed: Annotated[
        float, Meta(ge=0, le=1, description="The share of failed notifications above which the campaign pauses.")
    ] = 0.1


class CampaignSubmission(BulkSubmission, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A campaign: a bulk send with a ramp, and with what its variants are compared by."""

    ramp: Ramp | None = None
    metric: Annotated[Metric, Meta(description="What counts as the success of a variant.")] = Metric.OPENED
    conversion: Annotated[
        TypeName | None, Meta(description="For the metric `conversion`: your own event that counts as one.")
    ] = None


class Counted(Struct, frozen=True):
    """The notifications of a campaign that count for its rate of failures."""

    failed: int = 0
    ended: int = 0


class Campaign(Struct, frozen=True, omit_defaults=True):
    """A campaign as stored."""

    app: AppId
    name: CampaignName
    asked: CampaignSubmission
    """What it says and to whom; a list lies beside it."""
    by: CallerId
    """Who changed it last."""
    created_at: Instant
    changed_at: Instant
    state: CampaignState = CampaignState.DRAFT
    revision: int = 1
    """The number of its changes, by which two at once are told apart."""
    chosen: Filter | None = None
    """The filter of its users, as it was when the campaign was changed last."""
    version: Version | None = None
    """The version of the template that it names, as it was then, with its variables alone."""
    clearing: bool = False
    """Whether the list before is being deleted; meanwhile it takes no other."""
    listed: int = 0
    """The recipients on its list."""
    approved_by: CallerId | None = None
    due_at: Instant | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    jobs: tuple[JobId, ...] = ()
    """The bulk jobs of the steps begun so far."""
    told_at: Instant | None = None
    """When every recipient of the present step had been enqueued."""
    why: str | None = None
    """Why it paused by itself."""
    forgiven: Counted = Counted()
    """What had failed and ended when somebody resumed it all the same."""
    ran_ms: int = 0
    """Milliseconds that it ran before *running_since*."""
    running_since: Instant | None = None

    @property
    def parts(self) -> Sequence[Part]:
        """The part of the users in each step."""
        ramp = self.asked.ramp
        bounds = (0, *(() if ramp is None else ramp.steps), 100)
        return [Part(self.name, after, until) for after, until in itertools.pairwise(bounds)]

    @property
    def has_list(self) -> bool:
        """Whether its recipients are a list."""
        return self.asked.upload

    def ran_until(self, now: Instant) -> int:
        """Return for how many milliseconds it has been running."""
        return self.ran_ms + (0 if self.running_since is None else max(0, now - self.running_since))


def ordered(campaign: Campaign, order: CampaignOrder, now: Instant) -> Campaign | None:
    """Return *campaign* after an order, the same where it was carried out before; None where it is refused."""
    after = TRANSITIONS[campaign.state].get(order)
    if after is None:
        return None
    moved = replace(campaign, state=after, revision=campaign.revision + 1)
    if after is campaign.state:
        return moved if order in (_O.CHANGE, _O.SCHEDULE) else campaign
    if campaign.state is _S.RUNNING:
        moved = replace(moved, ran_ms=campaign.ran_until(now), running_since=None)
    if after is _S.RUNNING:
        moved = replace(moved, running_since=now, started_at=campaign.started_at or now, why=None)
    return replace(moved, finished_at=now if after in ENDED else None)


def counted(counts: Mapping[NotificationStatus, int]) -> Counted:
    """Count what failed of what providers were asked for."""
    failed = counts.get(NotificationStatus.FAILED, 0)
    return Counted(failed, failed + sum(counts.get(status, 0) for status in _WENT))


_WENT: Final = (
    NotificationStatus.SENT,
    NotificationStatus.PARTIAL,
    NotificationStatus.DELIVERED,
    NotificationStatus.UNKNOWN,
)


class Step(StrEnum):
    """A decision on a running campaign, which follows from how its jobs stand."""

    WAIT = "wait"
    STOP = "stop"
    NEXT = "next"
    FINISH = "finish"


def next_step(campaign: Campaign, so_far: Counted, *, told: bool, ended: bool, now: Instant) -> Step:
    """Decide how a running campaign goes on; *told* and *ended* are of the present step's job.

    Where the rate of failures is too high, it stops: while a step runs, once enough have ended to judge by.
    """
    ramp, is_last = campaign.asked.ramp, len(campaign.jobs) == len(campaign.parts)
    new = Counted(so_far.failed - campaign.forgiven.failed, so_far.ended - campaign.forgiven.ended)
    is_over = (
        told and campaign.told_at is not None and (ramp is None or now - campaign.told_at >= ramp.hold * SECOND_MS)
    )
    is_enough = new.ended >= ENDED_LEAST or (is_over and not is_last)
    if ramp is not None and is_enough and new.failed > ramp.max_failed * new.ended:
        return Step.STOP
    if is_last:
        return Step.FINISH if ended else Step.WAIT
    return Step.NEXT if is_over and (ended or new.ended) else Step.WAIT


def why_stopped(campaign: Campaign, so_far: Counted) -> str:
    """Say why a campaign paused by itself."""
    failed, ended = so_far.failed - campaign.forgiven.failed, so_far.ended - campaign.forgiven.ended
    return f"{failed} of {ended} failed in step {len(campaign.jobs)}"

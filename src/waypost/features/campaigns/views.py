"""Campaigns as the API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from waypost.domain.campaign import ENDED, Campaign, CampaignState, CampaignSubmission
from waypost.domain.forecast import Forecast, ForecastChannel, ForecastQuota
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import CampaignName, Moment
from waypost.domain.time import Instant, isoformat
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.entrypoints.submitting import Id
from waypost.features.campaigns.jobs import counts_of
from waypost.ports.bulk import JobRecord


class SubmittedTime(Struct, frozen=True, forbid_unknown_fields=True):
    """The time at which a campaign begins."""

    at: Annotated[Moment, Meta(description="With its offset (RFC 3339).", examples=["2026-12-01T09:00:00+01:00"])]


class CampaignView(Struct, frozen=True):
    """A campaign and its progress; each recipient enqueued is in exactly one of *counts*."""

    name: CampaignName
    state: CampaignState
    changed_by: Annotated[str, Meta(description="The caller that changed it last.")]
    approved_by: str | None
    created_at: Timestamp
    changed_at: Timestamp
    due_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    why: Annotated[str | None, Meta(description="Why it paused by itself.")]
    listed: Annotated[int, Meta(description="Recipients on its list.")]
    step: Annotated[int, Meta(description="The step of the ramp that it is in; 0 before it begins.")]
    steps: int
    jobs: Annotated[tuple[Id, ...], Meta(description="The bulk jobs of the steps begun so far.")]
    enqueued: int
    left_out: Annotated[int, Meta(description="Recipients who had opted out or been erased; they are in no count.")]
    counts: dict[NotificationStatus, int]
    per_second: Annotated[float, Meta(description="Recipients settled per second of the time that it ran.")]
    seconds_left: Annotated[
        int | None, Meta(description="Estimated seconds to the end, with the ramp's waits; null while unknown.")
    ]
    asked: CampaignSubmission


class CampaignPage(Struct, frozen=True):
    """Campaigns, by name."""

    items: tuple[CampaignView, ...]
    next: Cursor


class ForecastView(Struct, frozen=True):
    """A forecast of a campaign; counts are estimates from a sample unless it is `exact`."""

    begins_at: Timestamp
    ends_at: Annotated[Timestamp | None, Meta(description="null where neither a rate nor a limit says how fast it is.")]
    recipients: int
    left_out: Annotated[int, Meta(description="Recipients who opted out of bulk sends.")]
    sampled: int
    exact: bool
    users: Annotated[
        dict[str, int],
        Meta(description="Users by what becomes of them: `sent`, `held_back`, `suppressed`, `no_targets`, `expired`."),
    ]
    channels: tuple[ForecastChannel, ...]
    held_back: Annotated[dict[str, int], Meta(description="Targets that wait at first, by the rule that says so.")]
    held_until: Annotated[Timestamp | None, Meta(description="The end of the longest such wait.")]
    variants: Annotated[dict[str, int], Meta(description="Users by variant.")]
    dead_tokens: Annotated[
        int, Meta(description="Deliveries to devices not seen for 270 days, whose tokens are likely to be dead.")
    ]
    sms_segments: int
    sms_price: float
    quota: tuple[ForecastQuota, ...]


def forecast_view(made: Forecast) -> ForecastView:
    """Describe a forecast."""
    fields = {name: getattr(made, name) for name in Forecast.__struct_fields__}
    times = {name: _time(fields[name]) for name in ("begins_at", "ends_at", "held_until")}
    return ForecastView(**fields | times)


_UNSETTLED = (NotificationStatus.PENDING, NotificationStatus.PROCESSING)


def campaign_view(campaign: Campaign, records: Sequence[JobRecord], now: Instant) -> CampaignView:
    """Describe a campaign whose jobs stand as in *records*."""
    counts = counts_of(records)
    settled = sum(n for status, n in counts.items() if status not in _UNSETTLED)
    per_second = settled * 1000 / max(1, campaign.ran_until(now))
    return CampaignView(
        name=campaign.name,
        state=campaign.state,
        changed_by=campaign.by,
        approved_by=campaign.approved_by,
        created_at=isoformat(campaign.created_at),
        changed_at=isoformat(campaign.changed_at),
        due_at=_time(campaign.due_at),
        started_at=_time(campaign.started_at),
        finished_at=_time(campaign.finished_at),
        why=campaign.why,
        listed=campaign.listed,
        step=len(campaign.jobs),
        steps=len(campaign.parts),
        jobs=tuple(format_id(NotificationId(job)) for job in campaign.jobs),
        enqueued=sum(each.total for each in records),
        left_out=sum(each.left_out for each in records),
        counts=dict(counts),
        per_second=round(per_second, 1),
        seconds_left=_seconds_left(campaign, records, settled, per_second),
        asked=campaign.asked,
    )


def _time(at: Instant | None) -> Timestamp | None:
    return None if at is None else isoformat(at)


def _seconds_left(campaign: Campaign, records: Sequence[JobRecord], settled: int, per_second: float) -> int | None:
    """Estimate the time to the end at the present speed, with the waits between the steps that are still to come."""
    if campaign.state in ENDED:
        return 0
    everyone = _everyone(campaign, records)
    if campaign.state is not CampaignState.RUNNING or everyone is None or not per_second:
        return None
    speed = per_second if campaign.asked.rate is None or campaign.asked.ramp is None else campaign.asked.rate
    holds = 0 if campaign.asked.ramp is None else campaign.asked.ramp.hold * (len(campaign.parts) - len(campaign.jobs))
    return round(max(0, everyone - settled) / speed) + holds


def _everyone(campaign: Campaign, records: Sequence[JobRecord]) -> float | None:
    """Return how many there are in all: known of a list, estimated from the steps that were walked of a registry."""
    if campaign.has_list:
        return campaign.listed - sum(each.left_out for each in records)
    walked = [part.until - part.after for part, each in zip(campaign.parts, records, strict=False) if each.walked]
    found = sum(each.total for each in records if each.walked)
    return found * 100 / sum(walked) if walked else None

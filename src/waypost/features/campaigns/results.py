"""Results: what became of each variant of a campaign, and whether one is better than another."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.domain.campaign import Campaign, Metric
from waypost.domain.experiment import Arm, ArmResult, Verdict, result_of
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import CampaignName
from waypost.domain.time import later
from waypost.domain.tracked import SLOT_MS, NotificationEvent
from waypost.domain.variants import HOLDOUT, Split, Variant, variant_for
from waypost.features.parts import Ground
from waypost.ports.analytics import CountQuery

_EVENT_OF: Final = {Metric.OPENED: NotificationEvent.OPENED, Metric.ACTION: NotificationEvent.ACTION_TAKEN}
_SENT: Final = frozenset({NotificationStatus.SENT, NotificationStatus.PARTIAL, NotificationStatus.DELIVERED})


class VariantView(Struct, frozen=True):
    """A variant: what became of it, and how its successes compare with the first variant's."""

    name: str
    weight: int
    sent: Annotated[int, Meta(description="Users whose notification a provider took.")]
    delivered: int
    opened: int
    actions: int
    successes: Annotated[int, Meta(description="Users who did what the campaign's metric counts.")]
    rate: Annotated[float | None, Meta(description="Successes by users sent to.")]
    verdict: Verdict
    lift: Annotated[
        float | None,
        Meta(description="Successes for its weight against those of the first variant: 0.1 is a tenth more."),
    ]
    lift_from: float | None
    lift_to: float | None
    p: Annotated[float | None, Meta(description="Valid at every look, and corrected for the number of variants.")]


class ResultsView(Struct, frozen=True):
    """The results of a campaign so far."""

    name: CampaignName
    metric: Metric
    conversion: str | None
    verdict: Annotated[
        Verdict | None, Meta(description="`not_enough_yet` until some variant differs; null without another variant.")
    ]
    is_split_right: Annotated[
        bool, Meta(description="False where the variants were not told to as many as their weights say: trust nothing.")
    ]
    variants: Annotated[
        tuple[VariantView, ...],
        Meta(description="The first is what others are compared with; `all` is a campaign without."),
    ]


async def results(ground: Ground, campaign: Campaign) -> ResultsView:
    """Count what became of each variant, and compare."""
    message = campaign.asked.notification
    weights = {each.name: each.weight for each in message.variants} or {"": 1}
    funnel = await _funnel(ground, campaign)
    successes = await _successes(ground, campaign, funnel)
    arms = [
        Arm(name, weight, funnel[name, NotificationEvent.SENT], successes[name]) for name, weight in weights.items()
    ]
    if campaign.asked.metric is Metric.CONVERSION and message.holdout:
        weight = sum(weights.values()) * message.holdout / (100 - message.holdout)
        arms.append(Arm(HOLDOUT, weight, None, successes[HOLDOUT]))
    result = result_of(arms)
    return ResultsView(
        campaign.name,
        campaign.asked.metric,
        campaign.asked.conversion,
        result.verdict if len(arms) > 1 else None,
        result.is_split_right,
        tuple(_variant(arm, weights.get(arm.name, 0), funnel) for arm in result.arms),
    )


_Funnel = Counter[tuple[str, NotificationEvent]]


async def _funnel(ground: Ground, campaign: Campaign) -> _Funnel:
    """Count users by variant and event."""
    since = campaign.started_at or campaign.created_at
    until = later(ground.clock.now(), SLOT_MS)
    query = CountQuery(campaign.app, since, until, {"campaign": campaign.name}, by="variant")
    funnel: _Funnel = Counter()
    for each in await ground.store.analytics.counts(query):
        funnel[each.label or "", each.event] += each.notifications
    return funnel


async def _successes(ground: Ground, campaign: Campaign, funnel: _Funnel) -> Counter[str]:
    metric, split = campaign.asked.metric, _split(campaign)
    if metric is not Metric.CONVERSION:
        event = _EVENT_OF[metric]
        return Counter({name: n for (name, of), n in funnel.items() if of is event})
    successes: Counter[str] = Counter()
    for job in campaign.jobs:
        for user, status in await ground.store.conversions.of(campaign.app, job, campaign.asked.conversion or ""):
            variant = "" if split is None else variant_for(split, campaign.name, user)
            if status in _SENT or (variant == HOLDOUT and status is NotificationStatus.SUPPRESSED):
                successes[variant] += 1
    return successes


def _split(campaign: Campaign) -> Split | None:
    message = campaign.asked.notification
    if not message.variants:
        return None
    return Split(tuple(Variant(each.name, each.weight) for each in message.variants), message.holdout)


def _variant(arm: ArmResult, weight: int, funnel: _Funnel) -> VariantView:
    return VariantView(
        arm.name or "all",
        weight,
        funnel[arm.name, NotificationEvent.SENT],
        funnel[arm.name, NotificationEvent.DELIVERED],
        funnel[arm.name, NotificationEvent.OPENED],
        funnel[arm.name, NotificationEvent.ACTION_TAKEN],
        arm.successes,
        arm.rate,
        arm.verdict,
        arm.lift,
        arm.lift_from,
        arm.lift_to,
        arm.p,
    )

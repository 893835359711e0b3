"""Capping: each notification that a cap counts is counted before it is sent, and held back where that is too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.domain.capping import Claim, Full, Verdicts
from waypost.domain.channel import PUSH, Channel
from waypost.domain.delivery import Delivery
from waypost.domain.ids import NotificationId
from waypost.domain.recipient import Recipient
from waypost.domain.routing import condition_of
from waypost.domain.settlement import Parked, Suppressed
from waypost.domain.time import Instant
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import FEATURE, FREQUENCY_LIMIT, Facts, may_be_second
from waypost.features.preferences.degrading import copy_id, degraded, put_into_feed
from waypost.pipeline.route import Plan, held_back


async def claims(ground: Ground, plans: Sequence[Plan], found: Mapping[NotificationId, Recipient]) -> Sequence[Plan]:
    """Count what of *plans* has a cap, all in one transaction, and hold back what is over it."""
    now = ground.clock.now()
    plans = await _without_degraded(ground, plans, found, now)
    asked = {n: claim for n, plan in enumerate(plans) if (claim := _claim(ground, plan, found, now)) is not None}
    if not asked:
        return plans
    verdicts = dict(zip(asked, await ground.store.frequency.claim(list(asked.values())), strict=True))
    held = {n: _held(ground, plans[n], verdicts[n]) for n in asked}
    over = [plans[n].item.notification for n in asked if _degrades(ground, plans[n], verdicts[n])]
    await put_into_feed(ground, over, now)
    return [held_back(plan, held[n], now) if held.get(n) else plan for n, plan in enumerate(plans)]


async def _without_degraded(
    ground: Ground, plans: Sequence[Plan], found: Mapping[NotificationId, Recipient], now: Instant
) -> Sequence[Plan]:
    """Hold back what whoever died had put into the feed: it was leased again, when there may be room."""
    may_be = {n: loud for n, plan in enumerate(plans) if (loud := _may_be_in_feed(ground, plan, found, now))}
    copies = {copy_id(plans[n].item.notification.id): n for n in may_be}
    there = await ground.store.frequency.accepted(list(copies)) if copies else set()
    held = {n: may_be[n] for copy, n in copies.items() if copy in there}
    return [held_back(plan, held[n], now) if n in held else plan for n, plan in enumerate(plans)] if held else plans


def _may_be_in_feed(
    ground: Ground, plan: Plan, found: Mapping[NotificationId, Recipient], now: Instant
) -> dict[int, Suppressed | Parked]:
    """Return the deliveries in whose place a copy may be in the feed: those that may degrade."""
    notification = plan.item.notification
    known = found[notification.id].facts.get(FEATURE) if plan.deliveries else None
    if not isinstance(known, Facts) or known.capped is None or not may_be_second(notification, now):
        return {}
    capped, end = known.capped, degraded(notification)
    return {
        each.n: end
        for each in plan.deliveries
        if each.channel != FEED and capped.may_degrade(_family(ground, each.channel))
    }


def _claim(ground: Ground, plan: Plan, found: Mapping[NotificationId, Recipient], now: Instant) -> Claim | None:
    notification = plan.item.notification
    known = found[notification.id].facts.get(FEATURE) if plan.deliveries else None
    if not isinstance(known, Facts) or known.capped is None:
        return None
    channels = frozenset(_family(ground, each.channel) for each in plan.deliveries if each.channel != FEED)
    if not channels:
        return None
    claim = Claim(notification.app, notification.user_id, notification.id, known.capped, channels, now)
    return claim if claim.is_asked else None


def _family(ground: Ground, channel: Channel) -> str:
    return ground.families.get(channel, PUSH)


def _fulls(ground: Ground, plan: Plan, verdicts: Verdicts) -> Iterator[tuple[Delivery, Full]]:
    """Yield the deliveries of *plan* that are over a cap; a feed disturbs nobody."""
    for each in plan.deliveries:
        full = None if each.channel == FEED else verdicts.of(_family(ground, each.channel))
        if full is not None:
            yield each, full


def _degrades(ground: Ground, plan: Plan, verdicts: Verdicts) -> bool:
    return any(full.degrades for _, full in _fulls(ground, plan, verdicts))


def _held(ground: Ground, plan: Plan, verdicts: Verdicts) -> dict[int, Suppressed | Parked]:
    """Return what becomes of each delivery that is over a cap."""
    notification = plan.item.notification
    return {
        each.n: degraded(notification) if full.degrades else _verdict(full, each.message.expires_at)
        for each, full in _fulls(ground, plan, verdicts)
    }


def _verdict(full: Full, expires_at: Instant) -> Suppressed | Parked:
    if full.until is None:
        return Suppressed(FREQUENCY_LIMIT)
    return Parked(condition_of(FREQUENCY_LIMIT), min(full.until, expires_at))

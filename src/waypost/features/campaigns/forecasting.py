"""Forecasting: a campaign's users go through the decisions of routing, as they would when their turn comes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from waypost.domain.best_time import Habits, is_best
from waypost.domain.bulk import PAGE, BulkJob, notification_for, variables_for
from waypost.domain.campaign import Campaign
from waypost.domain.delivery import Delivery
from waypost.domain.device import Device
from waypost.domain.forecast import Forecast, Planned, Sample, Tally, turn_of
from waypost.domain.ids import UserId
from waypost.domain.profile import NOBODY
from waypost.domain.recipient import Recipient
from waypost.domain.time import Instant
from waypost.features.campaigns.jobs import drafted
from waypost.features.parts import Ground
from waypost.pipeline.best_hours import CountedHours
from waypost.pipeline.explain import Explain
from waypost.pipeline.route import plan
from waypost.ports.work import WorkItem
from waypost.runtime.clock import RandomIds

_Clock = tuple[str | None, Habits]
"""The zone of a user, and when they read."""
_AT_ONCE: Final = 200
"""Users that are decided about before others have their turn."""
_SEGMENTS: Final = "x-segments"
"""The header in which a rendered SMS says how many segments it has."""


async def forecast(ground: Ground, explain: Explain, campaign: Campaign) -> Forecast:
    """Say what *campaign* would do if it began at its time, or now; nothing is stored or sent."""
    now = ground.clock.now()
    begins_at = max(campaign.due_at or now, now)
    (new_id,) = RandomIds(ground.clock).next(1)
    job = drafted(campaign, new_id, ground, begins_at)
    own: dict[str, dict[str, str]] = {}
    sample = await _sampled(ground, campaign, job, own)
    tally = Tally(lambda delivery: _segments(explain, delivery))
    chosen = [UserId(user) for user in sorted(sample.chosen)]
    for start in range(0, len(chosen), _AT_ONCE):
        users = chosen[start : start + _AT_ONCE]
        devices = await _devices(ground, explain, job, users)
        clocks = await _clocks(ground, job, users)
        items = [
            _item(job, user, own.get(user, {}), devices.get(user, ()), clocks.get(user, (None, ())), begins_at)
            for user in users
        ]
        facts = None if explain.facts is None else await explain.facts([each.notification for each in items])
        for n, item in enumerate(items):
            user = item.notification.user_id
            turn = turn_of(campaign, sample.recipients, user, start + n, len(chosen), begins_at)
            turn = max(turn, item.notification.scheduled_at or turn)
            recipient = Recipient(item.devices or (), {} if facts is None else facts[n])
            tally.add(_planned(item, recipient, explain, turn), turn)
        await asyncio.sleep(0)
    app = ground.config.apps[campaign.app]
    limits = {slot: each.refill_per_s for slot, each in app.rates.items() if each.refill_per_s is not None}
    return tally.forecast(campaign, sample, begins_at, limits, app.campaigns.sms_price)


async def _sampled(ground: Ground, campaign: Campaign, job: BulkJob, own: dict[str, dict[str, str]]) -> Sample:
    """Walk the audience and choose some; *own* gets the variables of those chosen from a list."""
    sample, after, is_last = Sample(), UserId(""), False
    while not is_last:
        if not campaign.has_list:
            page = await ground.store.audience_walk.page(job, after, PAGE)
            sample.add(page.found)
            after, is_last = page.until, page.is_last
            continue
        listed = await ground.store.campaigns.listed(campaign.app, campaign.name, after, PAGE)
        sample.add((each.user_id, is_out) for each, is_out in listed)
        kept = set(sample.chosen)
        own.update((each.user_id, each.variables) for each, _ in listed if each.user_id in kept)
        after, is_last = listed[-1][0].user_id if listed else after, len(listed) < PAGE
    return sample


async def _devices(
    ground: Ground, explain: Explain, job: BulkJob, users: Sequence[UserId]
) -> Mapping[UserId, Sequence[Device]]:
    if job.registry is not None:
        return await ground.store.audience_walk.devices(job, users)
    found = await explain.devices.for_users([(job.app, user) for user in users])
    return dict(zip(users, found, strict=True))


async def _clocks(ground: Ground, job: BulkJob, users: Sequence[UserId]) -> Mapping[UserId, _Clock]:
    """Read the zones of users, and when they read, where the job has a local time, or the best one."""
    if job.send_at is None:
        return {}
    found = await ground.store.profiles.of(job.app, users)
    best, alike = users if is_best(job.send_at) else (), users if job.segment is not None else ()
    habits = await CountedHours(ground.store.analytics, ground.clock).habits(job.app, best, alike) if best else {}
    return {user: (found.get(user, NOBODY).time_zone, habits.get(user, ())) for user in users}


def _item(
    job: BulkJob, user: UserId, own: Mapping[str, str], devices: Sequence[Device], clock: _Clock, begins_at: Instant
) -> WorkItem:
    told = notification_for(job, 0, user, variables_for(job, own, user), *clock, begins_at)
    return WorkItem(told, None, tuple(devices))


def _planned(item: WorkItem, recipient: Recipient, explain: Explain, now: Instant) -> Planned:
    made = plan(item, recipient, explain.routing, now)
    notification = item.notification
    decided = made.deliveries, made.changes, made.targets or (), made.verdict
    return Planned(*decided, notification.content.variant, notification.scheduled_at)


def _segments(explain: Explain, delivery: Delivery) -> int:
    sender = explain.senders.get(delivery.credential)
    if sender is None or delivery.channel != "sms":
        return 0
    return int(sender.render(delivery).headers.get(_SEGMENTS, "0"))

"""Running: one process at a time begins campaigns whose time has come, and takes each from step to step."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from waypost.domain.bulk import JobState
from waypost.domain.campaign import (
    Campaign,
    CampaignOrder,
    CampaignState,
    Step,
    counted,
    next_step,
    ordered,
    why_stopped,
)
from waypost.domain.errors import Unavailable
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.campaigns.jobs import align, begin_step, counts_of, records_of
from waypost.features.parts import Ground
from waypost.pipeline.sweep import PAGE
from waypost.ports.bulk import JobRecord
from waypost.runtime.ticker import UNTIL_WRITTEN, Rest
from waypost.telemetry import Event

TEND_S: Final = 0.5
_OVER: Final = frozenset({JobState.FINISHED, JobState.CANCELLED})


async def tend(ground: Ground) -> Rest | None:
    """Take every open campaign on; where one fails it is paused, and the others go on."""
    found = await ground.store.campaigns.open()
    for campaign in found:
        try:
            await tend_one(ground, campaign)
        except Unavailable:
            raise
        except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
            await _stop(ground, campaign, f"its step ended with {type(surprise).__name__}")
    return None if found else UNTIL_WRITTEN


async def tend_one(ground: Ground, campaign: Campaign) -> None:
    """Take one campaign on, as far as it can go now."""
    now = ground.clock.now()
    if campaign.state is CampaignState.SCHEDULED:
        if campaign.due_at is not None and campaign.due_at > now:
            return
        begun = ordered(campaign, CampaignOrder.BEGIN, now)
        if begun is None or not await ground.store.campaigns.save(begun, campaign.revision):
            return
        campaign = begun
    if campaign.state is CampaignState.RUNNING and not campaign.jobs:
        await begin_step(ground, campaign)
        return
    records = await records_of(ground, campaign)
    failed = next((each.failure for each in records if each.state is JobState.FAILED), None)
    if failed is not None and campaign.state is CampaignState.RUNNING:
        await _stop(ground, campaign, f"its list or registry could not be read: {failed}")
        return
    await align(ground, campaign, records)
    if campaign.state is CampaignState.RUNNING:
        await _go_on(ground, campaign, records, now)
    elif campaign.state in (CampaignState.DONE, CampaignState.CANCELLED):
        await _clear(ground, campaign, records)


async def _go_on(ground: Ground, campaign: Campaign, records: list[JobRecord], now: Instant) -> None:
    so_far, told = counted(counts_of(records)), records[-1].walked
    if told and campaign.told_at is None:
        noted = replace(campaign, told_at=now, revision=campaign.revision + 1)
        if not await ground.store.campaigns.save(noted, campaign.revision):
            return
        campaign = noted
    ended = all(each.state is JobState.FINISHED for each in records)
    match next_step(campaign, so_far, told=told, ended=ended, now=now):
        case Step.STOP:
            await _stop(ground, campaign, why_stopped(campaign, so_far))
            await align(ground, replace(campaign, state=CampaignState.PAUSED), records)
        case Step.NEXT:
            await begin_step(ground, campaign)
        case Step.FINISH:
            done = ordered(campaign, CampaignOrder.FINISH, now)
            if done is not None:
                await ground.store.campaigns.save(done, campaign.revision)
        case Step.WAIT:
            pass


async def _stop(ground: Ground, campaign: Campaign, why: str) -> None:
    """Pause a campaign that a person should look at; its jobs follow when it is looked at next."""
    paused = ordered(campaign, CampaignOrder.PAUSE, ground.clock.now())
    if paused is None or not await ground.store.campaigns.save(replace(paused, why=why), campaign.revision):
        return
    ground.telemetry.event(Event.CAMPAIGN_STOPPED, app=campaign.app, campaign=campaign.name, why=why)


async def _clear(ground: Ground, campaign: Campaign, records: list[JobRecord]) -> None:
    """Delete the list of a campaign that is over, and look at it no more once nothing is left to do."""
    dropped = await ground.store.campaigns.drop_list(campaign.app, campaign.name, PAGE)
    if dropped < PAGE and all(each.state in _OVER for each in records):
        await ground.store.campaigns.close(campaign.app, campaign.name)


async def drop_old(ground: Ground, now: Instant) -> int:
    """Delete campaigns that ended longer ago than ``retention.notifications_days``."""
    before = later(now, -ground.config.retention.notifications_days * DAY_MS)
    return await ground.store.campaigns.drop_before(before, PAGE)

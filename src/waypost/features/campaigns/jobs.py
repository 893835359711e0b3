"""The bulk jobs of a campaign: one for each step of its ramp, made once whatever dies, and moved as the campaign is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from waypost.domain.bulk import BulkJob, JobId, JobOrder, JobState
from waypost.domain.bulk_submission import BulkMessage, BulkSubmission, draft_job
from waypost.domain.campaign import Campaign, CampaignState
from waypost.domain.drafting import ContentCheck
from waypost.domain.ids import NotificationId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.variants import Part
from waypost.features.parts import Ground
from waypost.ports.bulk import JobCreated, JobRecord
from waypost.runtime.clock import RandomIds

LIST_PAGE: Final = 1_000
"""Recipients of a list that are copied together."""
_SAME: Final = b"campaign"
"""The hash of every body: a key names the step of one campaign, and nothing else can be asked for by it."""


def drafted(
    campaign: Campaign, new_id: NotificationId, ground: Ground, now: Instant, checks: Sequence[ContentCheck] = ()
) -> BulkJob:
    """Build the job that a campaign asks for; InvalidRequest names every fault of it."""
    asked = campaign.asked
    said = BulkMessage(**{name: getattr(asked.notification, name) for name in BulkMessage.__struct_fields__})
    plain = BulkSubmission(
        notification=replace(said, campaign=campaign.name),
        upload=asked.upload,
        registry=asked.registry,
        to=asked.to,
        variables=asked.variables,
        rate=asked.rate,
    )
    app = ground.config.apps[campaign.app]
    rules = app.typed_defaults, now, checks, campaign.chosen
    return draft_job(plain, new_id, campaign.app, campaign.by, *rules, zone=app.time_zone, version=campaign.version)


async def records_of(ground: Ground, campaign: Campaign) -> list[JobRecord]:
    """Read how the jobs of a campaign stand."""
    found = [await ground.store.bulk_views.show(campaign.app, job) for job in campaign.jobs]
    return [each for each in found if each is not None]


def counts_of(records: Sequence[JobRecord]) -> Counter[NotificationStatus]:
    """Add up the recipients of all jobs by their notifications' status."""
    counts: Counter[NotificationStatus] = Counter()
    for each in records:
        counts.update(each.counts)
    return counts


async def begin_step(ground: Ground, campaign: Campaign) -> Campaign | None:
    """Make the job of the next step with its list, and start it; None where the campaign was changed meanwhile.

    Whoever dies on the way left a job that waits, and the next one makes the same again.
    """
    part = campaign.parts[len(campaign.jobs)]
    (new_id,) = RandomIds(ground.clock).next(1)
    job = replace(
        drafted(campaign, new_id, ground, ground.clock.now()),
        part=None if campaign.has_list else part,
        held=True,
    )
    made = await ground.store.bulk.create(job, _key(campaign, part), _SAME)
    assert isinstance(made, JobCreated), "no other body has this key"
    own = made.record.job.id
    if campaign.has_list and made.record.state is JobState.UPLOADING:
        await _copy_list(ground, campaign, own, part)
    begun = replace(campaign, jobs=(*campaign.jobs, own), told_at=None, revision=campaign.revision + 1)
    if not await ground.store.campaigns.save(begun, campaign.revision):
        return None
    await ground.store.bulk.order(campaign.app, own, JobOrder.START, ground.clock.now())
    return begun


async def _copy_list(ground: Ground, campaign: Campaign, job: JobId, part: Part) -> None:
    """Give the job its part of the campaign's list."""
    after = ""
    while page := await ground.store.campaigns.recipients(campaign.app, campaign.name, after, LIST_PAGE):
        after = page[-1].user_id
        mine = [each for each in page if part.has(each.user_id)]
        if mine:
            await ground.store.bulk.add(campaign.app, job, mine)


async def align(ground: Ground, campaign: Campaign, records: Sequence[JobRecord]) -> None:
    """Bring jobs that do not stand as their campaign does to where they should be."""
    for each in records:
        order = _ORDERS[campaign.state].get(each.state)
        if order is not None:
            await ground.store.bulk.order(campaign.app, each.job.id, order, ground.clock.now())


_CANCEL: Final = dict.fromkeys(
    (JobState.UPLOADING, JobState.RUNNING, JobState.PAUSED, JobState.FAILED), JobOrder.CANCEL
)
_ORDERS: Final[dict[CampaignState, dict[JobState, JobOrder]]] = {state: {} for state in CampaignState} | {
    CampaignState.RUNNING: {
        JobState.UPLOADING: JobOrder.START,
        JobState.PAUSED: JobOrder.RESUME,
        JobState.FAILED: JobOrder.RESUME,
    },
    CampaignState.PAUSED: {JobState.RUNNING: JobOrder.PAUSE},
    CampaignState.CANCELLED: _CANCEL,
}
"""The order that a job gets whose campaign is in a state, by its own."""


def _key(campaign: Campaign, part: Part) -> bytes:
    """Make the key under which a step's job is made once."""
    named = f"{campaign.app}\0{campaign.name}\0{campaign.created_at}\0{part.after}"
    return hashlib.sha256(b"campaign\0" + named.encode()).digest()[:16]

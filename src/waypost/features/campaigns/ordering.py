"""Orders to campaigns: what people may do to one, and what becomes of its jobs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from waypost.domain.bulk import Recipient
from waypost.domain.bulk_submission import recipient_of
from waypost.domain.campaign import Campaign, CampaignOrder, CampaignState, CampaignSubmission, counted, ordered
from waypost.domain.drafting import ContentCheck
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound, Unavailable, WaypostError
from waypost.domain.ids import AppId, CallerId
from waypost.domain.segment import Filter
from waypost.domain.submission import CampaignName
from waypost.domain.template import Version, declared_only
from waypost.domain.time import Instant
from waypost.features.campaigns.jobs import LIST_PAGE, align, counts_of, drafted, records_of
from waypost.features.parts import Ground
from waypost.runtime.clock import RandomIds

_TRIES: Final = 20
"""The most attempts to change a campaign that others change at the same moment."""


async def found(ground: Ground, app: AppId, name: str) -> Campaign:
    """Return a campaign of the app; NotFound where it has none of that name."""
    campaign = await ground.store.campaigns.get(app, name)
    if campaign is None:
        raise NotFound("no such campaign")
    return campaign


async def put(
    ground: Ground,
    app: AppId,
    name: CampaignName,
    by: CallerId,
    asked: CampaignSubmission,
    checks: Sequence[ContentCheck] = (),
    chosen: Filter | None = None,
    version: Version | None = None,
) -> tuple[Campaign, bool]:
    """Make a draft, or change one; what was approved needs that again. Return it, and whether it is new.

    A list that was uploaded stays, unless the texts ask for other variables than before. *chosen* is the filter of its
    users, where it is ``to`` some; *version* is that of the template that it names.
    """
    _refuse(ground, name, asked)
    bare = None if version is None else declared_only(version)
    for _ in range(_TRIES):
        now, before = ground.clock.now(), await ground.store.campaigns.get(app, name)
        if before is None:
            first = Campaign(app, name, asked, by, now, now, chosen=chosen, version=bare)
        else:
            changed = ordered(before, CampaignOrder.CHANGE, now)
            if changed is None:
                raise _wrong(before)
            said = replace(changed, asked=asked, chosen=chosen, version=bare)
            first = replace(said, by=by, changed_at=now, approved_by=None, clearing=False)
        recipients = _list_of(ground, first, before, checks)
        if await _saved(ground, _with_list_apart(first), before, recipients):
            return await found(ground, app, name), before is None
    raise _busy()


async def _saved(
    ground: Ground, campaign: Campaign, before: Campaign | None, recipients: Sequence[Recipient] | None
) -> bool:
    """Save a campaign with its list; the list *before* is deleted by pages first, and meanwhile it cannot begin."""
    campaigns = ground.store.campaigns
    if before is None or recipients is None:
        return await campaigns.save(campaign, None if before is None else before.revision, recipients)
    if not await campaigns.save(replace(campaign, clearing=True), before.revision, ()):
        return False
    while await campaigns.clear_list(campaign.app, campaign.name, LIST_PAGE) == LIST_PAGE:
        pass
    return await campaigns.save(replace(campaign, revision=campaign.revision + 1), campaign.revision, recipients)


def _list_of(
    ground: Ground, campaign: Campaign, before: Campaign | None, checks: Sequence[ContentCheck]
) -> Sequence[Recipient] | None:
    """Return the list that comes with what was asked; None where the one before stays."""
    (new_id,) = RandomIds(ground.clock).next(1)
    job = drafted(_with_list_apart(campaign), new_id, ground, campaign.changed_at, checks)
    given = campaign.asked.recipients
    if given is not None:
        return [recipient_of(each, job, f"recipients[{n}]") for n, each in enumerate(given)]
    if not campaign.has_list or before is None or before.clearing:
        return ()
    asked_before = drafted(before, new_id, ground, campaign.changed_at)
    return None if set(job.names) <= set(asked_before.names) and before.has_list else ()


def _with_list_apart(campaign: Campaign) -> Campaign:
    """Return a campaign as it is stored: a list lies beside it, however it came."""
    is_list = campaign.asked.registry is None and campaign.asked.to is None
    return replace(campaign, asked=replace(campaign.asked, recipients=None, upload=is_list))


def _refuse(ground: Ground, name: CampaignName, asked: CampaignSubmission) -> None:
    faults = []
    if asked.registry is not None and ground.config.devices != "store":
        why = "the devices are kept in another database than the jobs: give recipients, or upload: true"
        faults.append(Fault("registry", why))
    given = (asked.recipients is not None, asked.upload, asked.registry is not None, asked.to is not None)
    if sum(given) != 1:
        faults.append(Fault("", "give recipients, or a registry filter, or to, or upload: true"))
    if asked.notification.campaign not in (None, name):
        faults.append(Fault("notification.campaign", "is the campaign's own name; leave it out"))
    if asked.ramp is not None and list(asked.ramp.steps) != sorted(set(asked.ramp.steps)):
        faults.append(Fault("ramp.steps", "must rise"))
    if (asked.conversion is not None) != (asked.metric == "conversion"):
        faults.append(Fault("conversion", "goes with the metric `conversion`"))
    if faults:
        raise InvalidRequest(tuple(faults))


async def order(
    ground: Ground, app: AppId, name: str, by: CallerId, what: CampaignOrder, at: Instant | None = None
) -> Campaign:
    """Carry an order out, or explain why that is impossible; its jobs follow at once."""
    for _ in range(_TRIES):
        now, before = ground.clock.now(), await found(ground, app, name)
        after = await _after(ground, before, by, what, at, now)
        if after is before or await ground.store.campaigns.save(after, before.revision):
            await align(ground, after, await records_of(ground, after))
            return after
    raise _busy()


async def _after(
    ground: Ground, before: Campaign, by: CallerId, what: CampaignOrder, at: Instant | None, now: Instant
) -> Campaign:
    after = ordered(before, what, now)
    if after is None:
        raise _wrong(before)
    needs_approval = ground.config.apps[before.app].campaigns.approval
    if what is CampaignOrder.APPROVE:
        if needs_approval and by == before.by:
            raise WaypostError("somebody else than who changed it last must approve it", ErrorCode.FORBIDDEN)
        return after if after is before else replace(after, approved_by=by)
    if what is CampaignOrder.SCHEDULE:
        if needs_approval and before.state is CampaignState.DRAFT:
            raise WaypostError("the campaign must be approved first", ErrorCode.WRONG_STATE)
        if before.has_list and not before.listed:
            raise WaypostError("the campaign has no recipients yet", ErrorCode.WRONG_STATE)
        return replace(after, due_at=now if at is None else at)
    if what is CampaignOrder.RESUME and after is not before:
        return replace(after, forgiven=counted(counts_of(await records_of(ground, before))))
    return after


def _wrong(campaign: Campaign) -> WaypostError:
    return WaypostError(f"the campaign is {campaign.state}", ErrorCode.WRONG_STATE)


def _busy() -> Unavailable:
    return Unavailable("the campaign is being changed by others")

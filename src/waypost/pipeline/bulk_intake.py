"""Bulk intake: from what a caller asks of many recipients to a job, its list and the orders that move it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct

from waypost.domain.bulk import JOB_TRANSITIONS, JobId, JobOrder, JobState, Recipient
from waypost.domain.bulk_submission import BulkSubmission, BulkTarget, draft_job, recipient_of
from waypost.domain.dedup import body_hash, idempotency_key
from waypost.domain.drafting import ContentCheck
from waypost.domain.errors import Conflict, ErrorCode, Fault, InvalidRequest, NotFound, WaypostError
from waypost.domain.ids import AppId, CallerId, NotificationId, created_at, format_id
from waypost.domain.segment import Filter, filter_faults, is_in
from waypost.domain.submission import Defaults
from waypost.domain.template import Version
from waypost.ports.bulk import Bulk, BulkViews, JobConflict, JobCreated, JobRecord
from waypost.ports.clock import Clock, Ids
from waypost.ports.segments import Segments
from waypost.ports.templates import Templates

LIST_PAGE = 1_000
"""Recipients of a list that are written together."""


class BulkIntake(Struct, frozen=True):
    """The intake of bulk sends."""

    bulk: Bulk
    views: BulkViews
    clock: Clock
    ids: Ids
    templates: Templates
    defaults: Mapping[AppId, Defaults]
    checks: Mapping[AppId, Sequence[ContentCheck]] = {}
    """Of each app, what the channels that it has a credential for refuse."""
    walks_registry: bool = True
    """Whether the registry is where the jobs are, and may be walked for one."""
    zones: Mapping[AppId, str | None] = {}
    """The zone of each app's users who have none of their own."""
    segments: Segments | None = None
    """The filters that have names; None where there are none, and no job is ``to`` one."""

    async def submit(self, app: AppId, caller: CallerId, asked: BulkSubmission, key: str | None) -> JobCreated:
        """Make a job, once for each idempotency *key*; a list that came with it is stored before it starts.

        A repeat goes on where the first one may have been cut off.
        """
        if asked.registry is not None and not self.walks_registry:
            why = "the devices are kept in another database than the jobs: give recipients, or upload: true"
            raise InvalidRequest((Fault("registry", why),))
        (new_id,) = self.ids.next(1)
        now = created_at(new_id)  # to the millisecond: the ids of recipients lead back to it
        chosen = await self.chosen(app, asked.to)
        rules = self.defaults[app], now, self.checks.get(app, ())
        version = await self.version(app, asked)
        job = draft_job(asked, new_id, app, caller, *rules, chosen, zone=self.zones.get(app), version=version)
        told = [recipient_of(each, job, f"recipients[{n}]") for n, each in enumerate(asked.recipients or ())]
        claimed = None if key is None else idempotency_key(app, caller, f"bulk {key}")
        made = await self.bulk.create(job, claimed, body_hash(asked))
        if isinstance(made, JobConflict):
            first = format_id(NotificationId(made.first_id))
            raise Conflict(f"the idempotency key was used with another body, for the job {first}")
        if told and made.record.state is JobState.UPLOADING:
            for start in range(0, len(told), LIST_PAGE):
                await self.bulk.add(app, made.record.job.id, told[start : start + LIST_PAGE])
            return JobCreated(await self.order(app, made.record.job.id, JobOrder.START), made.new)
        return made

    async def chosen(self, app: AppId, to: BulkTarget | None) -> Filter | None:
        """Return the filter that *to* speaks of, as it is now; InvalidRequest where there is none, or it cannot be."""
        if to is None:
            return None
        if self.segments is None or sum(each is not None for each in (to.segment, to.topic, to.filter)) != 1:
            raise InvalidRequest((Fault("to", "give exactly one of segment, topic and filter"),))
        if to.topic is not None:
            return Filter(topic=to.topic)
        found = None if to.segment is None else await self.segments.find(app, to.segment)
        chosen, at = (to.filter, "to.filter") if found is None else (found.filter, "to.segment")
        if chosen is None:
            raise InvalidRequest((Fault("to.segment", "there is no such segment"),))
        faults = filter_faults(chosen, at)
        if not self.walks_registry and is_in(chosen, "device"):
            faults.append(Fault(at, "the devices are kept in another database than the jobs: ask for none"))
        if faults:
            raise InvalidRequest(tuple(faults))
        return chosen

    async def version(self, app: AppId, asked: BulkSubmission) -> Version | None:
        """Return the version of the template that *asked* names, as it is now; None where there is none."""
        named = asked.notification.template
        if named is None:
            return None
        wanted = named.name, named.version
        return (await self.templates.chosen(app, [wanted])).get(wanted)

    async def upload(self, app: AppId, job_id: JobId, given: AsyncIterator[tuple[str, object]]) -> JobRecord:
        """Store a list as it comes in, each recipient with where it stands, and start the job at its end.

        InvalidRequest at the first recipient that cannot be; then the job waits for its list again.
        """
        record = await self.show(app, job_id)
        page: list[Recipient] = []
        async for at, fields in given:
            page.append(recipient_of(fields, record.job, at))  # type: ignore[arg-type]  # checked there
            if len(page) == LIST_PAGE:
                await self._add(app, job_id, page)
                page = []
        await self._add(app, job_id, page)
        return await self.order(app, job_id, JobOrder.START)

    async def _add(self, app: AppId, job_id: JobId, page: Sequence[Recipient]) -> None:
        if not await self.bulk.add(app, job_id, page):
            raise WaypostError("the job takes no list, or has it already", ErrorCode.WRONG_STATE)

    async def order(self, app: AppId, job_id: JobId, order: JobOrder) -> JobRecord:
        """Carry an order out, or explain why that is impossible."""
        state = await self.bulk.order(app, job_id, order, self.clock.now())
        if state is not None and order not in JOB_TRANSITIONS[state]:
            raise WaypostError(f"the job is {state}", ErrorCode.WRONG_STATE)
        return await self.show(app, job_id)

    async def show(self, app: AppId, job_id: JobId) -> JobRecord:
        """Return a job of the app; NotFound where it has none of that id."""
        record = await self.views.show(app, job_id)
        if record is None:
            raise NotFound("no such job")
        return record

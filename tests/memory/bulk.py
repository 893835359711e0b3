"""Bulk jobs in memory: the shortest complete reading of the ports in ports/bulk.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from tests.memory.store import JobRow, LeasedPart, MemoryStore, Told
from waypost.domain.bulk import (
    ENDED,
    JOB_TRANSITIONS,
    PAGE,
    BulkJob,
    JobId,
    JobOrder,
    JobState,
    PageRow,
    Recipient,
    RegistryFilter,
    cut_page,
    notification_for,
    variables_for,
)
from waypost.domain.device import Device
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.status import FINAL, NotificationStatus
from waypost.domain.time import DAY_MS, Instant, later
from waypost.ports.bulk import Enqueued, JobConflict, JobCreated, JobRecord, RecipientRecord, Walking


class MemoryBulk:
    """The bulk jobs by their id; recipients who are enqueued wait in the store until they have their row."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def create(self, job: BulkJob, key: bytes | None, body_hash: bytes) -> JobCreated | JobConflict:
        """See Bulk."""
        for known in self._store.jobs.values():
            if key is not None and known.key == key:
                is_same = known.body_hash == body_hash
                return JobCreated(_record(self._store, known), new=False) if is_same else JobConflict(known.job.id)
        newest = max((row.job.created_at for row in self._store.jobs.values()), default=0)
        if job.created_at <= newest:
            at = Instant(newest + 1)
            job = msgspec.structs.replace(job, id=JobId(at.to_bytes(6, "big") + job.id[6:]), created_at=at)
        state = JobState.UPLOADING if job.has_list or job.held else JobState.RUNNING
        row = self._store.jobs[job.id] = JobRow(job, state, key, body_hash)
        return JobCreated(_record(self._store, row))

    async def add(self, app: AppId, job: JobId, recipients: Sequence[Recipient]) -> bool:
        """See Bulk."""
        row = _find(self._store, app, job)
        if row is None or row.state is not JobState.UPLOADING:
            return False
        row.recipients.update((each.user_id, each) for each in recipients)
        return True

    async def order(
        self, app: AppId, job: JobId, order: JobOrder, now: Instant, failure: str | None = None
    ) -> JobState | None:
        """See Bulk."""
        row = _find(self._store, app, job)
        if row is None:
            return None
        after = JOB_TRANSITIONS[row.state].get(order, row.state)
        if after in ENDED and row.finished_at is None:
            row.finished_at = now
        if after is not row.state:
            row.state, row.failure = after, failure
        return after

    async def running(self) -> list[Walking]:
        """See Bulk."""
        waits = Counter(told.job for told in self._store.told.values())
        rows = (row for row in self._store.jobs.values() if row.state is JobState.RUNNING)
        found = [Walking(row.job.id, row.job.app, row.job.rate, row.walked, waits[row.job.id]) for row in rows]
        return sorted(found, key=lambda each: each.waiting)

    async def enqueue(self, app: AppId, job: JobId, most: int, piece: int) -> Enqueued:
        """See Bulk."""
        row = _find(self._store, app, job)
        if row is None or row.state is not JobState.RUNNING or row.walked:
            return Enqueued(0, moved=False)
        everyone = sorted(user for user in self._everyone(row) if user > row.walked_to)
        out = self._store.opted_out
        page = [PageRow(user, bool(self._chosen(row, user)), (app, user) in out, 1) for user in everyone[:PAGE]]
        pieces, left_out, until = cut_page(page, row.walked_to, most, piece)
        for n, each in enumerate(pieces, start=row.pieces):
            for user in everyone:
                if each.after < user <= each.until and self._chosen(row, user) and (app, user) not in out:
                    self._tell(row, n, user)
        total = sum(each.expected for each in pieces)
        row.pieces, row.total, row.left_out = row.pieces + len(pieces), row.total + total, row.left_out + left_out
        row.walked, row.walked_to = not everyone or until == everyone[-1], until
        return Enqueued(total, moved=True, walked=row.walked)

    def _everyone(self, row: JobRow) -> Iterable[UserId]:
        if row.job.registry is None:
            return row.recipients
        return {device.user_id for device in self._store.devices.values() if device.app == row.job.app}

    def _chosen(self, row: JobRow, user: UserId) -> bool:
        if row.job.part is not None and not row.job.part.has(user):
            return False
        return row.job.registry is None or bool(self._devices(row.job, user))

    def _devices(self, job: BulkJob, user: UserId) -> tuple[Device, ...]:
        """List the user's devices that the job is for."""
        owned = [each for each in self._store.devices.values() if (each.app, each.user_id) == (job.app, user)]
        usable = [each for each in owned if each.active and each.token_use is job.token_use]
        chosen = usable if job.registry is None else [each for each in usable if _matches(each, job.registry)]
        return tuple(sorted(chosen, key=lambda device: (device.platform, device.device_id)))

    def _tell(self, row: JobRow, n: int, user: UserId) -> None:
        own = row.recipients[user].variables if row.job.registry is None else {}
        made = notification_for(row.job, n, user, variables_for(row.job, own, user))
        self._store.told[made.id] = Told(row.job.id, made, self._devices(row.job, user))

    async def tidy(self, now: Instant, n: int) -> list[tuple[AppId, NotificationId]]:
        """See Bulk."""
        _leave_out(self._store, now)
        for row in self._store.jobs.values():
            if row.state is JobState.UPLOADING and row.job.created_at < later(now, -DAY_MS):
                row.state, row.finished_at = JobState.CANCELLED, now
            is_open = any(told.job == row.job.id for told in self._store.told.values()) or any(
                of_job.job == row.job.id for of_job in self._store.open.values()
            )
            if row.walked and row.state not in ENDED and not is_open:
                row.state, row.finished_at = JobState.FINISHED, now
        cancelled = {row.job.id for row in self._store.jobs.values() if row.state is JobState.CANCELLED}
        left = (row for row in self._store.open.values() if row.job in cancelled and row.withdrawn is None)
        return [(row.notification.app, row.notification.id) for row in left][:n]

    async def drop_before(self, before: Instant) -> int:
        """See Bulk."""
        kept = {row.job for row in self._store.rows.values()}
        old = [
            job
            for job, row in self._store.jobs.items()
            if job not in kept and row.finished_at is not None and row.finished_at < before
        ]
        for job in old:
            del self._store.jobs[job]
        return len(old)


class MemoryBulkViews:
    """See BulkViews."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def show(self, app: AppId, job: JobId) -> JobRecord | None:
        """See BulkViews."""
        row = _find(self._store, app, job)
        return None if row is None else _record(self._store, row)

    async def list(self, app: AppId, before: JobId | None, n: int) -> list[JobRecord]:
        """See BulkViews."""
        rows = (row for row in self._store.jobs.values() if row.job.app == app)
        older = [row for row in rows if before is None or row.job.id < before]
        newest_first = sorted(older, key=lambda row: row.job.id, reverse=True)
        return [_record(self._store, row) for row in newest_first[:n]]

    async def recipient(self, app: AppId, job: JobId, user_id: UserId) -> RecipientRecord | None:
        """See BulkViews."""
        row = _find(self._store, app, job)
        if row is None:
            return None
        for stored in self._store.rows.values():
            if stored.job == job and stored.notification.user_id == user_id:
                status = stored.status if stored.status in FINAL else NotificationStatus.PROCESSING
                return RecipientRecord(status, stored.notification.id)
        is_cancelled = row.state is JobState.CANCELLED
        waits = NotificationStatus.CANCELLED if is_cancelled else NotificationStatus.PENDING
        for told in self._store.told.values():
            if told.job == job and told.notification.user_id == user_id:
                return RecipientRecord(waits, told.notification.id)
        return RecipientRecord(waits) if user_id in row.recipients and not row.walked else None


class MemoryOptOuts:
    """See OptOuts."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def put(self, app: AppId, user_id: UserId, at: Instant) -> None:
        """See OptOuts."""
        self._store.opted_out.add((app, user_id))

    async def remove(self, app: AppId, user_id: UserId) -> bool:
        """See OptOuts."""
        known = (app, user_id) in self._store.opted_out
        self._store.opted_out.discard((app, user_id))
        return known

    async def has(self, app: AppId, user_id: UserId) -> bool:
        """See OptOuts."""
        return (app, user_id) in self._store.opted_out


def waiting(store: MemoryStore, now: Instant) -> list[Told]:
    """List recipients of running jobs whom nobody has leased, less those who opted out since they were enqueued."""
    _leave_out(store, now)
    return [
        told
        for told in store.told.values()
        if store.jobs[told.job].state is JobState.RUNNING and not store.is_held(LeasedPart(told.notification.id), now)
    ]


def _leave_out(store: MemoryStore, now: Instant) -> None:
    for told in list(store.told.values()):
        key = (told.notification.app, told.notification.user_id)
        if key in store.opted_out and not store.is_held(LeasedPart(told.notification.id), now):
            del store.told[told.notification.id]
            store.jobs[told.job].total -= 1
            store.jobs[told.job].left_out += 1


def _find(store: MemoryStore, app: AppId, job: JobId) -> JobRow | None:
    row = store.jobs.get(job)
    return row if row is not None and row.job.app == app else None


def _record(store: MemoryStore, row: JobRow) -> JobRecord:
    counts = Counter(
        stored.status if stored.status in FINAL else NotificationStatus.PROCESSING
        for stored in store.rows.values()
        if stored.job == row.job.id
    )
    if row.total > counts.total():
        is_cancelled = row.state is JobState.CANCELLED
        waits = NotificationStatus.CANCELLED if is_cancelled else NotificationStatus.PENDING
        counts[waits] += row.total - counts.total()
    uploaded = len(row.recipients)
    return JobRecord(
        row.job, row.state, uploaded, row.walked, row.total, row.left_out, dict(counts), row.finished_at, row.failure
    )


def _matches(device: Device, registry: RegistryFilter) -> bool:
    languages = {device.locale, *((device.locale or "").replace("_", "-").split("-", 1)[:1])}
    return (
        (not registry.platforms or device.platform in registry.platforms)
        and (not registry.app_versions or device.app_version in registry.app_versions)
        and (not registry.locales or not languages.isdisjoint(registry.locales))
        and (registry.seen_after is None or device.last_seen_at >= registry.seen_after)
    )

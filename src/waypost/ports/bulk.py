"""Bulk jobs: their orders, recipients and progress. Their recipients are leased from ``Work``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.bulk import BulkJob, JobId, JobOrder, JobState, Recipient
from waypost.domain.device import Device
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant


class JobRecord(Struct, frozen=True):
    """A job as it stands."""

    job: BulkJob
    state: JobState
    uploaded: int
    """Recipients of its list so far; 0 where it has none."""
    walked: bool
    """Whether every recipient is enqueued: *total* is all of them."""
    total: int
    """Recipients enqueued so far."""
    left_out: int
    """Recipients who had opted out of bulk sends, or were gone when their turn came."""
    counts: Mapping[NotificationStatus, int]
    """Recipients' notifications by status; ``pending`` are those without a record yet."""
    finished_at: Instant | None = None
    failure: str | None = None
    """The kind of error that stopped one that is ``failed``."""


class JobCreated(Struct, frozen=True, tag=True):
    """The answer that the job is durable; *new* is false where the same key made it before."""

    record: JobRecord
    new: bool = True


class JobConflict(Struct, frozen=True, tag=True):
    """The answer that the idempotency key was used with another body, for job *first_id*."""

    first_id: JobId


class Walking(Struct, frozen=True):
    """A running job as the expansion sees it."""

    id: JobId
    app: AppId
    rate: int | None
    walked: bool
    """Whether it was walked to the end: nothing more is enqueued."""
    waiting: int
    """Recipients enqueued that have no record yet."""


class Enqueued(Struct, frozen=True):
    """The result of one step of a walk."""

    recipients: int
    moved: bool
    """Whether the walk went on, maybe past users who are no recipients."""
    walked: bool = False
    """Whether the end was reached."""


class AudiencePage(Struct, frozen=True):
    """A page of users whom a filter finds."""

    found: Sequence[tuple[UserId, bool]]
    """Each with whether they opted out."""
    until: UserId
    """The last user looked at."""
    is_last: bool


class RecipientRecord(Struct, frozen=True):
    """The state of one user in a job; the id is known once they are enqueued."""

    status: NotificationStatus
    notification_id: NotificationId | None = None


class Bulk(Protocol):
    """The jobs of one store. What is made, added and ordered is durable when the call returns; what is walked and
    tidied outlives the process, and is done again where a loss of power undid it.
    """

    async def create(self, job: BulkJob, key: bytes | None, body_hash: bytes) -> JobCreated | JobConflict:
        """Store *job*; one with a list, or held, is ``uploading``, any other runs.

        Its instant moves on where another has it.

        One row, whatever the audience. A *key* that is known gives the first job, or the conflict.
        """
        ...

    async def add(self, app: AppId, job: JobId, recipients: Sequence[Recipient]) -> bool:
        """Add to the list of an ``uploading`` job, each user once: the last mention counts. False in any other state.

        It may be repeated as a whole.
        """
        ...

    async def order(
        self, app: AppId, job: JobId, order: JobOrder, now: Instant, failure: str | None = None
    ) -> JobState | None:
        """Carry *order* out by JOB_TRANSITIONS and give the state after it; None where there is no such job.

        An order that is refused changes nothing. A cancelled job's pieces are closed in the same transaction.
        *failure* is the kind of error that ``FAIL`` is for.
        """
        ...

    async def running(self) -> list[Walking]:
        """List the running jobs, those with the fewest waiting recipients first."""
        ...

    async def enqueue(self, app: AppId, job: JobId, most: int, piece: int) -> Enqueued:
        """Walk on by one page: its pieces (of at most *piece* recipients, *most* in all) and how far the walk has come
        are written together, or nothing of it. Who opted out is left out.
        """
        ...

    async def tidy(self, now: Instant, n: int) -> list[tuple[AppId, NotificationId]]:
        """Finish jobs of which nothing is open, clear away what ended jobs leave, at most *n* rows of it, and name at
        most *n* open notifications of cancelled jobs: they are to be withdrawn.
        """
        ...

    async def drop_before(self, before: Instant) -> int:
        """Forget jobs that finished before *before* and have no notification left; return how many it was."""
        ...


class BulkViews(Protocol):
    """The reads of bulk jobs."""

    async def show(self, app: AppId, job: JobId) -> JobRecord | None:
        """Return one job."""
        ...

    async def list(self, app: AppId, before: JobId | None, n: int) -> list[JobRecord]:
        """List at most *n* jobs of an app, newest first, older than *before*."""
        ...

    async def recipient(self, app: AppId, job: JobId, user_id: UserId) -> RecipientRecord | None:
        """Return the state of one user in a job; None where they are no recipient of it, or no such job is known."""
        ...


class AudienceWalk(Protocol):
    """The reads of whom a filter finds, for a job that is not made."""

    async def page(self, job: BulkJob, after: UserId, n: int) -> AudiencePage:
        """Return whom at most *n* rows after a user belong to."""
        ...

    async def devices(self, job: BulkJob, users: Sequence[UserId]) -> dict[UserId, tuple[Device, ...]]:
        """Return the devices of *users* that a filter of the registry finds."""
        ...


class OptOuts(Protocol):
    """The store of users who want no bulk sends."""

    async def put(self, app: AppId, user_id: UserId, at: Instant) -> None:
        """Leave this user out from now on, also of sends that are enqueued and not yet handed over."""
        ...

    async def remove(self, app: AppId, user_id: UserId) -> bool:
        """Remove an opt-out; False where there was none."""
        ...

    async def has(self, app: AppId, user_id: UserId) -> bool:
        """Tell whether this user opted out."""
        ...

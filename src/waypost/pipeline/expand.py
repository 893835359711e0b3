"""Expand: bulk jobs are walked on by pages, no faster than asked and no further than the lane can take."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from waypost.domain.bulk import FAILURES_LIMIT, PIECE, JobId, JobOrder
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.bulk import Bulk, Walking

WAITING_LIMIT = 50_000
"""The most recipients of all jobs together that wait in pieces; more are not walked to."""
PORTIONS_A_SECOND = 10
"""The number of pieces that a second's worth is spread over, where each has PORTION_LEAST then."""
PORTION_LEAST = 4
"""The least recipients of a piece, or a second's worth where that is less: ids can name 4 million pieces of a job."""


class JobPace:
    """The pace of a job: how many recipients may be enqueued, in portions; at most one second's worth is saved up."""

    def __init__(self, rate: int, now: Instant) -> None:
        self.rate = rate
        self._portion = max(min(rate, PORTION_LEAST), min(PIECE, rate // PORTIONS_A_SECOND))
        self._at = now
        self._allowed = 0.0

    def allowed(self, now: Instant) -> int:
        """Return how many recipients may be enqueued now."""
        self._allowed = min(self._allowed + (now - self._at) * self.rate / SECOND_MS, float(self.rate))
        self._at = now
        return int(self._allowed) if self._allowed >= self._portion else 0

    def spend(self, recipients: int) -> None:
        """Take recipients that were enqueued off what is allowed."""
        self._allowed -= recipients


class Paces:
    """The paces of the jobs that have one; a new owner of the role starts them afresh, so that none is too fast."""

    def __init__(self) -> None:
        self._paces: dict[JobId, JobPace] = {}

    def follow(self, walking: Iterable[Walking], now: Instant) -> None:
        """Forget jobs that are not walked any more, and begin with new ones."""
        self._paces = {
            each.id: self._paces.get(each.id) or JobPace(each.rate, now) for each in walking if each.rate is not None
        }

    def of(self, job: JobId) -> JobPace | None:
        """Return the pace of *job*, if it has one."""
        return self._paces.get(job)


class Failures:
    """Counts of failures in a row of each job's walk; a new owner of the role starts them afresh."""

    def __init__(self) -> None:
        self._failures: dict[JobId, int] = {}

    def follow(self, walking: Iterable[Walking]) -> None:
        """Forget jobs that are not walked any more."""
        self._failures = {each.id: self._failures[each.id] for each in walking if each.id in self._failures}

    def forget(self, job: JobId) -> None:
        """Forget a job's failures: it went on."""
        self._failures.pop(job, None)

    def add(self, job: JobId) -> bool:
        """Count one more failure, and tell whether it is one too many."""
        self._failures[job] = self._failures.get(job, 0) + 1
        return self._failures[job] >= FAILURES_LIMIT


class FailedJob(Struct, frozen=True):
    """A job whose steps failed too often, and the kind of error that the last one ended with."""

    app: AppId
    id: JobId
    error: str
    unstopped: str | None = None
    """The kind of error where it could not even be stopped; that is tried again with its next step."""


class Expanded(Struct, frozen=True):
    """The result of one round of expansion."""

    recipients: int
    moved: bool
    """Whether some walk went on: there may be more to do at once."""
    running: int
    """The number of jobs that run: while there are any, the next round may find something to do."""
    failed: tuple[FailedJob, ...] = ()


async def expand(bulk: Bulk, paces: Paces, failures: Failures, now: Instant) -> Expanded:
    """Walk each running job on by what there is room for, at most a page each.

    What is wrong with one job stops no other; Unavailable is the store, and ends the round.
    """
    running = await bulk.running()
    walking = [each for each in running if not each.walked]
    paces.follow(walking, now)
    failures.follow(walking)
    room = WAITING_LIMIT - sum(each.waiting for each in running)
    enqueued, moved, failed = 0, False, list[FailedJob]()
    for left, each in zip(range(len(walking), 0, -1), walking, strict=True):
        pace = paces.of(each.id)
        most = min(max(0, room) // left, room if pace is None else pace.allowed(now))
        if most > 0:
            try:
                page = await bulk.enqueue(each.app, each.id, most, PIECE)
            except Unavailable:
                raise
            except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
                if failures.add(each.id):
                    failed.append(FailedJob(each.app, each.id, type(surprise).__name__))
                continue
            failures.forget(each.id)
            if pace is not None:
                pace.spend(page.recipients)
            room -= page.recipients
            enqueued += page.recipients
            moved |= page.moved
    return Expanded(enqueued, moved, len(running), tuple([await _stopped(bulk, job, now) for job in failed]))


async def _stopped(bulk: Bulk, job: FailedJob, now: Instant) -> FailedJob:
    """Make the job ``failed``."""
    try:
        await bulk.order(job.app, job.id, JobOrder.FAIL, now, job.error)
    except Unavailable:
        raise
    except Exception as surprise:  # noqa: BLE001 - as above
        return msgspec.structs.replace(job, unstopped=type(surprise).__name__)
    return job

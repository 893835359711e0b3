"""A bulk job: one notification to many recipients, each with an id, a record and receipts of their own.

Recipients are walked in the order of their user ids and cut into pieces of at most PIECE. A piece is a range of user
ids, so that each user is in exactly one; a recipient's id follows from the job, the piece and the user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from waypost.domain.best_time import Habits, best_time, is_best
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.device import Device, Platform, TokenUse, token_use_of
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId, created_at
from waypost.domain.local_time import choose_zone, instant_at, parse_local
from waypost.domain.notification import Lane, Notification
from waypost.domain.personal import Variables, personalised
from waypost.domain.segment import Filter
from waypost.domain.time import Instant, later
from waypost.domain.variants import VARIANT, Part, variant_for

JobId = NewType("JobId", bytes)
"""The 16 bytes of a UUIDv7; no two jobs of a store have the same millisecond."""

PAGE = 5_000
"""Registry or list rows that one step of the walk reads."""
PIECE = 500
"""Recipients of a piece, which is one work item."""
PIECES_LIMIT = 1 << 22
FAILURES_LIMIT = 3
"""Steps of one job that may fail in a row; then it has failed, until it is resumed."""

_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62


class JobState(StrEnum):
    """The state of a job."""

    UPLOADING = "uploading"  # waits for its list of recipients
    RUNNING = "running"  # recipients are walked, enqueued and sent to
    PAUSED = "paused"  # nothing more is enqueued or handed over until it is resumed
    FAILED = "failed"  # its walk failed again and again; it waits as a paused one does
    CANCELLED = "cancelled"  # nothing more is sent; who had no record yet gets none
    FINISHED = "finished"  # every recipient's notification has a final status


class JobOrder(StrEnum):
    """An order from outside that changes a job's state."""

    START = "start"  # its list is complete
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    FAIL = "fail"  # of its own walk alone


_S = JobState

JOB_TRANSITIONS: dict[JobState, dict[JobOrder, JobState]] = {
    _S.UPLOADING: {JobOrder.START: _S.RUNNING, JobOrder.CANCEL: _S.CANCELLED},
    _S.RUNNING: {
        JobOrder.START: _S.RUNNING,
        JobOrder.PAUSE: _S.PAUSED,
        JobOrder.RESUME: _S.RUNNING,
        JobOrder.CANCEL: _S.CANCELLED,
        JobOrder.FAIL: _S.FAILED,
    },
    _S.PAUSED: {
        JobOrder.START: _S.PAUSED,
        JobOrder.PAUSE: _S.PAUSED,
        JobOrder.RESUME: _S.RUNNING,
        JobOrder.CANCEL: _S.CANCELLED,
    },
    _S.FAILED: {
        JobOrder.START: _S.FAILED,
        JobOrder.RESUME: _S.RUNNING,
        JobOrder.CANCEL: _S.CANCELLED,
        JobOrder.FAIL: _S.FAILED,
    },
    _S.CANCELLED: {JobOrder.CANCEL: _S.CANCELLED},
    _S.FINISHED: {JobOrder.START: _S.FINISHED},
}
"""What each order makes of each state; what is not here is refused. An order that was carried out may be repeated."""

ENDED: frozenset[JobState] = frozenset({_S.CANCELLED, _S.FINISHED})


class RegistryFilter(Struct, frozen=True, omit_defaults=True):
    """A filter of an app's registered devices; an empty field matches all."""

    platforms: tuple[Platform, ...] = ()
    app_versions: tuple[str, ...] = ()
    locales: tuple[str, ...] = ()
    """Each alone or as the language of others: ``de`` is ``de-CH`` too."""
    seen_after: Instant | None = None
    """The earliest time of the last registration or refresh."""


class BulkJob(Struct, frozen=True):
    """A bulk send as it was asked for; the store knows how far it has come."""

    id: JobId
    app: AppId
    caller: CallerId
    content: Content
    created_at: Instant
    expires_at: Instant
    ttl_ms: int
    registry: RegistryFilter | None = None
    """The filter of the registry, where the recipients are who has such devices."""
    segment: Filter | None = None
    """The filter of users, counted back from the job's own time, where they are its recipients."""
    names: tuple[str, ...] = ()
    """The variables that its content asks each recipient of a list for; none where all are told the same."""
    optional: tuple[str, ...] = ()
    """Those of them that a recipient may lack."""
    defaults: dict[str, str] = {}
    """The variables of recipients who have none of their own."""
    rate: int | None = None
    """The most recipients per second."""
    kind: Kind = Kind.VISIBLE
    urgency: Urgency = Urgency.NORMAL
    retry_policy: str | None = None
    part: Part | None = None
    """The part of the registry's users that it is for; None is all."""
    held: bool = False
    """Whether it waits to be started, as one with a list does."""
    send_at: str | None = None
    """The local time before which no recipient is sent to."""
    zone: str | None = None
    """The zone of recipients who have none of their own."""

    @property
    def has_list(self) -> bool:
        """Whether its recipients are a list that is uploaded."""
        return self.registry is None and self.segment is None

    @property
    def token_use(self) -> TokenUse:
        """The tokens that its content is for."""
        return token_use_of(self.content)


class Recipient(Struct, frozen=True, array_like=True):
    """A recipient of an uploaded list."""

    user_id: UserId
    variables: dict[str, str] = {}


class Audience(Struct, frozen=True):
    """A recipient with their devices, as a piece is read."""

    user_id: UserId
    devices: tuple[Device, ...]
    variables: dict[str, str] | None = None


class PageRow(Struct, frozen=True, array_like=True):
    """A user in a page of the registry or of the list."""

    user_id: str
    matches: bool
    opted_out: bool
    rows: int


class Piece(Struct, frozen=True):
    """A range of users, above *after* up to *until*, of whom *expected* are recipients."""

    after: str
    until: str
    expected: int


def cut_page(page: Iterable[PageRow], after: str, most: int, size: int) -> tuple[list[Piece], int, str]:
    """Cut a page of users into pieces; return these, how many users opted out, and the last user looked at. Pure.

    At most *most* recipients, *size* in a piece. Users who are none lie in a piece's range, or between two.
    """
    pieces: list[Piece] = []
    count = left_out = taken = 0
    until = after
    for row in page:
        if taken == most:
            break
        until = row.user_id
        left_out += row.matches and row.opted_out
        if row.matches and not row.opted_out:
            count, taken = count + 1, taken + 1
        if count == size or (count and taken == most):
            pieces.append(Piece(after, until, count))
            after, count = until, 0
    if count:
        pieces.append(Piece(after, until, count))
    return pieces, left_out, until


def recipient_id(job: JobId, piece: int, user_id: UserId) -> NotificationId:
    """Make the id of a recipient's notification: see recipient_ids."""
    return recipient_ids(job, piece)(user_id)


def recipient_ids(job: JobId, piece: int) -> Callable[[UserId], NotificationId]:
    """Return what makes the ids of a piece: UUIDv7s in form (RFC 9562 section 5.7), with the job's millisecond.

    *piece* fills the 22 bits after it, so that the rows of a piece lie together in every index; the other 52 are a
    hash of job and user.
    """
    begins = (created_at(NotificationId(job)) << 80) | _VERSION | (piece >> 10) << 64 | _VARIANT | (piece & 0x3FF) << 52
    of_job = hashlib.blake2b(digest_size=7, key=job)

    def make(user_id: UserId) -> NotificationId:
        noise = of_job.copy()
        noise.update(user_id.encode())
        return NotificationId((begins | int.from_bytes(noise.digest(), "big") >> 4).to_bytes(16, "big"))

    return make


def piece_of(notification_id: NotificationId) -> int:
    """Read the number of the piece from the id of a recipient's notification."""
    value = int.from_bytes(notification_id, "big")
    return ((value >> 64) & 0xFFF) << 10 | (value >> 52) & 0x3FF


def notification_for(
    job: BulkJob,
    piece: int,
    user_id: UserId,
    variables: Variables | None,
    zone: str | None = None,
    habits: Habits = (),
    now: Instant | None = None,
) -> Notification:
    """Build the notification for one recipient of *piece*: see notification_as."""
    return notification_as(recipient_id(job.id, piece, user_id), job, user_id, variables, zone, habits, now)


def notification_as(
    notification_id: NotificationId,
    job: BulkJob,
    user_id: UserId,
    variables: Variables | None,
    zone: str | None = None,
    habits: Habits = (),
    now: Instant | None = None,
) -> Notification:
    """Build the notification for one recipient; *variables* None leaves the content as it is.

    *zone* is the recipient's own, and *habits* theirs, for a job that has a local time; *now* is when it comes to them.
    """
    scheduled_at = None if job.send_at is None else _due_at(job, job.send_at, zone, habits, now or job.created_at)
    return Notification(
        id=notification_id,
        app=job.app,
        caller=job.caller,
        user_id=user_id,
        content=job.content if variables is None else personalised(job.content, variables),
        created_at=job.created_at,
        expires_at=job.expires_at if scheduled_at is None else later(scheduled_at, job.ttl_ms),
        ttl_ms=job.ttl_ms,
        lane=Lane.BULK,
        kind=job.kind,
        urgency=job.urgency,
        scheduled_at=scheduled_at,
        retry_policy=job.retry_policy,
    )


def _due_at(job: BulkJob, send_at: str, zone: str | None, habits: Habits, now: Instant) -> Instant:
    """Return when a recipient in *zone* is sent to: the local time there, or the start of the job after it."""
    if is_best(send_at):
        return best_time(send_at, habits, choose_zone(zone, job.zone).name, max(job.created_at, now)).at
    return Instant(max(job.created_at, instant_at(parse_local(send_at), choose_zone(zone, job.zone).name)))


def variables_for(job: BulkJob, own: Variables, user_id: UserId) -> dict[str, str] | None:
    """Return the variant and the values of the placeholders for one recipient; None where all are told the same."""
    split = job.content.split
    if not job.names and split is None:
        return None
    given = {**job.defaults, **own}
    values = {name: given[name] for name in job.names if name in given}
    return values if split is None else values | {VARIANT: variant_for(split, job.content.campaign or "", user_id)}

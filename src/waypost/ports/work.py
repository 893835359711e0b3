"""The transactional boundary: queue, timer, receipts and dedup keys change together, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.amendment import Amended, Amendment
from waypost.domain.backlog import Lags, Waiting
from waypost.domain.dedup import Claim
from waypost.domain.delivery import OpenTarget, Receipt, Target
from waypost.domain.device import Device
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane, Notification
from waypost.domain.progress import Progress, Stale, Step
from waypost.domain.settlement import Change, Sent
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.promises import Promise


class NewNotification(Struct, frozen=True):
    """A new notification with the keys it claims: its caller's idempotency key, its content, or none."""

    notification: Notification
    claims: tuple[Claim, ...] = ()


class Replay(Struct, frozen=True):
    """An order to start a new round for a notification's failed, expired and unknown targets.

    *expires_at* is the end of the new round. A notification that never had targets is routed again.
    """

    app: AppId
    notification_id: NotificationId
    at: Instant
    expires_at: Instant
    taken: bool = False
    """Whether also for the targets that their provider took and nobody confirmed."""


class Accepted(Struct, frozen=True, tag=True):
    """The answer that the notification is durable; *new* is false where the same id was accepted before."""

    id: NotificationId
    new: bool = True


class Duplicate(Struct, frozen=True, tag=True):
    """The answer that *first_id* said the same before; *record_id* is the small record a content duplicate leaves."""

    first_id: NotificationId
    record_id: NotificationId | None = None


class Conflicting(Struct, frozen=True, tag=True):
    """The answer that the idempotency key was used with another body, for *first_id*."""

    first_id: NotificationId


class InProgress(Struct, frozen=True, tag=True):
    """The answer that the key is held by a request that is not yet durable."""

    retry_after_ms: int


class Unwritten(Struct, frozen=True, tag=True):
    """The answer that it may not be durable, though others of its batch are; repeat it under the same keys."""

    error: Unavailable


class NotReplayable(Struct, frozen=True, tag=True):
    """The answer that no new round can start: not known to this app, still open, or nothing failed."""

    known: bool


Acceptance = Accepted | Duplicate | Conflicting | InProgress | Unwritten | NotReplayable


class WorkItem(Struct, frozen=True):
    """A leased notification, with its targets still to be resolved, or with the stored ones that are due."""

    notification: Notification
    open_targets: tuple[OpenTarget, ...] | None
    """The open targets; None is fresh work: nothing about its targets is stored yet."""
    devices: tuple[Device, ...] | None = None
    """Read already, of a bulk job's recipient: nothing about the notification itself is stored yet, and its one
    settle gives an outcome to every target but those that wait."""
    siblings: tuple[Receipt, ...] = ()
    """The other targets when these were released: none of fresh work, nor of what was given back at once."""


class Lease(Struct, frozen=True):
    """The right to work on *items* until a time of the store's clock."""

    token: int
    lane: Lane
    items: tuple[WorkItem, ...]


class Settled(Struct, frozen=True):
    """The changes for (a part of) one leased item."""

    notification: Notification
    changes: tuple[Change, ...] = ()
    targets: tuple[Target, ...] | None = None
    """The whole resolved list, given with every settle of fresh work: the first one stores it."""
    verdict: NotificationStatus | None = None
    """A final status decided before any target: expired, no_targets, suppressed."""
    given_back: bool = False
    """Whether nothing was done with the (rest of the) item: leasable again at once, no attempt spent."""

    @property
    def is_plain(self) -> bool:
        """Whether every target was taken at its first attempt: most are, and stores write those in a shorter way."""
        targets, changes = self.targets, self.changes
        if not targets or len(targets) != len(changes) or self.verdict is not None:
            return False
        n = settled = 0
        for target, change in zip(targets, changes, strict=True):
            if type(change.settlement) is not Sent or change.attempt != 1 or change.made is None or target.n != n:
                return False
            settled |= 1 << change.n  # they come in the order of the answers
            n += 1
        return settled == (1 << n) - 1

    def step_of(self, progress: Progress, now: Instant) -> Step:
        """Compute the step that this makes of the notification's *progress*."""
        return progress.settle(self.changes, now, self.targets, self.verdict)

    def refused(self) -> list[Stale]:
        """Return every change as stale: somebody else has the item by now."""
        return [Stale(self.notification.id, change.n, change.attempt) for change in self.changes]


class Leases(Protocol):
    """A queue of leased work, whoever fills it.

    Whatever is said to be written is durable when the call returns; an exception means that nothing of the call was
    written (``Unavailable`` and its kind: try again later). Everything is safe to repeat after a crash.
    """

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """Take at most *n* leasable items of *lane*, apps taking turns.

        An item is in at most one valid lease. Fresh items of one user come in accept order. Leases nothing (an empty
        lease) when nothing is leasable; it does not wait. Recipients of running bulk jobs are items of the bulk lane.
        """
        ...

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """Keep the lease for longer; False once any of it was taken over: then nothing more of it goes on the wire."""
        ...

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """Write receipts, due times, acknowledgement, counters and the journal row: all of it or nothing.

        The first settle of a fresh item stores its whole target list; a target that waits is nobody's until it is due,
        and waits for its sibling from the settle on that settles that one. Changes compare-and-set by (notification,
        target, attempt); what loses is returned, dropped and counted. The settle that closes the last open target
        writes the notification's final status, once. A withdrawn notification's ``Again`` and ``Parked`` become
        cancelled. Settling part of an item keeps the rest of it under the lease.
        """
        ...


class Work(Leases, Protocol):
    """The queue, timer, receipts and keys of one stack."""

    @property
    def promises(self) -> frozenset[Promise]:
        """The promises that this adapter keeps: all, unless it names those that it lacks."""
        ...

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """Make each item's keys, record and queue (or timer) entry visible together, or none of them.

        One answer per item, in order, given only when durable. Idempotent by notification id: an id that is known is
        ``Accepted(new=False)``. The second of two items of one batch with the same key is the first's duplicate.
        An idempotency key counts before a content key. A content duplicate leaves a record (``deduplicated``), and its
        idempotency key stands for the first from then on; the repeat of an idempotency key leaves none. A store failure
        writes nothing of the batch; on a log, where some of a batch is durable, the others are ``Unwritten``.
        """
        ...

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int | None:
        """Make at most *n* due entries leasable and say how many became so; never early, a crash repeats.

        None means that nobody knows yet: some may become so, and under each condition something may still be parked.
        Due are scheduled notifications, retries, parked deliveries and waits whose time is over, and intents past their
        deadline (these are closed as ``unknown`` on the spot). *lifted* maps a condition to how many of the
        deliveries parked under it may come back as well, those that expire first before the others. Where there is
        more than *n*, apps take turns, and so do conditions.
        """
        ...

    async def conditions(self) -> frozenset[str]:
        """Name every condition under which something open is parked, whoever owns its shard."""
        ...

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """Change what was accepted, each atomically against ``lease``; one answer per item, in order.

        ``Withdraw`` takes back what is not yet leased: waiting retries and parked deliveries are cancelled; what is
        leased ends with its present attempt. ``Supersede`` is the same, with what replaces it as the reason; a collapse
        key stands for all older notifications of the user that carry it, but those that are scheduled for later.
        ``Confirm`` moves a settled target upwards (``unknown``, ``sent``, ``delivered``, ``opened``) with its journal
        row and counters, also after its notification is final; what waits for that and is not leased is cancelled.
        ``Recover`` helps a notification of which nothing is leased: what is overdue is due now, or what is open ends as
        sent or failed. ``Reschedule`` moves the time of what waits for it as a whole, with its TTL; from that time on
        it is too late. Late, repeated and foreign ones change nothing. All answers are durable.
        """
        ...

    async def depth(self, lane: Lane) -> int:
        """Count the items that are leasable now (an estimate from 10,000 up)."""
        ...

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """Count the notifications of each lane and app that are accepted and not final, wherever they wait or are.

        What is scheduled for after *now* does not count, nor do recipients of bulk jobs of whom nothing is stored yet.
        A lane with fewer than *counts_from* may be left out.
        """
        ...

    async def lag(self) -> Lags:
        """Count what is open by lane and app, and find since when the oldest waits for its first attempt to be over.

        Recipients of bulk jobs of whom nothing is stored yet do not count. What it costs grows with apps and lanes, not
        with what waits.
        """
        ...

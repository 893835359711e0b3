"""The data that the memory adapters share: one object is one store, however many workers lease from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from waypost.domain.balance import DELIVERY, DROPPED
from waypost.domain.bulk import BulkJob, JobId, JobState, Recipient
from waypost.domain.dedup import Claim, ClaimKind
from waypost.domain.delivery import Receipt
from waypost.domain.device import Device
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.moves import Moved
from waypost.domain.notification import Lane, Notification
from waypost.domain.progress import Progress
from waypost.domain.status import FINAL, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.audit import AuditEntry
from waypost.ports.erasure import Erasure
from waypost.ports.journal import JournalRow
from waypost.ports.keys import ApiKey

LEASABLE = Instant(0)
"""The due time of fresh work that waits for nobody."""


class StoredRow(Struct):
    """A notification as stored, with its receipts by target number."""

    seq: int
    """The number in the order of accepts."""
    notification: Notification
    due_at: Instant | None
    """The due time: LEASABLE, the time it is scheduled for, or None once it is routed or final."""
    status: NotificationStatus = NotificationStatus.PENDING
    withdrawn: str | None = None
    """The reason why it was taken back, while something of it is still open."""
    reason: str | None = None
    finished_at: Instant | None = None
    duplicate_of: NotificationId | None = None
    round: int = 1
    receipts: dict[int, Receipt] = field(default_factory=dict)
    job: JobId | None = None
    """The bulk job whose recipient it is."""

    @property
    def progress(self) -> Progress:
        """The progress of its targets so far."""
        one = self.notification
        receipts = self.receipts if self.due_at is None else None
        return Progress(one.app, one.id, one.user_id, self.status, receipts, self.withdrawn)

    @property
    def is_final(self) -> bool:
        """Whether nothing of it is open."""
        return self.status in FINAL


class StoredClaim(Struct, frozen=True):
    """A dedup key in its window."""

    claim: Claim
    first_id: NotificationId


class Hold(Struct, frozen=True):
    """The hold of a lease on one target, or on the whole of a fresh notification."""

    token: int
    until: Instant


class LeasedPart(Struct, frozen=True):
    """The part that is held: target *n* of a notification, or (None) a fresh one whole."""

    notification_id: NotificationId
    n: int | None = None


class JobRow(Struct):
    """A bulk job as stored."""

    job: BulkJob
    state: JobState
    key: bytes | None
    body_hash: bytes
    recipients: dict[UserId, Recipient] = field(default_factory=dict)
    walked_to: str = ""
    walked: bool = False
    pieces: int = 0
    total: int = 0
    left_out: int = 0
    finished_at: Instant | None = None
    failure: str | None = None


class Told(Struct, frozen=True):
    """A recipient who is enqueued and has no row yet."""

    job: JobId
    notification: Notification
    devices: tuple[Device, ...]


class MemoryStore:
    """The plain collections of a store; a call of an adapter runs between two steps of the event loop, atomically."""

    def __init__(self) -> None:
        self.rows: dict[NotificationId, StoredRow] = {}
        self.open: dict[NotificationId, StoredRow] = {}
        """The rows that are not final."""
        self.claims: dict[tuple[ClaimKind, bytes], StoredClaim] = {}
        self.ready: dict[LeasedPart, int] = {}
        """Released targets of routed notifications, with the order they were released in."""
        self.holds: dict[LeasedPart, Hold] = {}
        self.overtaken: set[int] = set()
        """The leases of which something was taken over."""
        self.last_app: dict[Lane, AppId] = {}
        self.released: dict[AppId, int] = {}
        """The number at which something of an app was released last, in the same count."""
        self.journal: list[JournalRow] = []
        self.positions: dict[str, int] = {}
        self.devices: dict[tuple[AppId, UserId, DeviceId], Device] = {}
        self.devices_stopped_at: dict[tuple[AppId, UserId, DeviceId], Instant] = {}
        self.keys: dict[str, ApiKey] = {}
        self.jobs: dict[JobId, JobRow] = {}
        self.told: dict[NotificationId, Told] = {}
        self.feed: dict[NotificationId, Any] = {}
        """Rows of tests/memory/feed.py."""
        self.opted_out: set[tuple[AppId, UserId]] = set()
        self.erasures: dict[tuple[AppId, UserId], Erasure] = {}
        self.audit: list[AuditEntry] = []
        self.counted: Counter[tuple[AppId, Lane, str]] = Counter()
        """What the balance is drawn up from, by app and lane."""
        self._counter = 0

    def count(self) -> int:
        """Return the next number of one sequence: accept order, release order, lease tokens, journal positions."""
        self._counter += 1
        return self._counter

    def tally(self, of: Notification, changes: Iterable[tuple[str, int]]) -> None:
        """Count what changes in the app and lane of a notification."""
        for word, n in changes:
            self.counted[of.app, of.lane, word] += n

    def drop(self, notification_id: NotificationId) -> None:
        """Delete a final notification, and what is of it; the balance counts it as dropped."""
        row = self.rows.pop(notification_id)
        ended = [row.status, *(f"{DELIVERY}{each.status}" for each in row.receipts.values())]
        self.tally(row.notification, [(f"{DROPPED}{word}", 1) for word in ended])
        self.feed.pop(notification_id, None)

    def record(self, moves: Sequence[Moved]) -> None:
        """Append one transaction's journal row."""
        if moves:
            self.journal.append(JournalRow(self.count(), tuple(moves)))

    def is_held(self, part: LeasedPart, now: Instant) -> bool:
        """Tell whether a valid lease holds *part*."""
        hold = self.holds.get(part)
        return hold is not None and hold.until > now

    def take_over(self, row: StoredRow, now: Instant) -> None:
        """Take what is to be changed from leases that have ended: they cannot be extended any more."""
        for part in [LeasedPart(row.notification.id, n) for n in (None, *row.receipts)]:
            if part in self.holds and not self.is_held(part, now):
                self.overtaken.add(self.holds.pop(part).token)

    def held_parts(self, row: StoredRow, now: Instant) -> Iterator[LeasedPart]:
        """Yield the parts of *row* that valid leases hold."""
        parts = (LeasedPart(row.notification.id, n) for n in (None, *row.receipts))
        return (part for part in parts if self.is_held(part, now))

"""The words in which the Work suites speak: a worker on a store, and short names for what is done with it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

from tests.amending import withdraw
from tests.contract.stores import LEASE_MS, StoreUnderTest
from waypost.domain.amendment import Amended, Confirm, NotOpen, TooLate, Withdrawal, Withdrawn
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.dedup import Claim, ClaimKind, body_hash, content_key, idempotency_key
from waypost.domain.delivery import Attempt, Receipt, Target
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId, next_ids
from waypost.domain.moves import Moved
from waypost.domain.notification import Guarantee, Lane, Notification
from waypost.domain.progress import Stale
from waypost.domain.settlement import Again, Change, Intent, Parked, Sent, Settlement
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, SECOND_MS, Instant, later
from waypost.ports.bulk import Bulk
from waypost.ports.feed import Mark, Marking
from waypost.ports.promises import Promise
from waypost.ports.views import NotificationDetail
from waypost.ports.work import Acceptance, Accepted, Duplicate, Lease, NewNotification, Replay, Settled, Work, WorkItem

APP = AppId("demo")
OTHER_APP = AppId("other")
CALLER = CallerId("orders")
TOKEN_HASH = b"t" * 16
RETRY_MS = 10 * SECOND_MS

_numbers = itertools.count(1)
_floor = 0
_noise = bytes(10)


def begin_ids() -> None:
    """Let ids begin anew for a test: of its own time, and no test before it had them."""
    global _floor, _noise
    _floor, _noise = 0, os.urandom(10)


def new_id(now: Instant) -> NotificationId:
    """An id that sorts after all before it in this test."""
    global _floor
    ids, _floor = next_ids(now, 1, _noise, _floor)
    return ids[0]


def notification(  # each argument is one thing that a test may care about
    now: Instant,
    *,
    user: str = "ann",
    app: AppId = APP,
    lane: Lane = Lane.NORMAL,
    body: str | None = None,
    ttl_ms: int = DAY_MS,
    scheduled_at: Instant | None = None,
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE,
) -> Notification:
    """A notification made now; its text differs from all others unless *body* is given."""
    return Notification(
        id=new_id(now),
        app=app,
        caller=CALLER,
        user_id=UserId(user),
        content=Content(title="Order", body=body or f"number {next(_numbers)}", data={"order": 1}),
        created_at=now,
        expires_at=later(scheduled_at or now, ttl_ms),
        ttl_ms=ttl_ms,
        lane=lane,
        guarantee=guarantee,
        scheduled_at=scheduled_at,
    )


def by_content(made: Notification, window_ms: int = HOUR_MS) -> Claim:
    """The claim on what it says."""
    key = content_key(made.app, made.caller, made.user_id, made.content)
    return Claim(ClaimKind.CONTENT, key, body_hash(made.content), later(made.created_at, window_ms))


def by_key(made: Notification, key: str, window_ms: int = DAY_MS) -> Claim:
    """The claim on the caller's own key."""
    claimed = idempotency_key(made.app, made.caller, key)
    return Claim(ClaimKind.IDEMPOTENCY, claimed, body_hash(made.content), later(made.created_at, window_ms))


def marking(made: Notification, mark: Mark, at: Instant) -> Marking:
    """What its user does with it, in a feed or not."""
    return Marking(made.app, made.user_id, mark, at, (made.id,), vouched=True)


def targets(count: int) -> tuple[Target, ...]:
    """The first *count* devices of a user."""
    return tuple(Target(n, DeviceId(f"d{n}"), Channel("apns")) for n in range(count))


def sent(n: int, at: Instant, attempt: int = 1, provider_id: str = "p") -> Change:
    """The provider took target *n*."""
    return Change(n, attempt, Sent(provider_id), at, tried(at, "taken"))


def again(n: int, at: Instant, attempt: int = 1, wait_ms: int = RETRY_MS) -> Change:
    """Target *n* is tried again later."""
    settlement = Again(later(at, wait_ms), spends_attempt=True, code="503", why="away")
    return Change(n, attempt, settlement, at, tried(at, "unreachable"))


def parked(n: int, at: Instant, until: Instant, condition: str = "breaker:demo/apns", attempt: int = 1) -> Change:
    """Target *n* waits for a condition."""
    return Change(n, attempt, Parked(condition, until), at)


def intent(n: int, at: Instant, attempt: int = 1, within_ms: int = 30 * SECOND_MS) -> Change:
    """Target *n* is about to be sent, at most once."""
    return Change(n, attempt, Intent(later(at, within_ms)), at)


def tried(at: Instant, status: str) -> Attempt:
    """The record of an attempt."""
    return Attempt(at, status, "", "", TOKEN_HASH)


class Bench:
    """One worker on a store."""

    def __init__(self, store: StoreUnderTest, worker: Work) -> None:
        self.store = store
        self.worker = worker
        self.clock = store.clock
        self.leased = Lease(0, Lane.NORMAL, ())
        """What a scenario leased before it goes on."""

    @property
    def now(self) -> Instant:
        """The store's time."""
        return self.clock.now()

    @property
    def bulk(self) -> Bulk:
        """The worker's door to bulk jobs."""
        return self.store.bulk_of(self.worker)

    async def accept(self, *items: NewNotification | Replay | Notification) -> list[Acceptance]:
        """Accept a batch; a bare notification claims nothing."""
        return await self.worker.accept(
            [NewNotification(item) if isinstance(item, Notification) else item for item in items]
        )

    async def accepted(
        self,
        *,
        user: str = "ann",
        app: AppId = APP,
        lane: Lane = Lane.NORMAL,
        ttl_ms: int = DAY_MS,
        scheduled_at: Instant | None = None,
        guarantee: Guarantee = Guarantee.AT_LEAST_ONCE,
    ) -> Notification:
        """Accept one new notification."""
        made = notification(
            self.now, user=user, app=app, lane=lane, ttl_ms=ttl_ms, scheduled_at=scheduled_at, guarantee=guarantee
        )
        assert await self.accept(made) == [Accepted(made.id)]
        return made

    async def lease(self, n: int = 100, lane: Lane = Lane.NORMAL) -> Lease:
        """Lease what is leasable, without a release before."""
        return await self.worker.lease(lane, n, later(self.now, LEASE_MS))

    async def take(self, n: int = 100, lane: Lane = Lane.NORMAL) -> Lease:
        """Release what is due, then lease."""
        await self.worker.promote_due(self.now, 1000)
        return await self.lease(n, lane)

    async def take_one(self) -> tuple[Lease, WorkItem]:
        """Lease the only thing there is."""
        lease = await self.take()
        assert len(lease.items) == 1
        return lease, lease.items[0]

    async def settle(self, lease: Lease, *settled: Settled) -> list[Stale]:
        """Settle parts of a lease."""
        return await self.worker.settle(lease, settled)

    async def settle_first(self, lease: Lease, item: WorkItem, count: int, *changes: Change) -> list[Stale]:
        """The first settle of a fresh item with *count* targets."""
        return await self.settle(lease, Settled(item.notification, changes, targets(count)))

    async def settle_rest(self, lease: Lease, item: WorkItem, *changes: Change) -> list[Stale]:
        """A later settle."""
        return await self.settle(lease, Settled(item.notification, changes))

    async def routed(self, made: Notification, *settlements: Settlement) -> None:
        """Accept, lease and settle a notification with one attempt for each of its targets."""
        await self.accept(made)
        lease, item = await self.take_one()
        changes = [Change(n, 1, what, self.now, tried(self.now, "x")) for n, what in enumerate(settlements)]
        assert await self.settle_first(lease, item, len(changes), *changes) == []

    def duplicate(self, of: Notification, made: Notification) -> Duplicate:
        """The answer to a duplicate by content, with its record where one is left."""
        return Duplicate(of.id, made.id if Promise.RECORDS_DUPLICATES in self.worker.promises else None)

    async def withdraw(self, made: Notification, why: str = "cancelled by the caller") -> Withdrawal:
        """Withdraw one notification."""
        answer = (await withdraw(self.worker, made.app, [made.id], why, self.now))[0]
        assert isinstance(answer, Withdrawn | TooLate | NotOpen)
        return answer

    async def confirm(self, made: Notification, n: int, status: DeliveryStatus = DeliveryStatus.DELIVERED) -> Amended:
        """Confirm one target."""
        return (await self.worker.amend([Confirm(made.app, made.id, n, status, self.now)], self.now))[0]

    async def detail(self, made: Notification) -> NotificationDetail:
        """All that is known of a notification."""
        detail = await self.store.views.detail(made.app, made.id)
        assert detail is not None
        return detail

    async def status(self, made: Notification) -> NotificationStatus:
        """How it reads now."""
        return (await self.detail(made)).record.status

    async def receipts(self, made: Notification) -> tuple[Receipt, ...]:
        """Its receipts by target number."""
        return (await self.detail(made)).receipts

    async def moves(self) -> list[Moved]:
        """All that the journal says."""
        return [move for row in await self.store.journal.read(0, 10_000) for move in row.moves]

    async def crash(self) -> Bench:
        """The worker is gone; another one on the same store."""
        await self.store.crash(self.worker)
        return Bench(self.store, (await self.store.open_workers(1))[0])

    async def leasable(self, lane: Lane = Lane.NORMAL) -> Sequence[NotificationId]:
        """Whose work could be leased now, found by leasing it; where it is kept in two places, lease after lease."""
        items: list[WorkItem] = []
        more = (await self.take(lane=lane)).items
        while more:
            items += more
            more = (await self.lease(lane=lane)).items
        return [item.notification.id for item in items]

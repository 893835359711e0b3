"""The transactional boundary on SQL: writes are group-committed transactions, leases a memory of this process.

Ownership of a shard is the lease: what is leased ends with the process, or when another takes its shard over.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Collection, Mapping, Sequence

from waypost.domain.amendment import Amended, Amendment
from waypost.domain.backlog import Lags, Waiting
from waypost.domain.ids import SHARDS, AppId, NotificationId, shard_of
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.time import Instant
from waypost.domain.turns import turn_after
from waypost.ports.peers import Peers
from waypost.ports.promises import EVERY_PROMISE
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, WorkItem
from waypost.stores.sql.accept import accept_kind
from waypost.stores.sql.amendments import Amendments
from waypost.stores.sql.backlog import backlog, lags
from waypost.stores.sql.bulk_pieces import Pieces, running_jobs
from waypost.stores.sql.bulk_settle import SETTLE_RECIPIENTS, PieceSettled
from waypost.stores.sql.database import Database
from waypost.stores.sql.due_from import DueFrom
from waypost.stores.sql.engine import Locks, owned_units
from waypost.stores.sql.fresh_from import FreshFrom
from waypost.stores.sql.lease import open_in
from waypost.stores.sql.lease_table import LeaseTable
from waypost.stores.sql.left_alone import LeftAlone
from waypost.stores.sql.next_due import NextDue
from waypost.stores.sql.promote import DueWork, PromotionRequest, Room, find_due, parked_under
from waypost.stores.sql.settlements import NO_LEASE, Settlements
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.transaction import Transaction
from waypost.stores.sql.units import Leasing

WORK_TOPIC = "work"
"""The topic told to the other workers after a commit with rows of theirs; the body is lanes, separated by commas."""

_DEPTH_COUNTED = 10_000
_READY_LIMIT = 2_000
"""Released items of a lane that wait in memory to be leased; the others wait in their index.

Where an app fills it, each other still has its share, so it may be several times as many with very many apps.
"""
_RECORDER = 0
"""The shard whose owner records what holds for all."""
_NO_VERSION = -1


class SqlWork:
    """The work of the shards that this process owns; it accepts for all of them."""

    promises = EVERY_PROMISE

    def __init__(self, database: Database, shards: Locks, peers: Peers | None, *, with_devices: bool) -> None:
        self._database = database
        self._shards = shards
        self._peers = peers
        self._lease_table = LeaseTable()
        self._pieces = Pieces(database, with_devices=with_devices)
        self._tail = database.engine.tail()
        self._due_from = DueFrom(database)
        self._next_due = NextDue(database)
        self._is_something_due = False
        """Whether the last search met anything, in hand or not: then the next one need not ask first."""
        self._left_alone = LeftAlone(database)
        note = self._note_arrivals if database.engine.is_remote else None
        self._accept = accept_kind(database.settings.dedup_partition_h, note)
        self._settlements = Settlements(database, self._lease_table, self._pieces, lambda: self._leasing.others)
        self._amendments = Amendments(database, shards, peers, self._lease_table, self._look_again)
        self._tokens = itertools.count(NO_LEASE + 1)
        self._last_app: dict[Lane, AppId] = {}
        self._last_due: dict[Lane, AppId] = {}
        self._lanes = deque(Lane)
        self._stopped: frozenset[int] = frozenset()
        """The units that are owned, and not leased from any more."""
        self._leasing = Leasing()
        self._version = _NO_VERSION
        self._reading = asyncio.Lock()
        """What is read of what can be leased is taken in before the next read begins."""
        self._fresh_from = FreshFrom(database, self._tail, self._reading)
        database.commits.on_state_change(self._store_changed)

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        if not batch:
            return []
        answers = await asyncio.shield(
            self._database.commits.submit(self._accept, batch, len(batch), urgent=is_urgent(batch))
        )
        self._wake_owners(batch)
        return answers

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work; *until* is not needed: a dead worker's shards become free by themselves."""
        token = next(self._tokens)
        items: list[WorkItem] = []
        try:
            async with self._reading:
                self._follow_shards()
                await self._lease(lane, n, token, items)
            if lane is Lane.BULK:
                await self._lease_recipients(n - len(items), items)
        except BaseException:
            self._let_go(token, items)
            raise
        return Lease(token, lane, tuple(items))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work; only a process that lost its shards is overtaken."""
        if self._version == self._shards.version:
            return True
        mine: frozenset[int | None] = owned_units(self._shards) | {None}
        return all(self._lease_table.unit_of(item.notification.id) in mine for item in lease.items)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        return await self._settlements.settle(lease.token, settled)

    async def settle_recipients(self, settled: Sequence[Settled]) -> None:
        """See Settlements."""
        await self._settlements.settle_recipients(settled)

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        """See Work."""
        async with self._reading:
            self._follow_shards()
            if self._leasing.is_nothing:
                return 0
            since = await self._due_from.place(now, records=_RECORDER in self._leasing.others)
            if lifted or self._is_something_due or not await self._is_nothing_due(now, since):
                due = await self._release_due(now, n, lifted, since)
            else:
                due = None
        if due is not None:
            await self._settlements.end(due)
        if _RECORDER in self._leasing.others:
            await self._fresh_from.record(now)
        return 0 if due is None else due.entries

    async def _is_nothing_due(self, now: Instant, since: Instant) -> bool:
        """Tell whether nothing in the store is due *now*, in anybody's hands or not."""
        if self._next_due.at is not None:
            await self._database.changes.look()
            if self._next_due.is_later(now, since):
                return True
        await self._next_due.read(since, self._database.changes.version)
        return self._next_due.is_later(now, since)

    async def _release_due(self, now: Instant, n: int, lifted: Mapping[str, int], since: Instant) -> DueWork:
        wanted = PromotionRequest(self._leasing, now, n, self._rooms(), lifted, self._is_passed_over, since)
        with self._lease_table.watching() as touched:
            due = await self._database.read_to_lease(lambda connection: find_due(connection, wanted))
        self._last_due |= due.last
        self._is_something_due = due.is_any
        self._left_alone.add(due.newer)
        if touched:
            due = due.without(touched)
        for item in due.items:
            self._lease_table.release(item)
        return due

    def quiet_until(self) -> Instant | None:
        """Return the time before which nothing is due, if nothing is written; None where that is not known."""
        return self._next_due.at

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return await self._database.read(parked_under)

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work."""
        return await self._amendments.amend(amendments)

    async def depth(self, lane: Lane) -> int:
        """See Work; counts the shards of this process, and from 10,000 up what is open in the lane altogether."""
        read = self._database.read_to_lease
        async with self._reading:
            self._follow_shards()
            rows = await read(lambda connection: self._tail.depth(connection, lane, _DEPTH_COUNTED))
        if rows == _DEPTH_COUNTED:
            return max(rows, await self._database.read(lambda connection: open_in(connection, lane)))
        if lane is Lane.BULK:
            rows += await read(lambda connection: self._pieces.depth(connection, self._leasing.others))
        return max(0, rows + self._lease_table.ready_beside(lane))

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work; of the whole store."""
        return await self._database.read(lambda connection: backlog(connection, now, counts_from))

    async def lag(self) -> Lags:
        """See Work; of the whole store."""
        async with self._reading:
            oldest = await self._database.read_to_lease(self._tail.oldest)
        return await self._database.read(lambda connection: lags(connection, oldest))

    async def lease_recipients(self, n: int) -> list[WorkItem]:
        """Lease at most *n* recipients of running bulk jobs, where others carry everything else."""
        items: list[WorkItem] = []
        self._follow_shards()
        try:
            await self._lease_recipients(n, items)
        except BaseException:
            self._let_go(NO_LEASE, items)
            raise
        return items

    def holds_recipient(self, notification_id: NotificationId) -> bool:
        """Tell whether it is a recipient of a bulk job that is leased here."""
        return self._pieces.holds(notification_id)

    async def recipients_waiting(self) -> int:
        """Count the recipients of running bulk jobs that could be leased here."""
        self._follow_shards()
        shards = self._leasing.others
        return await self._database.read_to_lease(lambda connection: self._pieces.depth(connection, shards))

    def busy_units(self) -> set[int]:
        """Return the units of which something is leased or being withdrawn: not to be handed over yet."""
        return self._lease_table.busy_units() | self._amendments.busy_units() | self._pieces.busy_units()

    def stop_leasing(self, units: Collection[int]) -> None:
        """Stop leasing from *units*, so that they become free to be handed over."""
        if not self._stopped.issuperset(units):
            self._stopped |= frozenset(units)
            self._look_again()

    def lease_again(self, units: Collection[int]) -> None:
        """Lease from *units* again, now or once they are owned: they were released, and may come back."""
        if not self._stopped.isdisjoint(units):
            self._stopped -= frozenset(units)
            self._look_again()

    def _note_arrivals(
        self, transaction: Transaction, arrivals: Sequence[NewNotification], numbers: Sequence[int]
    ) -> None:
        self._tail.note(transaction.connection, arrivals, numbers)

    def _is_passed_over(self, notification_id: NotificationId, n: int | None) -> bool:
        """Tell whether a due part is in hand here, or is not for this version."""
        return self._lease_table.is_taken(notification_id, n) or (notification_id, n) in self._left_alone

    def _rooms(self) -> dict[Lane, Room]:
        """Return how much more of each lane that is leased here may be released; another comes first each time."""
        self._lanes.rotate(-1)
        ready, last = self._lease_table.ready_by_app, self._last_due
        mine = [lane for lane in self._lanes if self._leasing.of(lane)]
        return {lane: Room(_READY_LIMIT, ready(lane), last.get(lane, AppId(""))) for lane in mine}

    def _follow_shards(self) -> None:
        """Notice that shards came or went."""
        if self._version == self._shards.version:
            return
        self._version = self._shards.version
        owned = owned_units(self._shards)
        self._stopped &= owned
        self._leasing = Leasing.of_units(owned - self._stopped)
        self._lease_table.drop_ready(self._leasing)
        self._pieces.keep(self._leasing.others)
        self._left_alone.clear()
        self._tail.start_over(self._leasing)

    def _look_again(self) -> None:
        self._version = _NO_VERSION

    def _store_changed(self, state: StoreState) -> None:
        """Look at everything again where a server that was away may have lost what was answered but not durable."""
        if state is StoreState.OK:
            self._look_again()

    def _let_go(self, token: int, items: Sequence[WorkItem]) -> None:
        """Make what a lease that failed half way holds leasable again: nobody will hear of it."""
        self._settlements.let_go(token, items)
        self._look_again()

    async def _lease(self, lane: Lane, n: int, token: int, items: list[WorkItem]) -> None:
        """Fill *items*; apps take turns: each its share, then again those that have more."""
        with_fresh = await self._database.read_to_lease(lambda connection: self._tail.apps(connection, lane))
        waiting = self._in_turn(lane, with_fresh | self._lease_table.apps(lane))
        while waiting and len(items) < n:
            share = -(-(n - len(items)) // len(waiting))
            unsatisfied: list[AppId] = []
            for app in waiting:
                before = len(items)
                wanted = min(share, n - before)
                if wanted:
                    await self._lease_of_app(lane, app, before + wanted, token, items)
                if len(items) > before:
                    self._last_app[lane] = app
                if len(items) == before + wanted:
                    unsatisfied.append(app)
            waiting = unsatisfied

    def _in_turn(self, lane: Lane, apps: set[AppId]) -> list[AppId]:
        return sorted(apps, key=turn_after(self._last_app.get(lane, "")))

    async def _lease_of_app(self, lane: Lane, app: AppId, until_n: int, token: int, items: list[WorkItem]) -> None:
        """Fill *items* up to *until_n*."""
        items += self._lease_table.take(lane, app, until_n - len(items), token)
        wanted, is_taken = until_n - len(items), self._lease_table.is_taken
        with self._lease_table.watching() as touched:
            rows = await self._database.read_to_lease(
                lambda connection: self._tail.read(connection, lane, app, wanted, is_taken)
            )
        self._follow_shards()  # some may have been handed over meanwhile: their new owner leases their rows
        for item, shard in rows:
            if item.notification.id not in touched and shard in self._leasing.of(lane):
                self._lease_table.hold_fresh(item, shard, token)
                items.append(item)

    async def _lease_recipients(self, n: int, items: list[WorkItem]) -> None:
        """Add at most *n* recipients of bulk jobs to *items*."""
        while n > 0:
            found = self._pieces.take(await self._database.read_to_lease(running_jobs), n)
            items += found
            n -= len(found)
            if n == 0 or (read := await self._pieces.load(self._leasing.others)) is None:
                return
            async with self._reading:  # no cursor begins again under a read that still moves it
                self._follow_shards()
            if read.row.shard not in self._leasing.others:
                continue  # its owner reads it
            if read.items:
                self._pieces.keep_read(read)
            else:  # nobody is left in it: it is closed
                done = [PieceSettled(read.row.seq, read.due, ())]
                await asyncio.shield(self._database.commits.submit(SETTLE_RECIPIENTS, done))

    def _wake_owners(self, batch: Sequence[NewNotification | Replay]) -> None:
        mine = Leasing(self._shards.owned, self._shards.critical)
        if self._peers is None or len(mine.others) == len(mine.critical) == SHARDS:
            return
        arrived = [item.notification for item in batch if isinstance(item, NewNotification)]
        lanes = [
            lane
            for lane in {one.lane for one in arrived}
            if any(one.lane is lane and shard_of(one.app, one.user_id) not in mine.of(lane) for one in arrived)
        ]
        if lanes:
            self._peers.tell(WORK_TOPIC, ",".join(sorted(lanes)).encode())


def is_urgent(batch: Sequence[NewNotification | Replay]) -> bool:
    """Tell whether what is accepted is critical, all of it: who sends it among other things is in no hurry."""
    return all(isinstance(item, NewNotification) and item.notification.lane is Lane.CRITICAL for item in batch)

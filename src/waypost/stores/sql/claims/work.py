"""The transactional boundary on PostgreSQL: any process leases anything, and the store says who has what.

A lease is as good as its member: the server's clock says when that is over, or the supervisor that saw it end. So
nothing is extended while deliveries are under way, and who shares what is due is a matter of fairness alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial

from waypost.domain.amendment import Amended, Amendment, gathered
from waypost.domain.backlog import Lags, Waiting
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.settlement import Again, Unstarted
from waypost.domain.time import Instant
from waypost.domain.turns import turn_after
from waypost.ports.clock import Clock
from waypost.ports.promises import EVERY_PROMISE
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, WorkItem
from waypost.stores.sql.accept import accept_kind
from waypost.stores.sql.amendments import spread
from waypost.stores.sql.backlog import lags
from waypost.stores.sql.claims.amend import AMEND, AMEND_AND_TELL
from waypost.stores.sql.claims.held import Held
from waypost.stores.sql.claims.lease import LEASE, NOTHING, Leased, LeaseRequest, Part, first_waiting
from waypost.stores.sql.claims.promote import RELEASE, Timer, is_something_due
from waypost.stores.sql.claims.settle import INTEND, SETTLE, Report
from waypost.stores.sql.claims.tail import ClaimTail
from waypost.stores.sql.claims.waiting_from import WaitingFrom
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.due_from import DueFrom
from waypost.stores.sql.fresh_from import FreshFrom
from waypost.stores.sql.lease import open_in
from waypost.stores.sql.left_alone import LeftAlone
from waypost.stores.sql.next_due import NextDue
from waypost.stores.sql.outbox.entries import write_arrivals, write_scheduled
from waypost.stores.sql.outbox.relaying import Relay
from waypost.stores.sql.settlements import intends
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.store import Store
from waypost.stores.sql.transaction import Transaction
from waypost.stores.sql.work import WORK_TOPIC, SqlWork, is_urgent

_DEPTH_COUNTED = 10_000
_RECORDER = 0
"""The shard whose owner records what holds for all."""
_WAITING = (
    "SELECT count(*) FROM (SELECT 1 FROM claim WHERE lane = ? AND holder IS NULL AND free_at >= ?{part} LIMIT ?) AS one"
)
_MEMBERS = 1 << 40
"""The factor of tokens: a lease's is its own number, with the number of the member that holds it below."""
_AGAIN_S = 60.0
"""Seconds after which everything is looked through once more."""


class ClaimedWork:
    """The work with stored claims: see Work; recipients of bulk jobs are leased by the owner of their shard."""

    promises = EVERY_PROMISE

    def __init__(
        self, store: Store, clock: Clock, held: Held, part: Part = Part.ANY, outbox: Relay | None = None
    ) -> None:
        """Create it: it leases *part*, notes in *held* what it has, writes for *outbox* what becomes leasable."""
        self._database: Database = store.database
        self._member: Callable[[], int | None] = store.member
        self._stored: SqlWork = store.work
        self._shards = store.shards
        self._peers = store.peers
        self._held = held
        self._part = part
        self._clock = clock
        self._tail = ClaimTail()
        self._outbox = outbox
        self._tells_of_waiting = outbox is not None and outbox.tells_of_waiting
        waits = write_scheduled if self._tells_of_waiting else None
        self._accept = accept_kind(store.database.settings.dedup_partition_h, self._note, waits)
        self._numbers = itertools.count(1)
        self._last_app: dict[Lane, AppId] = {}
        self._waiting_from = WaitingFrom(store.database, part)
        self._clean_among: frozenset[int] = frozenset()
        """The members when nothing was left of those who were gone before."""
        self._began_s = clock.monotonic()
        self._leasing = asyncio.Lock()
        self._due_from = DueFrom(store.database)
        self._next_due = NextDue(store.database)
        self._left_alone = LeftAlone(store.database)
        self._fresh_from = FreshFrom(store.database, self._tail, self._leasing)
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_arrival: Callable[[Lane], None] = lambda lane: None
        """Called with each lane of which something became leasable that nobody accepted just now."""
        store.database.commits.on_state_change(self._store_changed)

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        if not batch:
            return []
        answers = await asyncio.shield(
            self._database.commits.submit(self._accept, batch, len(batch), urgent=is_urgent(batch))
        )
        self._tell_others(item.notification.lane for item in batch if isinstance(item, NewNotification))
        self._publish()
        return answers

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work; *until* is not needed: a lease ends with the member that has it."""
        member = self._member()
        if member is None:
            return Lease(0, lane, ())
        token = next(self._numbers) * _MEMBERS + member
        items: list[WorkItem] = []
        try:
            items += await self._lease(lane, n, token)
            if self._expands(lane) and len(items) < n:
                items += await self._stored.lease_recipients(n - len(items))
        except BaseException:
            self._give_back(token, items)
            raise
        return Lease(token, lane, tuple(items))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work; what a member leased is its own while it is one."""
        return self._member() == lease.token % _MEMBERS

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        recipients = [one for one in settled if self._stored.holds_recipient(one.notification.id)]
        if recipients:
            stored = [one for one in settled if not self._stored.holds_recipient(one.notification.id)]
            await self._stored.settle_recipients(recipients)
            settled = stored
        return await self._settle(lease.token, settled) if settled else []

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        """See Work; of the shards that this process owns."""
        shards = self._shards.owned
        if not shards:
            return 0
        if _RECORDER in shards:
            await self._fresh_from.record(now)
            await self._waiting_from.record(now)
        since = await self._due_from.place(now, records=_RECORDER in shards)
        await self._database.changes.look()
        if not lifted and self._next_due.is_later(now, since):
            return 0
        seen = self._database.changes.version
        timer = Timer(now, n, shards, tuple(lifted.items()), self._outbox is not None, self._clean_among, since)
        due, members = await self._database.read_to_lease(lambda connection: is_something_due(connection, timer))
        if self._clean_among - members:
            self._tail.begin_again()
        if not due:
            self._clean_among = members
            await self._next_due.read(since, seen)
            return 0
        released = await asyncio.shield(self._database.commits.submit(RELEASE, timer, n))
        self._clean_among = members
        if released.added or released.freed:
            self.tell(Lane)
        return released.added

    def quiet_until(self) -> Instant | None:
        """Return the time before which nothing is due, if nothing is written; None where that is not known."""
        return self._next_due.at

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return await self._stored.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work; whoever is asked decides."""
        parts = await spread(self._database, amendments)
        orders = [each for part in parts for each in part]
        kind = AMEND_AND_TELL if self._tells_of_waiting else AMEND
        answers = await asyncio.shield(self._database.commits.submit(kind, orders, len(orders))) if orders else []
        return gathered(parts, answers)

    async def depth(self, lane: Lane) -> int:
        """See Work; of the whole store."""
        since = self._waiting_from.place(lane)

        def count(connection: Connection) -> int:
            fresh = 0
            if self._part is not Part.TARGETS:
                fresh = self._tail.depth(connection, lane, _DEPTH_COUNTED)
            bound = (lane, since, _DEPTH_COUNTED)
            row: tuple[int] = connection.execute(_WAITING.replace("{part}", self._part), bound).fetchone()
            return fresh + row[0]

        async with self._leasing:
            rows = await self._database.read_to_lease(count)
        if rows >= _DEPTH_COUNTED:
            return max(rows, await self._database.read(lambda connection: open_in(connection, lane)))
        return rows + (await self._stored.recipients_waiting() if self._expands(lane) else 0)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work; of the whole store."""
        return await self._stored.backlog(now, counts_from)

    async def lag(self) -> Lags:
        """See Work; of the whole store."""
        async with self._leasing:
            oldest = await self._database.read_to_lease(self._tail.oldest)
        return await self._database.read(lambda connection: lags(connection, oldest))

    def tell(self, lanes: Iterable[Lane]) -> None:
        """Tell every worker that these lanes have work, this one first."""
        told = sorted(set(lanes))
        for lane in told:
            self.on_arrival(lane)
        self._tell_others(told)
        if told:
            self._publish()

    def _publish(self) -> None:
        if self._outbox is not None:
            self._outbox.wake()

    def _expands(self, lane: Lane) -> bool:
        """Tell whether recipients of bulk jobs are leased here: they were looked up as their job was expanded."""
        return lane is Lane.BULK and self._part is not Part.WHOLE

    def _tell_others(self, lanes: Iterable[Lane]) -> None:
        told = sorted(set(lanes))
        if self._peers is not None and told:
            self._peers.tell(WORK_TOPIC, ",".join(told).encode())

    def _note(self, transaction: Transaction, arrivals: Sequence[NewNotification], numbers: Sequence[int]) -> None:
        self._tail.note(transaction.connection, arrivals, numbers)
        if self._outbox is not None:
            write_arrivals(transaction, arrivals)

    def _store_changed(self, state: StoreState) -> None:
        """Begin again where a server that was away may have lost what was answered without being durable."""
        if state is StoreState.OK:
            self._tail.begin_again()

    async def _lease(self, lane: Lane, n: int, token: int) -> Sequence[WorkItem]:
        """Lease what waits, and what is fresh."""
        async with self._leasing:
            if self._clock.monotonic() - self._began_s > _AGAIN_S:
                self._began_s = self._clock.monotonic()
                self._tail.begin_again()
            wanted = await self._wanted(lane, n, token % _MEMBERS)
            if wanted is None:
                return ()
            stands = {stand.app: stand for stand in self._tail.stands(lane)}
            try:
                leased = await self._submit(token, wanted)
            except BaseException:
                self._tail.begin_again()
                raise
            self._left_alone.add(leased.newer)
            for passed in leased.passed:
                self._tail.passed(lane, stands[passed.app], passed)
                if passed.found:
                    self._last_app[lane] = passed.app
            return leased.items

    async def _wanted(self, lane: Lane, n: int, member: int) -> LeaseRequest | None:
        """Build the request for a lease; None where nothing is to be had."""
        now = self._clock.now()
        since = await self._waiting_from.begin(lane, now)

        def look(connection: Connection) -> Instant | None:
            if self._part is not Part.TARGETS:
                self._tail.apps(connection, lane)
            return first_waiting(connection, lane, since, self._part)

        first = await self._database.read_to_lease(look)
        self._waiting_from.move(lane, first, now)
        stands = [] if self._part is Part.TARGETS else self._tail.stands(lane)
        if first is None and not stands:
            return None
        after = turn_after(self._last_app.get(lane, ""))
        fresh = tuple((stand.app, stand.after) for stand in sorted(stands, key=lambda stand: after(stand.app)))
        return LeaseRequest(member, lane, n, None if first is None else since, self._part, fresh)

    async def _submit(self, token: int, wanted: LeaseRequest) -> Leased:
        future = self._database.commits.submit(LEASE, wanted, wanted.n)
        future.add_done_callback(partial(self._note_leased, wanted.member))
        try:
            return await asyncio.shield(future)
        except BaseException:
            future.add_done_callback(lambda done: self._nobody_heard(token, done))
            raise

    def _note_leased(self, member: int, done: asyncio.Future[Leased]) -> None:
        self._held.leased(member, _answer(done).items)

    def _nobody_heard(self, token: int, done: asyncio.Future[Leased]) -> None:
        self._give_back(token, _answer(done).items)

    def _give_back(self, token: int, items: Sequence[WorkItem]) -> None:
        """Give back a lease of which nobody will hear."""
        if items:
            back = [Settled(item.notification, given_back=True) for item in items]
            self._in_background(self._settle_unheard(token, back))

    async def _settle_unheard(self, token: int, back: Sequence[Settled]) -> None:
        with contextlib.suppress(Unavailable):  # the store is closing: so is the membership, and with it the lease
            await self._settle(token, back)

    async def _settle(self, token: int, settled: Sequence[Settled]) -> list[Stale]:
        report = Report(token % _MEMBERS, tuple(settled), self._outbox is not None, self._tells_of_waiting)
        rows = sum(len(one.changes) + 1 for one in settled)
        kind = INTEND if any(intends(one) for one in settled) else SETTLE
        future = self._database.commits.submit(kind, report, rows)
        future.add_done_callback(partial(self._note_settled, report))
        stale = await asyncio.shield(future)
        self.tell(one.notification.lane for one in settled if _hands_over(one))
        if self._tells_of_waiting and any(map(_is_tried_again, settled)):
            self._publish()
        return stale

    def _note_settled(self, report: Report, written: asyncio.Future[list[Stale]]) -> None:
        if not written.cancelled() and written.exception() is None:
            self._held.settled(report.member, report.settled, written.result())

    def _in_background(self, doing: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _answer(done: asyncio.Future[Leased]) -> Leased:
    """Return what was leased: nothing, where that failed."""
    return NOTHING if done.cancelled() or done.exception() is not None else done.result()


def _is_tried_again(settled: Settled) -> bool:
    """Tell whether a target of it waits for its next attempt."""
    return any(isinstance(change.settlement, Again) for change in settled.changes)


def _hands_over(settled: Settled) -> bool:
    """Tell whether targets of it were resolved and are for somebody else to send."""
    is_back = settled.given_back or any(isinstance(change.settlement, Unstarted) for change in settled.changes)
    return is_back and settled.targets is not None

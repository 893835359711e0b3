"""The transactional boundary where a broker carries: SQL is the truth, stored leases included.

The broker brings entries to whoever has room, on any machine. It is told apart from nothing: an entry says which
notification to look at, the outbox what of it is leasable, and an entry is acknowledged as soon as that was asked.
What it loses, or brings twice, or late, costs a look.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial

from waypost.adapters.sql.accept import accept_kind
from waypost.adapters.sql.amendments import spread
from waypost.adapters.sql.database import Database
from waypost.adapters.sql.due_from import DueFrom
from waypost.adapters.sql.lease import open_in
from waypost.adapters.sql.relayed.amend import AMEND
from waypost.adapters.sql.relayed.held import Held as HeldParts
from waypost.adapters.sql.relayed.lease import LEASE, Leased, Part, Wanted, first_open
from waypost.adapters.sql.relayed.outbox import write_arrivals
from waypost.adapters.sql.relayed.relaying import Relay, said_in
from waypost.adapters.sql.relayed.release import RELEASE, Timer, is_something_due
from waypost.adapters.sql.relayed.settle import SETTLE, Report
from waypost.adapters.sql.store import Store
from waypost.adapters.sql.work import SqlWork
from waypost.domain.amendment import Amended, Amendment, gathered
from waypost.domain.backlog import Waiting
from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.settlement import Unstarted
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.broker import Broker, Held
from waypost.ports.clock import Clock
from waypost.ports.promises import EVERY_PROMISE
from waypost.ports.work import Acceptance, Arrival, Lease, Replay, Settled, WorkItem

_DEPTH_COUNTED = 10_000
_COUNTED = "SELECT 1 FROM outbox WHERE lane = ?1 AND holder IS NULL AND done_at IS NULL"
_DEPTH = (
    f"SELECT (SELECT count(*) FROM ({_COUNTED} AND again_at = 0 LIMIT ?2) AS back)"  # noqa: S608 - conditions of ours
    f" + (SELECT count(*) FROM ({_COUNTED} AND again_at >= ?3 LIMIT ?2) AS open)"
)
_MEMBERS = 1 << 40
"""A lease's token is its own number, and below that of the member that holds it."""
_LOOK_S = 1.0
"""How often a lane that the broker keeps busy is looked through for what it lost."""
_LATE_MS = 30 * SECOND_MS
"""An entry may be found so long after it was due: for clocks that differ, and commits that took long."""
_RECORDER = 0
"""Who has this shard puts on record what holds for all."""
_EVER = Instant((1 << 62) - 1)


class RelayedWork:
    """See Work; recipients of bulk jobs are leased from the store alone, by who owns their shard."""

    promises = EVERY_PROMISE

    def __init__(
        self, store: Store, broker: Broker, relay: Relay, clock: Clock, held: HeldParts, part: Part = Part.ANY
    ) -> None:
        """It leases *part*, which *broker* brings, and notes in *held* what it has."""
        self._database: Database = store.database
        self._member: Callable[[], int | None] = store.member
        self._stored: SqlWork = store.work
        self._shards = store.shards
        self._broker = broker
        self._relay = relay
        self._held = held
        self._part = part
        self._clock = clock
        self._accept = accept_kind(store.database.settings.dedup_slice_h, write_arrivals)
        self._numbers = itertools.count(1)
        self._came_back: set[Lane] = set()
        """Lanes of which something was given back, or lost by its worker."""
        self._looked_s: dict[Lane, float] = {}
        self._since: dict[Lane, Instant] = {}
        """Nothing that was due before waits for anybody: a read need not begin at what has long been done."""
        self._clean_among: frozenset[int] = frozenset()
        """The members when nothing was left of those who were gone before."""
        self._due_from = DueFrom(store.database)
        self._is_broker_away = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, batch: Sequence[Arrival | Replay]) -> list[Acceptance]:
        """See Work."""
        if not batch:
            return []
        answers = await asyncio.shield(self._database.commits.submit(self._accept, batch, len(batch)))
        self._relay.wake()
        return answers

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work; *until* is not needed: a lease ends with the member that has it."""
        member = self._member()
        if member is None:
            return Lease(0, lane, ())
        token = next(self._numbers) * _MEMBERS + member
        items: list[WorkItem] = []
        try:
            if self._is_time_to_look(lane):
                items += await self._lease_overdue(lane, n, token)
                if not items:
                    self._came_back.discard(lane)
            if len(items) < n:
                items += await self._lease_handed_out(lane, n - len(items), token)
            if lane is Lane.BULK and self._part is not Part.WHOLE and len(items) < n:
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
            await self._stored.settle_recipients(recipients)
            settled = [one for one in settled if one not in recipients]
        return await self._settle(lease.token, settled) if settled else []

    async def release(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        """See Work; of the shards that this process owns."""
        if not self._shards.owned:
            return 0
        since = await self._due_from.place(now, records=_RECORDER in self._shards.owned)
        timer = Timer(now, n, self._shards.owned, tuple(lifted.items()), self._clean_among, since)
        due, members = await self._database.read_to_lease(lambda connection: is_something_due(connection, timer))
        if not due:
            self._clean_among = members
            return 0
        released = await asyncio.shield(self._database.commits.submit(RELEASE, timer, n))
        self._clean_among = members
        if released.added:
            self._relay.wake()
        if released.freed:
            self.freed()
            self._relay.tell(Lane)
        return released.added

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return await self._stored.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work; whoever is asked decides."""
        parts = await spread(self._database, amendments)
        orders = [each for part in parts for each in part]
        answers = await asyncio.shield(self._database.commits.submit(AMEND, orders, len(orders))) if orders else []
        return gathered(parts, answers)

    async def depth(self, lane: Lane) -> int:
        """See Work; of the whole store."""
        read = self._database.read_to_lease
        bound = (lane, _DEPTH_COUNTED, self._since.get(lane, Instant(1)))
        rows: int = await read(lambda connection: connection.execute(_DEPTH, bound).fetchone()[0])
        if rows >= _DEPTH_COUNTED:
            return max(rows, await self._database.read(lambda connection: open_in(connection, lane)))
        return rows + (await self._stored.recipients_waiting() if lane is Lane.BULK else 0)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work; of the whole store."""
        return await self._stored.backlog(now, counts_from)

    def freed(self) -> None:
        """Something is leasable again that the broker does not hand out."""
        self._came_back.update(Lane)

    def _is_time_to_look(self, lane: Lane) -> bool:
        """Whether some of the lane may be leasable that the broker does not hand out."""
        now_s = self._clock.monotonic()
        if lane not in self._came_back and now_s - self._looked_s.get(lane, -_LOOK_S) < _LOOK_S:
            return False
        self._looked_s[lane] = now_s
        return True

    async def _lease_overdue(self, lane: Lane, n: int, token: int) -> Leased:
        """What came back, and what the broker should have handed out long ago."""
        now, since = self._clock.now(), self._since.get(lane, Instant(1))
        items = await self._lease(token, Wanted(token % _MEMBERS, lane, (), now, n, self._part, since))
        if len(items) < n:
            first = await self._database.read_to_lease(lambda connection: first_open(connection, lane, since))
            until = later(now, -_LATE_MS)
            self._since[lane] = max(since, until if first is None else min(first, until))
        return items

    async def _lease_handed_out(self, lane: Lane, n: int, token: int) -> Leased:
        """What the broker hands out; where it hands out nothing at all, whatever there is."""
        overdue_at = self._clock.now()
        try:
            read = await self._broker.read(lane, n)
        except Unavailable:
            read, overdue_at = [], _EVER
            self._is_broker_away = True
        else:
            if self._is_broker_away:
                self._is_broker_away = False
                self._relay.carry_on()
        said = [said_in(held.body) for held in read]
        ids = tuple(dict.fromkeys(one for one in said if one is not None))
        since = self._since.get(lane, Instant(1))
        wanted = Wanted(token % _MEMBERS, lane, ids, overdue_at, n - len(ids), self._part, since)
        items = await self._lease(token, wanted)
        if read:
            self._in_background(self._acknowledge(lane, read))
        return items

    async def _lease(self, token: int, wanted: Wanted) -> Leased:
        future = self._database.commits.submit(LEASE, wanted, wanted.n + len(wanted.handed_out))
        future.add_done_callback(partial(self._note_leased, wanted.member))
        try:
            return await asyncio.shield(future)
        except BaseException:
            future.add_done_callback(lambda done: self._nobody_heard(token, done))
            raise

    def _note_leased(self, member: int, leased: asyncio.Future[Leased]) -> None:
        if not leased.cancelled() and leased.exception() is None:
            self._held.leased(member, leased.result())

    def _nobody_heard(self, token: int, leased: asyncio.Future[Leased]) -> None:
        if not leased.cancelled() and leased.exception() is None:
            self._give_back(token, leased.result())

    def _give_back(self, token: int, items: Sequence[WorkItem]) -> None:
        """Nobody will hear of this lease."""
        back = [Settled(item.notification, given_back=True) for item in items]
        self._in_background(self._settle_unheard(token, back))

    async def _settle_unheard(self, token: int, back: Sequence[Settled]) -> None:
        with contextlib.suppress(Unavailable):  # the store is closing: so is the membership, and with it the lease
            await self._settle(token, back)

    async def _settle(self, token: int, settled: Sequence[Settled]) -> list[Stale]:
        report = Report(token % _MEMBERS, tuple(settled))
        rows = sum(len(one.changes) + 1 for one in settled)
        future = self._database.commits.submit(SETTLE, report, rows)
        future.add_done_callback(partial(self._note_settled, report))
        stale = await asyncio.shield(future)
        let_go = {one.notification.lane for one in settled if _lets_go(one)}
        if let_go:
            self._came_back |= let_go
            self._relay.wake()
        return stale

    def _note_settled(self, report: Report, written: asyncio.Future[list[Stale]]) -> None:
        if not written.cancelled() and written.exception() is None:
            self._held.settled(report.member, report.settled, written.result())

    async def _acknowledge(self, lane: Lane, read: Sequence[Held]) -> None:
        with contextlib.suppress(Unavailable):  # it is handed out once more, to no effect
            await self._broker.ack(lane, read)

    def _in_background(self, doing: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _lets_go(settled: Settled) -> bool:
    """Whether some of it is leasable again at once."""
    return settled.given_back or any(isinstance(change.settlement, Unstarted) for change in settled.changes)

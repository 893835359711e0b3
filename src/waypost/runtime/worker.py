"""A worker: the lanes, tickers and server of one process, from start to drain."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

import msgspec
from msgspec import Struct

from waypost.domain.errors import Unavailable, WaypostError
from waypost.domain.notification import Lane
from waypost.domain.time import DAY_MS, later
from waypost.pipeline.expand import Paces, expand
from waypost.pipeline.report import READER, report
from waypost.pipeline.sweep import sweep
from waypost.ports.bulk import Bulk
from waypost.ports.dedup import Dedup
from waypost.ports.journal import Journal
from waypost.ports.lifecycle import Lifecycle
from waypost.ports.ownership import Ownership
from waypost.ports.peers import Peers
from waypost.ports.retention import Retention
from waypost.runtime.board import Board, WorkerState
from waypost.runtime.lane import Crew, LaneLoop
from waypost.runtime.shares import TOPIC as SHARDS_TOPIC
from waypost.runtime.shares import Shares
from waypost.runtime.ticker import every
from waypost.telemetry import Event, Metric

HEARTBEAT_S = 1.0
TIMER_S = 0.05
SHARES_S = 0.5
REPORT_S = 0.25
RECORD_S = 0.05
SWEEP_S = 60.0
EXPAND_S = 0.1
TIDY_S = 0.5
TIDY_PAGE = 500
DEPTH_S = 1.0
PARKED_S = 5.0
RELEASE_PAGE = 1_000
FAILED_DRAIN_S = 2.0
"""What a worker of which a stage failed gives the others to settle."""
LAST_WORDS_S = 1.0
"""For the senders to report what is still in flight, and for that to be written."""
WORK_TOPIC = "work"
"""Told by the store's adapter when it accepted work for a shard of somebody else: lanes, separated by commas."""


class Place(Struct, frozen=True):
    """Where a worker stands among the others."""

    slot: int
    board: Board
    peers: Peers
    ownership: Ownership
    store_fault: Callable[[], str | None]
    """Why the store cannot take writes, None while it can."""


class Chores(Struct, frozen=True):
    """What is done beside delivering, by whichever worker has the role."""

    journal: Journal
    dedup: Dedup
    retention: Retention
    bulk: Bulk
    keep_days: int
    """Days that finished notifications are kept."""
    record: Callable[[], Awaitable[int]] | None = None
    """Writes on the ledger, where a log is ahead of it; how much it found to write."""


class Worker:
    """One process's share of the work."""

    def __init__(self, crew: Crew, place: Place, chores: Chores, backlog_limit: int) -> None:
        self._crew = crew
        self._place = place
        self._chores = chores
        self._backlog_limit = backlog_limit
        self._lanes = {lane: LaneLoop(lane, crew) for lane in Lane}
        self._shares = Shares(place.ownership, place.board, place.peers, crew.telemetry, self._shards_came)
        self._paces = Paces()
        self._full: frozenset[Lane] = frozenset()
        self._state = WorkerState.STARTING
        self._balancing: asyncio.Future[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._lane_tasks: list[asyncio.Task[None]] = []

    def wake(self, lane: Lane) -> None:
        """Work for *lane* was accepted here."""
        self._lanes[lane].wake()

    def is_full(self, lane: Lane) -> bool:
        """Whether the backlog of *lane* is past its limit."""
        return lane in self._full

    @property
    def is_draining(self) -> bool:
        """Whether it is stopping."""
        return self._state is WorkerState.DRAINING

    async def run(
        self, server: Lifecycle, stop: asyncio.Event, on_ready: Callable[[], None], drain_timeout_s: float
    ) -> None:
        """Work and let *server* take requests until *stop* is set, then drain.

        ConfigurationError if a credential cannot be used.
        """
        patience_s = min(drain_timeout_s, FAILED_DRAIN_S)
        try:
            await self._start(server)
            on_ready()
            await self._told_to_stop(stop)
            patience_s = drain_timeout_s
        finally:
            await self._drain(server, patience_s)

    async def _told_to_stop(self, stop: asyncio.Event) -> None:
        """Return when *stop* is set; a stage that failed is a WaypostError: the worker ends rather than goes without.

        What the stage was about to touch stays noted, so that it is taken alone from now on.
        """
        told = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait([told, self._tasks[0], *self._lane_tasks], return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        for error in (task.exception() for task in done - {told}):
            if error is not None:
                last = traceback.extract_tb(error.__traceback__)[-1]
                failed = {"error": type(error).__name__, "place": f"{Path(last.filename).name}:{last.lineno}"}
                self._crew.telemetry.event(Event.STAGE_FAILED, stage="deliver", **failed)
                raise WaypostError(f"a stage failed: {failed['error']} at {failed['place']}") from None

    async def _start(self, server: Lifecycle) -> None:
        self._beat()
        for sender in self._crew.senders.values():
            await sender.start()
        self._listen_to_peers()
        self._crew.settler.on_room = self._wake_all
        self._crew.settler.store_fault = self._place.store_fault
        self._tasks = [asyncio.create_task(each) for each in (self._crew.settler.run(), *self._tickers())]
        self._lane_tasks = [asyncio.create_task(lane.run()) for lane in self._lanes.values()]
        await server.start()
        self._state = WorkerState.READY
        self._beat()
        self._crew.telemetry.event(Event.PROCESS_READY, slot=self._place.slot)
        self._place.peers.tell(SHARDS_TOPIC)

    def _tickers(self) -> list[Coroutine[None, None, None]]:
        tickers: list[tuple[str, float, Callable[[], Awaitable[object] | None]]] = [
            ("heartbeat", HEARTBEAT_S, self._beat),
            ("timer", TIMER_S, self._release),
            ("shares", SHARES_S, self._balance),
            ("report", REPORT_S, self._report),
            ("record", RECORD_S, self._record),
            ("sweep", SWEEP_S, self._sweep),
            ("expand", EXPAND_S, self._expand),
            ("tidy", TIDY_S, self._tidy),
            ("depth", DEPTH_S, self._measure),
            ("parked", PARKED_S, self._crew.gates.expect_parked),
        ]
        telemetry = self._crew.telemetry
        return [every(period_s, act, telemetry, name) for name, period_s, act in tickers]

    def _listen_to_peers(self) -> None:
        def shards_moved(_: bytes) -> None:
            self._crew.poison.refresh()
            self._balancing = asyncio.ensure_future(self._balance())

        def work_came(lanes: bytes) -> None:
            for lane in lanes.decode().split(","):
                self.wake(Lane(lane))

        self._place.peers.on(SHARDS_TOPIC, shards_moved)
        self._place.peers.on(WORK_TOPIC, work_came)

    async def _balance(self) -> None:
        with contextlib.suppress(Unavailable):  # the store says so itself, once; the next tick tries again
            await self._shares.balance()

    def _shards_came(self) -> None:
        self._crew.poison.refresh()
        self._crew.gates.expect_parked()
        self._wake_all()

    def _wake_all(self) -> None:
        for lane in self._lanes.values():
            lane.wake()

    def _beat(self) -> None:
        if self._state in (WorkerState.READY, WorkerState.DEGRADED):
            self._state = WorkerState.DEGRADED if self._place.store_fault() else WorkerState.READY
        self._place.board.beat(self._place.slot, self._state, self._crew.clock.monotonic())

    async def _release(self) -> None:
        """Let what is due come back, and of what is parked as much as there is room for."""
        gates = self._crew.gates
        gates.tick(self._crew.clock.monotonic())
        lifted = gates.lifted()
        released = await self._crew.work.release(self._crew.clock.now(), RELEASE_PAGE, lifted)
        if released:
            self._wake_all()
        elif lifted:
            gates.nothing_came(lifted)
        for lane in self._lanes.values():
            lane.look_again()

    async def _report(self) -> None:
        """Tell the registry what was settled, if that is this worker's role."""
        if not await self._place.ownership.take_role("report"):
            return
        while (page := await report(self._chores.journal, self._crew.devices)).rows:
            if page.evicted:
                self._crew.telemetry.event(Event.TOKENS_EVICTED, count=page.evicted)
                self._crew.telemetry.count(Metric.EVICTED, page.evicted)
            for (app, status), n in Counter(page.finished).items():
                self._crew.telemetry.count(Metric.FINISHED, n, app=app, status=status)

    async def _record(self) -> None:
        """Write down what the log says, if that is this worker's role, until there is no more."""
        if self._chores.record is None or not await self._place.ownership.take_role("record"):
            return
        while await self._chores.record():
            pass

    async def _expand(self) -> None:
        """Walk bulk jobs on, if that is this worker's role, until there is no room or nobody left."""
        if not await self._place.ownership.take_role("expand"):
            return
        moved = True
        while moved and not self.is_draining:
            expanded = await expand(self._chores.bulk, self._paces, self._crew.clock.now())
            moved = expanded.moved
            if expanded.recipients:
                self.wake(Lane.BULK)
                self._place.peers.tell(WORK_TOPIC, Lane.BULK.encode())

    async def _tidy(self) -> None:
        """Finish bulk jobs that are through, and stop what is still open of those that were cancelled."""
        if await self._place.ownership.take_role("expand"):
            now = self._crew.clock.now()
            for app, notification_id in await self._chores.bulk.tidy(now, TIDY_PAGE):
                await self._crew.work.withdraw(app, [notification_id], "cancelled", now)

    async def _sweep(self) -> None:
        """Clear away what is over, if that is this worker's role."""
        if await self._place.ownership.take_role("sweep"):
            keep_after = later(self._crew.clock.now(), -self._chores.keep_days * DAY_MS)
            chores = self._chores
            swept = await sweep(chores.journal, [READER], chores.dedup, chores.retention, keep_after)
            await chores.bulk.drop_before(keep_after)
            self._crew.telemetry.event(Event.SWEEP_DONE, **msgspec.structs.asdict(swept))

    async def _measure(self) -> None:
        """Publish depths and what was attempted; decide which lanes are full, and wake one that missed the word."""
        telemetry = self._crew.telemetry
        full: set[Lane] = set()
        for lane, loop in self._lanes.items():
            depth = await self._crew.work.depth(lane)
            telemetry.gauge(Metric.DEPTH, depth, lane=lane)
            loop.publish()
            if depth >= self._backlog_limit:
                full.add(lane)
            if depth and loop.is_idle:
                loop.wake()
        self._full = frozenset(full)
        for credential, in_flight in self._crew.gates.in_flight().items():
            telemetry.gauge(Metric.IN_FLIGHT, in_flight, credential=credential)

    async def _drain(self, server: Lifecycle, timeout_s: float) -> None:
        """Finish what is in hand: requests, deliveries in flight, their settlements."""
        self._state = WorkerState.DRAINING
        self._beat()
        self._crew.telemetry.event(Event.PROCESS_DRAINING)
        await server.stop()
        for lane in self._lanes.values():
            lane.stop()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*self._lane_tasks, return_exceptions=True)
                await asyncio.gather(*(lane.landed() for lane in self._lanes.values()))
                await self._crew.settler.drained()
        except TimeoutError:
            pass  # what is still in flight is leased again by whoever comes next
        await asyncio.gather(*(sender.stop(LAST_WORDS_S) for sender in self._crew.senders.values()))
        with contextlib.suppress(TimeoutError):  # a store that is away: it is leased again
            async with asyncio.timeout(LAST_WORDS_S):
                await self._crew.settler.drained()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._place.board.bury(self._place.slot)

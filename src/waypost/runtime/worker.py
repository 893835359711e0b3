"""A worker: the lanes, tickers and server of one process, from start to drain."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine
from functools import partial

from msgspec import Struct, structs

from waypost.domain.backlog import Backlog
from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane
from waypost.ports.changes import Changes
from waypost.ports.lifecycle import Lifecycle
from waypost.ports.ownership import Ownership
from waypost.ports.peers import Peers
from waypost.runtime.clock import ClockWatch
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.duties import Duties, DutyContext
from waypost.runtime.ending import FAILED_DRAIN_S, ended_by, landed, senders_stopped, told_to_stop
from waypost.runtime.lag import LAG_S, LagWatch
from waypost.runtime.lane import LaneLoop
from waypost.runtime.leasing import LeaseLoop
from waypost.runtime.parked import ParkedWork
from waypost.runtime.pulse import Pulse
from waypost.runtime.releasing import Releasing
from waypost.runtime.roles import Role
from waypost.runtime.routing import RouteLoop
from waypost.runtime.shares import NOBODY, CriticalPlace, Shares
from waypost.runtime.shares import TOPIC as SHARDS_TOPIC
from waypost.runtime.ticker import Rest, Ticker, every
from waypost.runtime.worker_slots import WorkerSlots, WorkerState
from waypost.telemetry import Event, Metric

HEARTBEAT_S = 1.0
PULSE_S = 0.05
SHARES_S = 0.5
ATTEND_S = 1.0
DEPTH_S = 1.0
MEASURE_REST_S = 5.0
"""Seconds between two measurements at most, while nothing is open and nothing is written."""
CHANGES_S = 0.25
"""Seconds for which what others wrote may go unnoticed where the store tells nobody, and that the clock was set."""
PARKED_S = 5.0
USE_S = 5.0
WRITTEN_TOPIC = "written"
"""The topic by which whoever reads the journal for all hears that there is something new in it."""
WORK_TOPIC = "work"
"""The topic that the store's adapter uses on accepting work for another's shard: lanes, separated by commas."""


class WorkerIdentity(Struct, frozen=True):
    """The identity of a worker among the others."""

    slot: int
    worker_slots: WorkerSlots
    peers: Peers
    ownership: Ownership
    store_fault: Callable[[], str | None]
    """The reason why the store cannot take writes, None while it can."""
    roles: frozenset[Role] = frozenset(Role)
    """The roles that it has."""
    critical: CriticalPlace = NOBODY


class Worker:
    """A worker: one process's share of the work."""

    def __init__(
        self, context: DeliveryContext, place: WorkerIdentity, duty_context: DutyContext, backlog: Backlog
    ) -> None:
        self._context = context
        self._work = duty_context.work
        self._place = place
        self._changes = duty_context.changes
        self._clock_watch = ClockWatch(context.clock)
        self._measures = duty_context.measures
        self._parked = ParkedWork(context.gates, duty_context.work, context.routing.conditions)
        self._backlog = backlog
        self._delivers = not place.roles.isdisjoint((Role.WORKER, Role.DELIVERER))
        lanes = (Lane.CRITICAL,) if place.critical.is_here else tuple(Lane)
        self._lanes = {lane: LaneLoop(lane, context) for lane in lanes}
        self._loops: list[LeaseLoop] = list(self._lanes.values()) if self._delivers else []
        if context.routes is not None and Role.ROUTER in place.roles:
            self._loops += [RouteLoop(lane, context, context.routes) for lane in lanes]
        self._releasing = Releasing(context, duty_context.work, self._parked, self._loops, duty_context.quiet_until)
        self._shares = Shares(
            place.ownership, place.worker_slots, place.peers, context.telemetry, self._shards_came, place.critical
        )
        for loop in self._loops:
            if loop.lane is Lane.CRITICAL:
                loop.is_elsewhere = lambda: self._shares.leaves_critical
        self._duties = Duties(context, duty_context, place.ownership, self._expanded)
        self._nobody_delivers = False
        self._is_known = False
        """Whether it is known to the others, so that it may lease."""
        self._state = WorkerState.STARTING
        self._pulse = Pulse(context.gates, context.clock, PULSE_S)
        self._balancing: asyncio.Future[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._lane_tasks: list[asyncio.Task[None]] = []

    def wake(self, lane: Lane) -> None:
        """Wake the loops of *lane*: work was accepted here."""
        for loop in self._loops:
            if loop.lane is lane:
                loop.wake()

    @property
    def backlog(self) -> Backlog:
        """The backlog as it was last counted."""
        return self._backlog

    @property
    def delivers(self) -> bool:
        """Whether it has a role that speaks to providers."""
        return self._delivers

    @property
    def is_draining(self) -> bool:
        """Whether it is stopping."""
        return self._state is WorkerState.DRAINING

    @property
    def nobody_delivers(self) -> bool:
        """Whether what is accepted here waits, since no process is known that has the role to deliver it."""
        return self._nobody_delivers

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
            await told_to_stop(stop, [self._tasks[0], *self._lane_tasks], self._context.telemetry)
            patience_s = drain_timeout_s
        finally:
            await self._drain(server, patience_s)

    async def _start(self, server: Lifecycle) -> None:
        self._beat()
        self._context.settler.on_written = self._room_was_made
        self._context.settler.store_fault = self._place.store_fault
        beating = every(HEARTBEAT_S, self._beat, self._context.telemetry, "heartbeat")
        self._tasks = [asyncio.create_task(each) for each in (self._context.settler.run(), beating)]
        for sender in self._context.senders.values() if self._delivers else ():
            await sender.start()
            await asyncio.sleep(0)  # with many of them, the heartbeat must come in between
        self._listen_to_peers()
        self._tasks += [asyncio.create_task(each) for each in self._tickers()]
        self._lane_tasks = [asyncio.create_task(loop.run()) for loop in self._loops]
        await server.start()
        self._state = WorkerState.READY
        self._beat()
        self._context.telemetry.event(Event.PROCESS_READY, slot=self._place.slot)
        self._place.peers.tell(SHARDS_TOPIC)

    def _tickers(self) -> list[Coroutine[None, None, None]]:
        tickers: list[Ticker] = [("depth", DEPTH_S, self._measure), ("use", USE_S, self._measure_use)]
        if self._delivers:
            lag = LagWatch(self._work, self._context.clock, self._context.telemetry)
            tickers.append(("lag", LAG_S, lag.measure))
            tickers.append(("pulse", PULSE_S, self._pulse.beat))
            tickers.append(("timer", self._context.timer.period_s, self._releasing.release))
            tickers.append(("shares", SHARES_S, self._balance))
            tickers.append(("parked", PARKED_S, self._parked.expect))
        else:
            tickers.append(("attend", ATTEND_S, self._attend))
        if self._changes is not None:
            tickers.append(("changes", CHANGES_S, partial(self._look, self._changes)))
        tickers += self._duties.tickers(self._place.roles)
        telemetry = self._context.telemetry
        return [every(period_s, act, telemetry, name, self._changes) for name, period_s, act in tickers]

    def _listen_to_peers(self) -> None:
        def shards_moved(_: bytes) -> None:
            self._context.poison.refresh()
            if self._delivers:
                self._balancing = asyncio.ensure_future(self._balance())

        def work_came(lanes: bytes) -> None:
            self._others_wrote()
            for lane in lanes.decode().split(","):
                self.wake(Lane(lane))

        def something_written(_: bytes) -> None:
            self._others_wrote()
            self._duties.written()

        self._place.peers.on(SHARDS_TOPIC, shards_moved)
        self._place.peers.on(WORK_TOPIC, work_came)
        self._place.peers.on(WRITTEN_TOPIC, something_written)

    async def _look(self, changes: Changes) -> None:
        """Look for what others wrote; a clock that was set ends the rests that last until something is due, too."""
        if self._clock_watch.was_set():
            changes.note()
        await changes.look()

    def _others_wrote(self) -> None:
        if self._changes is not None:
            self._changes.note()

    async def _balance(self) -> None:
        with contextlib.suppress(Unavailable):  # the store reports its outage, once; the next tick tries again
            await self._shares.balance()

    async def _attend(self) -> None:
        """Join the others, and report when that changes whether anybody delivers."""
        await self._place.ownership.attend()
        if not self._is_known:
            self._is_known = True
            self._wake_all()
        nobody = not self._place.ownership.sharers()
        if nobody is not self._nobody_delivers:
            self._nobody_delivers = nobody
            self._context.telemetry.event(Event.DELIVERY_MISSING if nobody else Event.DELIVERY_RESUMED)

    def _expanded(self, lane: Lane) -> None:
        self.wake(lane)
        self._place.peers.tell(WORK_TOPIC, lane.encode())

    def _shards_came(self) -> None:
        self._context.poison.refresh()
        self._parked.expect()
        self._wake_all()

    def _room_was_made(self, lanes: Collection[Lane]) -> None:
        """Wake the loops of *lanes*, whose outcomes were written; the others only look again if they had no room."""
        if self._duties.written():
            self._place.peers.tell(WRITTEN_TOPIC)
        for loop in self._loops:
            if loop.lane in lanes:
                loop.wake()
            else:
                loop.look_again()

    def _wake_all(self) -> None:
        for loop in self._loops:
            loop.wake()

    def _beat(self) -> None:
        self._context.settler.look(self._context.clock.monotonic())
        if self._state in (WorkerState.READY, WorkerState.DEGRADED):
            self._state = WorkerState.DEGRADED if self._place.store_fault() else WorkerState.READY
        self._place.worker_slots.beat(self._place.slot, self._state, self._context.clock.monotonic())

    async def _measure(self) -> Rest | None:
        """Publish depths and what was attempted; count the backlog, and wake a lane that missed the word."""
        telemetry = self._context.telemetry
        rest = self._releasing.rest(MEASURE_REST_S)
        for lane, delivering in self._lanes.items():
            depth = await self._work.depth(lane)
            rest = None if depth else rest
            telemetry.gauge(Metric.DEPTH, depth, lane=lane)
            delivering.publish()
            for loop in self._loops:
                if depth and loop.lane is lane and loop.is_idle:
                    loop.wake()
        waiting = await self._work.backlog(self._context.clock.now(), self._backlog.counts_from)
        self._backlog = structs.replace(self._backlog, waiting=waiting)
        for credential, in_flight in self._context.gates.in_flight().items():
            telemetry.gauge(Metric.IN_FLIGHT, in_flight, credential=str(credential))
        for credential, limit in self._context.gates.limits().items():
            telemetry.gauge(Metric.IN_FLIGHT_LIMIT, limit, credential=str(credential))
        return None if waiting else rest

    async def _measure_use(self) -> None:
        """Publish how much is used of what is limited: connections, the disk."""
        for measure in self._measures:
            measure()

    async def _drain(self, server: Lifecycle, timeout_s: float) -> None:
        """Lease nothing more; end requests and deliveries in flight, and let the shards go, all within *timeout_s*."""
        self._state = WorkerState.DRAINING
        for loop in self._loops:
            loop.stop()
        self._duties.stop()
        self._beat()
        self._context.telemetry.event(Event.PROCESS_DRAINING)
        parts = [server.stop(), landed(self._context, self._loops, self._lane_tasks)]
        if self._delivers:
            parts.append(self._shares.leave())
        await ended_by(timeout_s, parts, self._context.telemetry)
        await senders_stopped(self._context)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._place.worker_slots.bury(self._place.slot)

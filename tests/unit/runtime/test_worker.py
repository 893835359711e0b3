"""A whole worker on the memory store: what it finds again when nobody told it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.memory.bulk import MemoryBulk
from tests.memory.dedup import MemoryDedup
from tests.memory.erasures import MemoryErasures
from tests.memory.retention import MemoryRetention
from tests.shows import shows
from tests.unit.runtime.bench import APNS, APP, LaneBench, until
from waypost.domain.backlog import Backlog, Full
from waypost.domain.breaker import BreakerState
from waypost.domain.channel import Channel
from waypost.domain.content import Urgency
from waypost.domain.ids import SHARDS, AppId, NotificationId, UserId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Taken
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import HOUR_MS, Instant, later
from waypost.ports.changes import Changes
from waypost.ports.erasure import Erasure
from waypost.ports.lifecycle import Lifecycle
from waypost.ports.ownership import CriticalMoved, CriticalPart
from waypost.ports.work import Lease
from waypost.runtime import ending as ending_module
from waypost.runtime import worker as worker_module
from waypost.runtime.duties import DutyContext
from waypost.runtime.peers import NoPeers
from waypost.runtime.roles import CRITICAL_ROLES, Role
from waypost.runtime.shares import NOBODY, CriticalPlace
from waypost.runtime.timer import TimerSettings
from waypost.runtime.worker import Worker, WorkerIdentity
from waypost.runtime.worker_slots import WorkerState
from waypost.stores.sql.changes import StoreChanges
from waypost.stores.sql.sqlite import DataVersion
from waypost.telemetry import Metric, Silent

pytestmark = pytest.mark.asyncio


class OwnsAll:
    """The ownership of a worker alone."""

    def __init__(self) -> None:
        self.sharing: int | None = None
        self.has_left = False
        self.given = 0
        self.asked: set[str] = set()
        """The roles that it was asked for."""

    async def attend(self) -> None:
        """It is looked for whenever it is asked."""

    def owned(self) -> int:
        """All of them."""
        return SHARDS

    def sharers(self) -> int | None:
        """As a test says."""
        return self.sharing

    async def acquire(self, wanted: int) -> int:
        """There is nothing more."""
        return 0

    async def leave(self) -> None:
        """There is nobody to be told."""
        self.has_left = True

    def offer(self, n: int) -> None:
        """Note it."""
        self.given += n

    async def hand_over(self) -> int:
        """Nobody takes them."""
        return 0

    def offered(self) -> int:
        """As many as were offered."""
        return self.given

    async def claim_critical(self, part: CriticalPart) -> CriticalMoved:
        """It comes with the shards."""
        return CriticalMoved(0, 0)

    async def take_role(self, name: str) -> bool:
        """It has every role."""
        self.asked.add(name)
        return True


class NoServer:
    """A worker without an API."""

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""


class StuckServer(NoServer):
    """A door with a client that never ends."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.was_cut = False

    async def stop(self) -> None:
        """Wait for the client."""
        self.stopping.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.was_cut = True


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaneBench:
    """An empty store, and duties that are due soon."""
    monkeypatch.setattr(worker_module, "DEPTH_S", 0.02)
    monkeypatch.setattr(worker_module, "PARKED_S", 0.02)
    monkeypatch.setattr(worker_module, "ATTEND_S", 0.02)
    return LaneBench(tmp_path / "worker_slots")


@asynccontextmanager
async def at_work(
    bench: LaneBench,
    drain_timeout_s: float = 5.0,
    roles: Iterable[Role] = Role,
    ownership: OwnsAll | None = None,
    server: Lifecycle | None = None,
    backlog_limit: int = 1_000,
    timer: TimerSettings | None = None,
    changes: Changes | None = None,
    *,
    critical: CriticalPlace = NOBODY,
) -> AsyncIterator[Worker]:
    """A worker from its start to its drain."""
    bench.made = msgspec.structs.replace(bench.context(), timer=timer or TimerSettings())
    owned, does = ownership or OwnsAll(), frozenset(roles)
    slot = critical.slot if critical.is_here and critical.slot is not None else 0
    place = WorkerIdentity(slot, bench.worker_slots, NoPeers(), owned, lambda: None, does, critical)

    async def nothing_to_record() -> bool:
        return False

    duty_context = DutyContext(
        bench.work,
        bench.devices,
        bench.journal,
        MemoryDedup(bench.store, bench.clock),
        MemoryRetention(bench.store, bench.clock),
        MemoryBulk(bench.store),
        MemoryErasures(bench.store),
        30,
        nothing_to_record,
        changes=changes,
    )
    worker = Worker(bench.made, place, duty_context, Backlog(backlog_limit, is_shared=True))
    stop, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(worker.run(server or NoServer(), stop, ready.set, drain_timeout_s))
    await ready.wait()
    try:
        yield worker
    finally:
        stop.set()
        await running


async def test_work_of_which_the_word_was_lost_is_done(bench: LaneBench) -> None:
    """Whoever accepted it died, or the inbox was full: nobody wakes the lane, and it is sent all the same."""
    await bench.register("ann", Channel("apns"))
    async with at_work(bench) as worker:
        await until(lambda: all(lane.is_idle for lane in worker._lanes.values()))
        told = await bench.accept("ann")
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})


@shows("S3-61", "S3-62")
@pytest.mark.parametrize(("period_s", "is_again"), [(0.01, True), (300, False)])
async def test_what_is_due_is_looked_for_as_often_and_as_much_at_a_time_as_is_set(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch, period_s: float, is_again: bool
) -> None:
    """100 every 5 minutes is the third description's sweep (requirements S3-61 and S3-62)."""
    pages: list[int] = []
    measured = 0
    promote_due, depth = bench.work.promote_due, bench.work.depth

    async def noted(now: Instant, n: int, lifted: Mapping[str, int]) -> int | None:
        pages.append(n)
        return await promote_due(now, n, lifted)

    async def counted(lane: Lane) -> int:
        nonlocal measured
        measured += 1
        return await depth(lane)

    monkeypatch.setattr(bench.work, "promote_due", noted)
    monkeypatch.setattr(bench.work, "depth", counted)
    async with at_work(bench, timer=TimerSettings(period_s=period_s, page=100)):
        await until(lambda: measured > 5 * len(Lane))
        assert set(pages) == {100}
        assert (len(pages) > 1) is is_again


async def test_what_one_lane_settled_sends_no_other_to_the_store(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for work of their own; each had asked the store after every batch of anybody."""
    asked: list[Lane] = []
    lease = bench.work.lease

    async def noted(lane: Lane, limit: int, until: Instant) -> Lease:
        asked.append(lane)
        return await lease(lane, limit, until)

    monkeypatch.setattr(bench.work, "lease", noted)
    await bench.register("ann", Channel("apns"))
    async with at_work(bench) as worker:
        await until(lambda: all(lane.is_idle for lane in worker._lanes.values()))
        asked.clear()
        told = await bench.accept("ann")
        worker.wake(Lane.NORMAL)
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})
        await bench.written()
        await until(lambda: all(lane.is_idle for lane in worker._lanes.values()))
        assert set(asked) == {Lane.NORMAL}


async def test_what_is_parked_comes_back_although_nothing_was_expected(bench: LaneBench) -> None:
    """What was parked while the store was just asked, and had nothing, is found at the next look."""
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    bench.apns.answer = lambda delivery: CredentialRejected("refused", "the key was refused")
    async with at_work(bench):
        await bench.accept("ann")
        await until(lambda: bench.made.gates.of(Lane.NORMAL)[APNS].circuit.state is BreakerState.OPEN)
        told = await bench.accept("ann")
        await until(lambda: any(receipt.parked for receipt in bench.store.rows[told].receipts.values()))
        bench.apns.answer = lambda delivery: Taken("id")
        bench.made.gates.nothing_came({f"breaker:{APNS}": 1, f"room:normal/{APNS}": 1})
        bench.clock.advance(6_000)
        await until(lambda: set(bench.statuses(told).values()) == {DeliveryStatus.SENT})


async def test_a_store_that_has_not_answered_has_not_said_that_nothing_is_parked(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for the same at each release, until it has answered."""
    asked: list[str] = []

    async def unknown(now: Instant, n: int, lifted: Mapping[str, int]) -> int | None:
        asked.extend(lifted)
        return None

    monkeypatch.setattr(bench.work, "promote_due", unknown)
    async with at_work(bench):
        bench.made.gates.parked(f"breaker:{APNS}")
        await until(lambda: asked.count(f"breaker:{APNS}") > 2)


class Frozen:
    """The changes of a store that does not answer, nor refuse."""

    version = 0

    async def look(self) -> None:
        """Wait for ever."""
        await asyncio.get_running_loop().create_future()

    def note(self) -> None:
        """Note nothing."""

    async def wait(self, seen: int) -> None:
        """Wait for ever."""
        await asyncio.get_running_loop().create_future()


async def test_a_store_that_does_not_answer_keeps_nothing_back_that_is_due_elsewhere(bench: LaneBench) -> None:
    """With the log, what is due is not the store's: it is sent although nobody says whether that has changed."""
    await bench.register("ann", Channel("apns"))
    async with at_work(bench, changes=Frozen()):
        told = await bench.accept("ann", scheduled_at=later(bench.clock.now(), 1_000))
        bench.clock.advance(2_000)
        await until(lambda: set(bench.statuses(told).values()) == {DeliveryStatus.SENT})


async def test_a_clock_that_was_set_ends_what_rests_until_a_time(bench: LaneBench) -> None:
    """By much or by little, to either side; that it goes on is no news."""

    async def nobody_wrote() -> DataVersion:
        return DataVersion(0)

    changes = StoreChanges(nobody_wrote)
    async with at_work(bench, changes=changes):
        await until(lambda: changes.version == 1)  # the first look
        bench.clock.advance(HOUR_MS)
        for times, by_ms in enumerate((HOUR_MS, -100), start=2):
            bench.clock.set(by_ms)
            await until(lambda version=times: changes.version == version)  # type: ignore[misc]  # bound at once


@pytest.mark.parametrize(
    "condition", ["rate:normal/demo/apns", "room:normal/demo/gone", "breaker:demo/apns#40"], ids=["rate", "app", "name"]
)
async def test_what_is_parked_under_a_condition_that_no_gate_lifts_comes_back(bench: LaneBench, condition: str) -> None:
    """Its rate was lifted, its channel or app was taken out, or the version before made another name."""
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: CredentialRejected("refused", "the key was refused")
    async with at_work(bench):
        await bench.accept("ann")
        await until(lambda: bench.made.gates.of(Lane.NORMAL)[APNS].circuit.state is BreakerState.OPEN)
        told = await bench.accept("ann")
        await until(lambda: any(receipt.parked for receipt in bench.store.rows[told].receipts.values()))
    (receipt,) = bench.store.rows[told].receipts.values()
    bench.store.rows[told].receipts[receipt.n] = msgspec.structs.replace(receipt, parked=condition)
    bench.apns.answer = lambda delivery: Taken("id")
    async with at_work(bench):
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})


async def test_what_a_sender_reports_when_it_is_stopped_is_written(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time for the drain is over, the provider had it all along: it is not sent again after the start."""

    async def stop(timeout_s: float) -> None:
        bench.apns.finish(Taken("id"))

    monkeypatch.setattr(bench.apns, "stop", stop)
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: None
    async with at_work(bench, drain_timeout_s=0.01):
        told = await bench.accept("ann")
        await until(lambda: bool(bench.apns.open))
    assert bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT}


class Depths(Silent):
    """The last depth of each lane."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep it."""
        if metric is Metric.DEPTH:
            self.of[labels["lane"]] = value


@shows("S3-91")
async def test_the_depth_of_each_lane_is_what_waits_in_it(bench: LaneBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requirements S3-91: five wait while nobody can lease, and none afterwards."""
    bench.telemetry = depths = Depths()
    lease, may_lease = bench.work.lease, asyncio.Event()

    async def later(*asked: Any) -> Lease:
        await may_lease.wait()
        return await lease(*asked)

    monkeypatch.setattr(bench.work, "lease", later)
    await bench.register("ann", Channel("apns"))
    for _ in range(5):
        await bench.accept("ann")
    async with at_work(bench):
        await until(lambda: depths.of == dict.fromkeys(Lane, 0) | {Lane.NORMAL: 5})
        may_lease.set()
        await until(lambda: depths.of[Lane.NORMAL] == 0)
    assert len(bench.apns.sent) == 5


async def test_while_a_client_is_slow_nothing_is_leased_and_what_is_in_flight_is_written(bench: LaneBench) -> None:
    """The door does not end: what was sent is known all the same, nothing new is begun, and the shards are on offer."""
    server, ownership = StuckServer(), OwnsAll()
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: None
    async with at_work(bench, drain_timeout_s=0.5, ownership=ownership, server=server) as worker:
        told = await bench.accept("ann")
        await until(lambda: bool(bench.apns.open))

        async def meanwhile() -> NotificationId:
            await server.stopping.wait()
            late = await bench.accept("ann")
            worker.wake(Lane.NORMAL)
            bench.apns.finish(Taken("id"))
            return late

        going_on = asyncio.create_task(meanwhile())
    assert server.was_cut and (ownership.has_left, ownership.given) == (True, SHARDS)
    assert bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT}
    assert bench.statuses(await going_on) == {} and len(bench.apns.sent) == 1


async def test_the_heart_beats_while_senders_start(bench: LaneBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds of apps that takes longer than a silence may last."""
    monkeypatch.setattr(worker_module, "HEARTBEAT_S", 0.01)

    async def start() -> None:
        (before,) = bench.worker_slots.present()
        bench.clock.advance(1_000)
        await until(lambda: bench.worker_slots.present()[0].heartbeat_s > before.heartbeat_s)

    monkeypatch.setattr(bench.apns, "start", start)
    async with at_work(bench):
        pass


async def test_neither_a_door_nor_a_sender_that_never_stops_keeps_a_process_from_its_end(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one that ignores that it is cancelled."""
    monkeypatch.setattr(ending_module, "LAST_WORDS_S", 0.01)
    let_go = asyncio.Event()

    async def stop(timeout_s: float = 0) -> None:
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()

    server = NoServer()
    monkeypatch.setattr(server, "stop", stop)
    monkeypatch.setattr(bench.apns, "stop", stop)
    async with at_work(bench, drain_timeout_s=0.0, server=server):
        pass
    let_go.set()


async def test_without_the_role_of_a_worker_it_delivers_nothing_and_says_so(bench: LaneBench) -> None:
    """What it accepts waits; once a process that delivers is known of, it says no more that nobody does."""
    await bench.register("ann", Channel("apns"))
    ownership = OwnsAll()
    async with at_work(bench, roles={Role.API}, ownership=ownership) as worker:
        told = await bench.accept("ann")
        await until(lambda: worker.nobody_delivers)
        ownership.sharing = 1
        await until(lambda: not worker.nobody_delivers)
    assert bench.statuses(told) == {} and not bench.apns.sent
    async with at_work(bench, roles={Role.WORKER}) as worker:
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})
        assert not worker.nobody_delivers


@pytest.mark.parametrize("roles", [{role} for role in Role] + [set(Role), {Role.WORKER, Role.SWEEP}])
async def test_it_has_the_duties_of_its_roles_alone(bench: LaneBench, roles: set[Role]) -> None:
    ownership = OwnsAll()
    duties = roles - {Role.API, Role.GATEWAY, Role.WORKER, Role.ROUTER, Role.DELIVERER, Role.RELAY}
    async with at_work(bench, roles=roles, ownership=ownership) as worker:
        await until(lambda: ownership.asked >= duties)
        await until(lambda: worker.nobody_delivers is roles.isdisjoint({Role.WORKER, Role.DELIVERER}))
    assert ownership.asked == duties


async def test_an_erasure_that_stands_is_carried_on_by_whoever_sweeps(bench: LaneBench) -> None:
    """Whoever took the order is long gone."""
    await bench.register("ann", Channel("apns"))
    ann = UserId("ann")
    await MemoryErasures(bench.store).ask(
        Erasure(NotificationId(bytes(16)), APP, ann, UserId("erased-0"), bench.clock.now())
    )
    bench.clock.advance(HOUR_MS)
    async with at_work(bench, roles={Role.SWEEP}):
        await until(lambda: not bench.store.erasures)
    assert await bench.devices.of_user(APP, ann, inactive=True) == []


async def test_what_waits_of_an_app_is_found_and_refused_above_its_share(bench: LaneBench) -> None:
    """It is parked behind an open breaker, so that nothing of it could be leased."""
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: CredentialRejected("refused", "the key was refused")
    async with at_work(bench, backlog_limit=4) as worker:
        for _ in range(2):
            await bench.accept("ann")
        await until(lambda: worker.backlog.full(Lane.NORMAL, APP) is Full.APP)
        assert worker.backlog.full(Lane.NORMAL, AppId("other")) is None


@pytest.mark.parametrize("is_here", [True, False])
async def test_a_critical_worker_carries_its_lane_alone_and_the_others_all_but_that(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    """Where any process leases anything, what they ask for is all that parts them."""
    asked: list[Lane] = []
    lease = bench.work.lease

    async def noted(lane: Lane, n: int, until: Instant) -> Lease:
        asked.append(lane)
        return await lease(lane, n, until)

    bench.worker_slots.beat(0 if is_here else 1, WorkerState.READY, 0.0)
    roles: Iterable[Role] = CRITICAL_ROLES if is_here else Role
    ownership = OwnsAll()
    async with at_work(bench, roles=roles, ownership=ownership, critical=CriticalPlace(1, is_here)) as worker:
        await until(lambda: worker._shares._has_joined if is_here else worker._shares.leaves_critical)
        monkeypatch.setattr(bench.work, "lease", noted)
        for lane in Lane:
            worker.wake(lane)
        await until(lambda: all(loop.is_idle for loop in worker._loops))
        assert set(asked) == ({Lane.CRITICAL} if is_here else set(Lane) - {Lane.CRITICAL})
        assert ownership.asked == (set() if is_here else ownership.asked)


async def test_a_worker_sends_what_is_critical_from_when_the_critical_worker_is_gone(bench: LaneBench) -> None:
    await bench.register("ann", Channel("apns"))
    bench.worker_slots.beat(1, WorkerState.READY, 0.0)
    async with at_work(bench, critical=CriticalPlace(1)) as worker:
        await until(lambda: worker._shares.leaves_critical)
        told = await bench.accept("ann", urgency=Urgency.CRITICAL)
        bench.worker_slots.bury(1)
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})

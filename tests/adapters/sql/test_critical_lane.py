"""The critical lane is owned apart: one process carries it for all shards, and whoever is left does when that dies."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.adapters.sql.conftest import WallClock, settings_of
from tests.amending import withdraw
from tests.contract.bench import again, notification, targets
from tests.contract.party import Party
from waypost.domain.amendment import Withdrawn
from waypost.domain.ids import SHARDS, NotificationId
from waypost.domain.notification import Lane, Notification
from waypost.domain.time import MINUTE_MS, Instant, later
from waypost.ports.work import Lease, NewNotification, Settled
from waypost.runtime.peers import NoPeers
from waypost.runtime.shares import CriticalPlace, Shares
from waypost.runtime.worker_slots import WorkerSlots, WorkerState
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.ownership import Shards as Locks
from waypost.stores.sql.ownership import lock
from waypost.stores.sql.sharing import SqlOwnership
from waypost.stores.sql.store import Store, open_store
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

EVERY = frozenset(range(SHARDS))
CRITICAL_SLOT = 2


class _Process:
    """One process of three: its store, its slot and its shares."""

    def __init__(self, store: Store, slots: WorkerSlots, slot: int) -> None:
        self.store = store
        self.ownership = SqlOwnership(store.shards, store.work)
        self._slots = slots
        self._slot = slot
        place = CriticalPlace(CRITICAL_SLOT, is_here=slot == CRITICAL_SLOT)
        self.shares = Shares(self.ownership, slots, NoPeers(), Silent(), lambda: None, place)

    def says(self, state: WorkerState) -> None:
        """Say so in its slot."""
        self._slots.beat(self._slot, state, 0.0)

    async def dies(self) -> None:
        """Lose everything, as a process does that is killed, and is buried by its supervisor."""
        self._slots.bury(self._slot)
        await self.store.shards.close()

    async def lease(self, lane: Lane) -> Lease:
        """Lease all there is of *lane*."""
        return await self.store.work.lease(lane, 1_000, later(WallClock().now(), MINUTE_MS))

    async def leased(self, lane: Lane) -> list[NotificationId]:
        """Lease all there is of *lane*, and name it."""
        return [item.notification.id for item in (await self.lease(lane)).items]


class _Service:
    """The processes of one service."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._party = Party()
        self._slots = WorkerSlots(folder / "worker_slots")
        self.processes: list[_Process] = []

    async def starts(self, slot: int, state: WorkerState = WorkerState.READY) -> _Process:
        """Start the process of *slot*."""
        settings = settings_of(self._folder / "waypost.db")
        store = await open_store(settings, clock=WallClock(), peers=self._party.join(), telemetry=Silent())
        process = _Process(store, self._slots, slot)
        process.says(state)
        self.processes.append(process)
        return process

    async def close(self) -> None:
        """End all of them."""
        for process in self.processes:
            await process.store.close()


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[_Service]:
    """A service without processes."""
    it = _Service(tmp_path)
    yield it
    await it.close()


async def _balance(*processes: _Process) -> None:
    """Let each find its part, until nothing moves any more."""
    for _ in range(3):
        for process in processes:
            await process.shares.balance()


async def _accepted(process: _Process, lane: Lane, n: int = 40) -> list[NotificationId]:
    made = [notification(WallClock().now(), user=f"user-{each}", lane=lane) for each in range(n)]
    await process.store.work.accept([NewNotification(one) for one in made])
    return [one.id for one in made]


async def test_the_critical_worker_has_that_lane_of_all_shards_and_no_other(service: _Service) -> None:
    one, other, critical = [await service.starts(slot) for slot in range(3)]
    await _balance(one, other, critical)
    assert (critical.store.shards.owned, critical.store.shards.critical) == (frozenset(), EVERY)
    assert [len(each.store.shards.owned) for each in (one, other)] == [32, 32]
    assert one.store.shards.critical | other.store.shards.critical == frozenset()
    urgent, normal = await _accepted(one, Lane.CRITICAL), await _accepted(critical, Lane.NORMAL)
    assert await critical.leased(Lane.CRITICAL) == urgent
    assert [await each.leased(Lane.CRITICAL) for each in (one, other)] == [[], []]
    assert await critical.leased(Lane.NORMAL) == []
    assert sorted(await one.leased(Lane.NORMAL) + await other.leased(Lane.NORMAL)) == normal


async def test_it_takes_the_lane_from_the_others_once_nothing_of_it_is_leased(service: _Service) -> None:
    """What is in flight stays with who sent it; what comes meanwhile waits for the new owner, and is sent once."""
    alone = await service.starts(0)
    await _balance(alone)
    assert alone.store.shards.critical == EVERY, "nobody else is there"
    (first,) = await _accepted(alone, Lane.CRITICAL, 1)
    lease = await alone.lease(Lane.CRITICAL)
    critical = await service.starts(CRITICAL_SLOT, WorkerState.STARTING)
    await _balance(critical, alone)
    assert critical.store.shards.critical == frozenset(), "one that only starts has nothing left to it"
    critical.says(WorkerState.READY)
    await _balance(critical, alone, critical)
    assert (len(alone.store.shards.critical), len(critical.store.shards.critical)) == (1, SHARDS - 1)
    (second,) = await _accepted(critical, Lane.CRITICAL, 1)
    assert await alone.leased(Lane.CRITICAL) == await critical.leased(Lane.CRITICAL) == []
    await alone.store.work.settle(lease, [Settled(lease.items[0].notification, given_back=True)])
    await _balance(alone, critical)
    assert await alone.leased(Lane.CRITICAL) == []
    assert await critical.leased(Lane.CRITICAL) == [first, second]


async def test_the_others_have_the_lane_at_once_when_it_dies(service: _Service) -> None:
    one, other, critical = [await service.starts(slot) for slot in range(3)]
    await _balance(one, other, critical)
    made = await _accepted(one, Lane.CRITICAL)
    assert await critical.leased(Lane.CRITICAL) == made
    await critical.dies()
    await one.shares.balance()
    await other.shares.balance()
    assert one.store.shards.critical == one.store.shards.owned
    assert other.store.shards.critical == other.store.shards.owned
    assert sorted(await one.leased(Lane.CRITICAL) + await other.leased(Lane.CRITICAL)) == made


async def test_who_was_about_to_leave_it_the_lane_goes_on_when_it_dies_first(service: _Service) -> None:
    """What is leased kept it from handing over: it leases again, also of what came meanwhile."""
    alone, critical = await service.starts(0), await service.starts(CRITICAL_SLOT)
    await alone.ownership.acquire(SHARDS)
    await _accepted(alone, Lane.CRITICAL, 1)
    await alone.lease(Lane.CRITICAL)
    await alone.shares.balance()
    assert len(alone.store.shards.critical) == 1
    (late,) = await _accepted(alone, Lane.CRITICAL, 1)
    assert await alone.leased(Lane.CRITICAL) == []
    await critical.dies()
    await alone.shares.balance()
    assert await alone.leased(Lane.CRITICAL) == [late]


async def test_it_lets_go_of_the_lane_as_it_drains(service: _Service) -> None:
    one, critical = await service.starts(0), await service.starts(CRITICAL_SLOT)
    await _balance(one, critical)
    await _accepted(one, Lane.CRITICAL, 1)
    lease = await critical.lease(Lane.CRITICAL)
    critical.says(WorkerState.DRAINING)
    await critical.shares.leave()
    await one.shares.balance()
    assert (len(critical.store.shards.critical), len(one.store.shards.critical)) == (1, SHARDS - 1)
    await critical.store.work.settle(lease, [Settled(lease.items[0].notification, given_back=True)])
    await _balance(critical, one)
    assert one.store.shards.critical == EVERY
    assert await one.leased(Lane.CRITICAL) == [lease.items[0].notification.id]


async def test_a_retry_is_released_by_who_has_its_lane(service: _Service) -> None:
    one, critical = await service.starts(0), await service.starts(CRITICAL_SLOT)
    await _balance(one, critical)
    made: list[Notification] = []
    for process, lane in ((critical, Lane.CRITICAL), (one, Lane.NORMAL)):
        await _accepted(one, lane, 1)
        lease = await process.lease(lane)
        made.append(lease.items[0].notification)
        soon = Instant(WallClock().now() + 1)
        await process.store.work.settle(lease, [Settled(made[-1], (again(0, soon),), targets(1))])
    later_on = later(WallClock().now(), MINUTE_MS)
    assert [await each.store.work.promote_due(later_on, 10) for each in (one, critical)] == [1, 1]
    assert await critical.leased(Lane.CRITICAL) == [made[0].id]
    assert await one.leased(Lane.NORMAL) == [made[1].id]


async def test_its_owner_decides_about_a_cancellation(service: _Service) -> None:
    """Another is asked for it, and asks: what is leased there is known there alone."""
    one, critical = await service.starts(0), await service.starts(CRITICAL_SLOT)
    await _balance(one, critical)
    waiting, normal = await _accepted(one, Lane.CRITICAL, 1), await _accepted(one, Lane.NORMAL, 1)
    asked: Sequence[NotificationId] = [*waiting, *normal]
    app = notification(WallClock().now()).app
    for asker in (one, critical):
        answers = await withdraw(asker.store.work, app, asked, "cancelled", WallClock().now())
        assert all(isinstance(answer, Withdrawn) for answer in answers) is (asker is one)
    assert await critical.leased(Lane.CRITICAL) == []


async def test_a_process_of_the_version_before_and_these_never_have_one_shard(service: _Service) -> None:
    """It takes a shard with all its lanes, by a lock on the shard's file: then none of these has anything of it."""
    first = await service.starts(0)
    run_dir = run_dir_of_store(first.store.database.settings)
    old = lock(run_dir / "shard-07", fcntl.LOCK_EX)
    assert old is not None
    critical = await service.starts(CRITICAL_SLOT)
    await _balance(first, critical)
    assert first.store.shards.owned == critical.store.shards.critical == EVERY - {7}
    assert (await first.store.shards.borrow([7, 7 + SHARDS])).units == frozenset()
    assert lock(run_dir / "shard-08", fcntl.LOCK_EX) is None
    await first.store.shards.release([8])
    assert lock(run_dir / "shard-08", fcntl.LOCK_EX) is None, "its critical lane is still somebody's"


async def test_a_process_without_descriptors_keeps_no_shard_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def is_out(path: Path, *how: int) -> int:
        if path.name == "shard-07":
            raise OSError(errno.EMFILE, "too many open files")
        return opened(path, *how)

    poor, other = Locks(tmp_path), Locks(tmp_path)
    monkeypatch.setattr(os, "open", is_out)
    with pytest.raises(OSError, match="too many"):
        await poor.acquire()
    with pytest.raises(OSError, match="too many"):
        await other.borrow([7])
    monkeypatch.setattr(os, "open", opened)
    assert frozenset(await other.acquire()) == EVERY - poor.owned
    assert 7 in other.owned
    for each in (poor, other):
        await each.close()

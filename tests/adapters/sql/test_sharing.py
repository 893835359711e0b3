"""Shards come and go: what was theirs is neither decided without an owner nor forgotten by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.amending import withdraw
from tests.contract.bench import notification
from waypost.domain.amendment import Withdrawn
from waypost.domain.ids import SHARDS, shard_of
from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.work import NewNotification, Settled
from waypost.runtime.peers import NoPeers
from waypost.runtime.shares import Shares
from waypost.runtime.worker_slots import WorkerSlots, WorkerState
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.sharing import SqlOwnership
from waypost.stores.sql.write_lock import WriteLock
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio


async def test_shards_that_come_back_at_once_are_leased_from_again(tmp_path: Path, open_at: OpenStore) -> None:
    """Handed over to a worker that died before it took them, with no lease between."""
    store = await open_at(tmp_path / "waypost.db")
    ownership = SqlOwnership(store.shards, store.work)
    made = notification(WallClock().now())
    await store.work.accept([NewNotification(made)])
    ownership.offer(SHARDS)
    assert await ownership.hand_over() == SHARDS
    assert await ownership.acquire(SHARDS) == SHARDS
    lease = await store.work.lease(Lane.NORMAL, 10, later(WallClock().now(), MINUTE_MS))
    assert [item.notification.id for item in lease.items] == [made.id]


async def test_a_shard_is_not_handed_over_while_a_withdrawal_in_it_is_written(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """Its next owner would send what the caller is about to be told is cancelled."""
    store = await open_at(tmp_path / "waypost.db")
    ownership = SqlOwnership(store.shards, store.work)
    made = notification(WallClock().now())
    await store.work.accept([NewNotification(made)])
    somebody_else = WriteLock(run_dir_of_store(store.database.settings))
    with somebody_else.hold(1.0):
        withdrawing = asyncio.create_task(withdraw(store.work, made.app, [made.id], "cancelled", WallClock().now()))
        await asyncio.sleep(0)
        ownership.offer(SHARDS)
        assert await ownership.hand_over() == SHARDS - 1
        assert store.shards.owned == {shard_of(made.app, made.user_id)}
    somebody_else.close()
    assert await withdrawing == [Withdrawn(0)]
    assert await ownership.hand_over() == 1


async def test_who_leaves_lets_go_at_once_of_all_that_nothing_is_in_flight_of(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """The one shard with a lease follows when that is settled; the other worker has all of them then."""
    leaving, staying = [await open_at(tmp_path / "waypost.db") for _ in range(2)]
    worker_slots = WorkerSlots(tmp_path / "worker_slots")
    ownership = [SqlOwnership(store.shards, store.work) for store in (leaving, staying)]
    shares = [Shares(each, worker_slots, NoPeers(), Silent(), lambda: None) for each in ownership]
    worker_slots.beat(0, WorkerState.READY, 0.0)
    await ownership[0].acquire(SHARDS)
    made = notification(WallClock().now())
    await leaving.work.accept([NewNotification(made)])
    lease = await leaving.work.lease(Lane.NORMAL, 10, later(WallClock().now(), MINUTE_MS))
    worker_slots.beat(0, WorkerState.DRAINING, 0.0)
    worker_slots.beat(1, WorkerState.READY, 0.0)
    await shares[0].leave()
    await shares[1].balance()
    assert (ownership[0].owned(), ownership[1].owned()) == (1, SHARDS - 1)
    assert leaving.shards.owned == {shard_of(made.app, made.user_id)}
    await leaving.work.settle(lease, [Settled(made, given_back=True)])
    await shares[0].balance()
    await shares[1].balance()
    assert (ownership[0].owned(), ownership[1].owned()) == (0, SHARDS)


async def test_a_shard_that_was_lent_for_a_withdrawal_is_free_again(tmp_path: Path, open_at: OpenStore) -> None:
    """Who owns nothing decides about what nobody owns; the next to want the shard has it."""
    deciding, starting = [await open_at(tmp_path / "waypost.db") for _ in range(2)]
    await deciding.shards.release(list(deciding.shards.owned))
    made = notification(WallClock().now())
    await deciding.work.accept([NewNotification(made)])
    assert await withdraw(deciding.work, made.app, [made.id], "cancelled", WallClock().now()) == [Withdrawn(0)]
    assert len(await starting.shards.acquire()) == SHARDS


async def test_a_lease_of_shards_that_are_gone_is_not_extended(tmp_path: Path, open_at: OpenStore) -> None:
    """Their next owner sends what is in it; what was leased of the others goes on."""
    store = await open_at(tmp_path / "waypost.db")
    made = [notification(WallClock().now(), user=user) for user in ("ann", "bob")]
    gone, kept = (shard_of(one.app, one.user_id) for one in made)
    assert gone != kept
    leases = []
    for one in made:
        await store.work.accept([NewNotification(one)])
        leases.append(await store.work.lease(Lane.NORMAL, 1, later(WallClock().now(), MINUTE_MS)))
    await store.shards.release([gone])
    until = later(WallClock().now(), MINUTE_MS)
    assert [await store.work.extend(lease, until) for lease in leases] == [False, True]

"""Several real processes on one file: shards, roles, and a tail that misses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, StartActor
from tests.contract.bench import notification, sent, targets
from waypost.domain.ids import SHARDS, shard_of
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification, Settled

pytestmark = pytest.mark.asyncio

NOW = Instant(1_800_000_000_000)


async def test_a_shard_has_one_owner_and_a_dead_ones_are_free_at_once(start_actor: StartActor, tmp_path: Path) -> None:
    first, second = await start_actor(tmp_path / "a.db"), await start_actor(tmp_path / "a.db")
    mine = set(await first.do("acquire", wanted=SHARDS // 2))
    others = set(await second.do("acquire", wanted=SHARDS))
    assert (len(mine), len(others), mine & others) == (32, 32, set())
    await first.kill()
    assert await second.do("acquire", wanted=SHARDS) == list(range(SHARDS))


async def test_a_role_exists_once(start_actor: StartActor, tmp_path: Path) -> None:
    first, second = await start_actor(tmp_path / "a.db"), await start_actor(tmp_path / "a.db")
    assert [await first.do("role", name="sweep"), await second.do("role", name="sweep")] == [True, False]
    assert await second.do("role", name="report")
    await first.kill()
    assert await second.do("role", name="sweep")


async def test_a_shard_is_handed_over_when_nothing_of_it_is_held(
    open_at: OpenStore, start_actor: StartActor, tmp_path: Path
) -> None:
    here = await open_at(tmp_path / "a.db")
    there = await start_actor(tmp_path / "a.db")
    assert await there.do("acquire", wanted=SHARDS) == []
    first, second = notification(NOW, user="ann"), notification(NOW, user="ann")
    shard = shard_of(first.app, first.user_id)
    await here.work.accept([NewNotification(first)])
    lease = await here.work.lease(Lane.NORMAL, 10, NOW)
    here.work.stop_leasing([shard])
    await here.work.accept([NewNotification(second)])
    assert (await here.work.lease(Lane.NORMAL, 10, NOW)).items == ()
    assert here.work.busy_units() == {shard}
    await here.work.settle(lease, [Settled(first, (sent(0, NOW),), targets(1))])
    assert here.work.busy_units() == set()
    await here.shards.release([shard])
    assert await there.do("acquire", wanted=SHARDS) == [shard]
    assert await there.do("lease", n=10) == [second.id.hex()]


async def test_what_a_killed_process_had_leased_is_leased_again(
    open_at: OpenStore, start_actor: StartActor, tmp_path: Path
) -> None:
    there = await start_actor(tmp_path / "a.db")
    await there.do("acquire", wanted=SHARDS)
    (accepted,) = await there.do("accept", user="u", size=20, batches=1)
    assert await there.do("lease", n=100) == accepted
    here = await open_at(tmp_path / "a.db")
    assert (await here.work.lease(Lane.NORMAL, 100, NOW)).items == ()
    await there.kill()
    await here.shards.acquire()
    again = await here.work.lease(Lane.NORMAL, 100, NOW)
    assert [item.notification.id.hex() for item in again.items] == accepted


async def test_the_tail_misses_nothing_of_two_processes_that_accept_at_once(
    open_at: OpenStore, start_actor: StartActor, tmp_path: Path
) -> None:
    """The order of commits is the order of the tail, whichever process commits."""
    here = await open_at(tmp_path / "a.db")
    actors = [await start_actor(tmp_path / "a.db") for _ in range(2)]
    accepting = [
        asyncio.ensure_future(actor.do("accept", user=name, size=10, batches=60))
        for actor, name in zip(actors, "ab", strict=True)
    ]
    leased: list[str] = []
    while True:
        ended = all(task.done() for task in accepting)
        items = (await here.work.lease(Lane.NORMAL, 64, NOW)).items
        leased += [item.notification.id.hex() for item in items]
        if ended and not items:
            break
        await asyncio.wait(accepting, timeout=0.001)
    for batches in await asyncio.gather(*accepting):
        accepted = [one for batch in batches for one in batch]
        mine = set(accepted)
        assert [one for one in leased if one in mine] == accepted
    assert len(leased) == len(set(leased)) == 1200

"""The critical lane beside the others: whoever carries it, each of its notifications is leased once."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench, notification
from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import SHARDS, NotificationId
from waypost.domain.notification import Lane
from waypost.ports.ownership import CriticalMoved, CriticalPart
from waypost.stores.sql.sharing import SqlOwnership
from waypost.stores.sql.work import SqlWork

pytestmark = pytest.mark.asyncio


def _ownership(bench: Bench) -> SqlOwnership:
    assert isinstance(bench.worker, SqlWork)
    return SqlOwnership(bench.worker._shards, bench.worker)


async def _leased(bench: Bench, lane: Lane = Lane.CRITICAL) -> list[NotificationId]:
    return [item.notification.id for item in (await bench.worker.lease(lane, 1_000, bench.now)).items]


async def test_one_worker_carries_the_lane_of_all_shards_where_it_is_owned_apart(ledger_store: SqlUnderTest) -> None:
    """Elsewhere it stays with its shards; either way all of it is leased, once, and again when its worker dies."""
    benches = general, carrier = [Bench(ledger_store, worker) for worker in await ledger_store.open_workers(2)]
    ownership = [_ownership(bench) for bench in benches]
    moved = await ownership[0].claim_critical(CriticalPart.NONE), await ownership[1].claim_critical(CriticalPart.ALL)
    made = [notification(general.now, user=f"u{n}", lane=Lane.CRITICAL) for n in range(60)]
    others = [notification(general.now, user=f"u{n}") for n in range(60)]
    await general.accept(*made, *others)
    leased = [await _leased(bench) for bench in benches]
    assert sorted(leased[0] + leased[1]) == [one.id for one in made]
    normal = [await _leased(bench, Lane.NORMAL) for bench in benches]
    assert sorted(normal[0] + normal[1]) == [one.id for one in others]
    is_apart = ledger_store.url.startswith("sqlite")
    half = SHARDS // 2
    assert moved == ((CriticalMoved(0, half), CriticalMoved(half, 0)) if is_apart else (CriticalMoved(0, 0),) * 2)
    assert (leased[0] == []) is is_apart
    await ledger_store.crash(carrier.worker)
    await ownership[0].acquire(half)
    await ownership[0].claim_critical(CriticalPart.OWN)
    assert sorted(leased[0] + await _leased(general)) == [one.id for one in made]

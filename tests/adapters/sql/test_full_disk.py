"""A full disk: accepts are refused, outcomes still fit, and everything goes on when there is room again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import disk
from tests.adapters.sql.conftest import OpenStore
from tests.contract.bench import notification, sent, targets
from tests.shows import shows
from waypost.domain.errors import StorageFull
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.work import Lease, NewNotification, Settled
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio

_MIB = 1 << 20
_RESERVE = 4 * _MIB


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with disk.small(folder, 24):
        yield folder


async def _accept_until_refused(store: Store) -> list[NotificationId]:
    """Accept batches until the disk is full; the ids that were answered."""
    answered: list[NotificationId] = []
    for _ in range(1000):
        now = Instant(1_800_000_000_000)
        batch = [NewNotification(notification(now, user=f"u{n}", body="x" * 2000)) for n in range(50)]
        try:
            answers = await store.work.accept(batch)
        except StorageFull:
            return answered
        assert len(answers) == 50
        answered += [arrival.notification.id for arrival in batch]
    raise AssertionError("the disk never became full")


async def _settle_all(store: Store, lease: Lease) -> None:
    at = Instant(1_800_000_000_000)
    parts = [Settled(item.notification, (sent(0, at), sent(1, at)), targets(2)) for item in lease.items]
    assert await store.work.settle(lease, parts) == []


@shows("S1-126")
async def test_outcomes_outlive_accepts_and_both_recover(small_disk: Path, open_at: OpenStore) -> None:
    store = await open_at(small_disk / "a.db", reserve_bytes=_RESERVE, checkpoint_bytes=_MIB)
    states: asyncio.Queue[StoreState] = asyncio.Queue()
    store.database.commits.on_state_change(states.put_nowait)
    reserve = run_dir_of_store(store.database.settings) / "reserve"
    assert reserve.stat().st_blocks * 512 >= _RESERVE, "really allocated"

    first = [NewNotification(notification(Instant(1_800_000_000_000), user=f"v{n}")) for n in range(300)]
    await store.work.accept(first)
    filler = disk.fill(small_disk)
    answered = [arrival.notification.id for arrival in first] + await _accept_until_refused(store)
    assert await states.get() is StoreState.FULL
    assert store.database.state is StoreState.FULL

    lease = await store.work.lease(Lane.NORMAL, 300, Instant(0))
    assert len(lease.items) == 300
    await _settle_all(store, lease)
    with pytest.raises(StorageFull):
        await store.work.accept([NewNotification(notification(Instant(1_800_000_000_000)))])

    filler.unlink()
    assert await states.get() is StoreState.OK
    assert reserve.exists()
    last = notification(Instant(1_800_000_000_000), user="last")
    await store.work.accept([NewNotification(last)])
    balance = await store.views.balance()
    assert balance[NotificationStatus.SENT] == 300
    assert balance[NotificationStatus.PENDING] == len(answered) + 1 - 300, "what was refused left nothing"


async def test_outcomes_wait_where_even_the_reserve_is_used_up(small_disk: Path, open_at: OpenStore) -> None:
    """They are held, and written as soon as there is room."""
    store = await open_at(small_disk / "a.db", reserve_bytes=_RESERVE, checkpoint_bytes=_MIB)
    first = [NewNotification(notification(Instant(1_800_000_000_000), user=f"v{n}")) for n in range(300)]
    await store.work.accept(first)
    filler = disk.fill(small_disk)
    await _accept_until_refused(store)
    second = disk.fill(small_disk)  # somebody takes what the reserve freed
    lease = await store.work.lease(Lane.NORMAL, 300, Instant(0))
    outcome = asyncio.ensure_future(_settle_all(store, lease))
    with pytest.raises(StorageFull):
        await store.work.accept([NewNotification(notification(Instant(1_800_000_000_000)))])
    assert not outcome.done()
    filler.unlink()
    second.unlink()
    await outcome
    assert (await store.views.balance())[NotificationStatus.SENT] == 300


async def test_a_store_that_opens_on_a_full_disk_lives_on_its_reserve(small_disk: Path, open_at: OpenStore) -> None:
    store = await open_at(small_disk / "a.db", reserve_bytes=_RESERVE)
    await store.work.accept([NewNotification(notification(Instant(1_800_000_000_000)))])
    await store.close()
    filler = disk.fill(small_disk)
    again = await open_at(small_disk / "a.db", reserve_bytes=_RESERVE, checkpoint_bytes=_MIB)
    assert again.database.state is StoreState.FULL
    with pytest.raises(StorageFull):
        await again.work.accept([NewNotification(notification(Instant(1_800_000_000_000)))])
    await _settle_all(again, await again.work.lease(Lane.NORMAL, 10, Instant(0)))
    filler.unlink()
    assert (await again.views.balance()) == {NotificationStatus.SENT: 1}


async def test_without_its_reserve_a_store_does_not_open_on_a_full_disk(small_disk: Path, open_at: OpenStore) -> None:
    store = await open_at(small_disk / "a.db", reserve_bytes=_RESERVE)
    await store.close()
    (run_dir_of_store(store.database.settings) / "reserve").unlink()
    disk.fill(small_disk)
    with pytest.raises(StorageFull):
        await open_at(small_disk / "a.db", reserve_bytes=_RESERVE)

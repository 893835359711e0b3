"""Leases with a second record beside them, on the work and the records in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
import pytest_asyncio

from tests.contract.bench import Bench, again, sent, targets
from tests.contract.stores import MemoryUnderTest
from tests.memory.sending_records import MemorySendingRecords
from tests.shows import shows
from waypost.domain.delivery import FailureClass
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane, Notification
from waypost.domain.sending_record import RecordStatus
from waypost.domain.settlement import Change, Dead
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, MINUTE_MS, later
from waypost.ports.sending_records import Acquired, Round
from waypost.ports.work import Lease, Replay, Settled
from waypost.runtime import recorded_leases
from waypost.runtime.recorded_leases import RecordedLeases

pytestmark = pytest.mark.asyncio
LOCK_MS = 2 * MINUTE_MS
N, R = NotificationStatus, RecordStatus


class Place(Bench):
    """A worker whose leases are recorded."""

    records: MemorySendingRecords
    leases: RecordedLeases

    async def begin(self) -> Lease:
        """Lease through the records."""
        await self.worker.promote_due(self.now, 100)
        return await self.leases.lease(Lane.NORMAL, 10, later(self.now, MINUTE_MS))

    async def record(self, made: Notification) -> tuple[RecordStatus, int] | None:
        """What the record says."""
        found = (await self.records.read([made.id])).get(made.id)
        return None if found is None else (found.status, found.retry_count)


@pytest_asyncio.fixture
async def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty store; what is refused comes back at the next turn of the loop."""
    monkeypatch.setattr(recorded_leases, "HELD_S", 0.0)
    store = MemoryUnderTest()
    made = Place(store, (await store.open_workers(1))[0])
    made.records = MemorySendingRecords(store.clock, LOCK_MS, DAY_MS)
    made.leases = RecordedLeases(made.worker, made.records, store.clock)
    return made


async def given_back() -> None:
    """Let the task that gives back take its turns."""
    for _ in range(3):
        await asyncio.sleep(0)


async def settled(place: Place, lease: Lease, *changes: Change, count: int = 1) -> None:
    """Settle the only item of a lease."""
    (item,) = lease.items
    listed = targets(count) if item.open_targets is None else None
    assert await place.leases.settle(lease, [Settled(item.notification, changes, listed)]) == []


@shows("S4-37", "S4-38")
async def test_the_record_follows_an_attempt(place: Place) -> None:
    """S4-25, S4-36, S4-37, S4-38: processing, failed, processing again, delivered."""
    made = await place.accepted()
    lease = await place.begin()
    assert await place.record(made) == (R.PROCESSING, 0)
    await settled(place, lease, again(0, place.now))
    assert await place.record(made) == (R.FAILED, 1)
    place.clock.advance(MINUTE_MS)
    lease = await place.begin()
    assert await place.record(made) == (R.PROCESSING, 1)
    await settled(place, lease, sent(0, place.now, attempt=2))
    assert await place.record(made) == (R.DELIVERED, 1)
    assert await place.status(made) == N.SENT


@shows("S4-25")
async def test_what_failed_for_good_has_failed_in_both(place: Place) -> None:
    """S4-25."""
    made = await place.accepted()
    refused = Dead("BadRequest", "refused", FailureClass.TERMINAL, letter=True)
    await settled(place, await place.begin(), Change(0, 1, refused, place.now))
    assert (await place.status(made), await place.record(made)) == (N.FAILED, (R.FAILED, 0))


@shows("S4-35")
async def test_what_another_seems_to_be_at_is_given_back_until_its_lock_ends(place: Place) -> None:
    """S4-35, S4-16: it is not acknowledged, and nothing is lost when that worker died."""
    made, free = await place.accepted(), await place.accepted(user="bob")
    await place.records.acquire({made.id: Round(made.expires_at)})
    lease = await place.begin()
    assert [each.notification.id for each in lease.items] == [free.id]
    await settled(place, lease, sent(0, place.now))
    for _ in range(3):
        await given_back()
        assert (await place.begin()).items == ()
    await given_back()
    in_queue = await place.lease()
    assert [each.notification.id for each in in_queue.items] == [made.id]
    await place.settle(in_queue, Settled(made, given_back=True))
    place.clock.advance(LOCK_MS)
    assert [each.notification.id for each in (await place.begin()).items] == [made.id]


async def test_what_was_delivered_is_not_sent_again(place: Place) -> None:
    """A worker died between its record and the store: fresh, and routed."""
    fresh = await place.accepted()
    await place.records.note({fresh.id: (R.DELIVERED, Round(fresh.expires_at, 0))})
    routed = await place.accepted(user="bob")
    lease = await place.lease()
    (item,) = [each for each in lease.items if each.notification.id == routed.id]
    (other,) = [each for each in lease.items if each.notification.id == fresh.id]
    await place.settle_first(lease, item, 1, again(0, place.now))
    await place.settle(lease, Settled(other.notification, given_back=True))
    await place.records.note({routed.id: (R.DELIVERED, Round(routed.expires_at, 1))})
    place.clock.advance(MINUTE_MS)
    assert (await place.begin()).items == ()
    assert [await place.status(each) for each in (fresh, routed)] == [N.SENT, N.SENT]


async def test_it_is_delivered_once_nothing_is_open(place: Place) -> None:
    """Of two targets one is tried again; its next lease ends it."""
    made = await place.accepted()
    lease = await place.begin()
    await settled(place, lease, sent(0, place.now), count=2)
    assert await place.record(made) == (R.PROCESSING, 0)
    await settled(place, lease, again(1, place.now), count=2)
    assert await place.record(made) == (R.FAILED, 1)
    place.clock.advance(MINUTE_MS)
    lease = await place.begin()
    await settled(place, lease, sent(1, place.now, attempt=2))
    assert (await place.status(made), await place.record(made)) == (N.SENT, (R.DELIVERED, 1))


async def test_what_was_sent_in_part_is_not_delivered(place: Place) -> None:
    """Its replay sends the rest, which a record that says delivered would have kept from it."""
    made = await place.accepted()
    refused = Dead("BadRequest", "refused", FailureClass.TERMINAL, letter=True)
    await settled(place, await place.begin(), sent(0, place.now), Change(1, 1, refused, place.now), count=2)
    assert (await place.status(made), await place.record(made)) == (N.PARTIAL, (R.FAILED, 0))
    await place.accept(Replay(made.app, made.id, place.now, later(place.now, DAY_MS + 1)))
    lease = await place.begin()
    await settled(place, lease, sent(1, place.now))
    assert (await place.status(made), await place.record(made)) == (N.SENT, (R.DELIVERED, 0))


async def test_what_is_given_back_untouched_can_be_leased_at_once(place: Place) -> None:
    made = await place.accepted()
    lease = await place.begin()
    await place.leases.settle(lease, [Settled(made, given_back=True)])
    lease = await place.begin()
    await settled(place, lease, sent(0, place.now))
    assert await place.record(made) == (R.DELIVERED, 0)


class Away:
    """Records that cannot be reached."""

    async def acquire(self, rounds: Mapping[NotificationId, Round]) -> Sequence[Acquired]:
        """See SendingRecords."""
        raise Unavailable("away")

    async def note(self, came: Mapping[NotificationId, tuple[RecordStatus, Round]]) -> None:
        """See SendingRecords."""
        raise Unavailable("away")

    async def read(self, ids: Sequence[NotificationId]) -> dict[NotificationId, object]:
        """See SendingRecords."""
        raise Unavailable("away")


async def test_without_records_the_lease_alone_decides(place: Place) -> None:
    made = await place.accepted()
    place.leases = RecordedLeases(place.worker, Away(), place.clock)  # type: ignore[arg-type]  # it only refuses
    await settled(place, await place.begin(), sent(0, place.now))
    assert await place.status(made) == N.SENT

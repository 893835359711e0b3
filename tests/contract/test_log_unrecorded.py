"""What was accepted and is not recorded yet: on another machine, and after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from tests.amending import withdraw
from tests.contract.bench import APP, OTHER_APP, Bench, notification, sent, targets
from tests.contract.clock import START
from tests.contract.log import LogUnderTest
from tests.journeys.harness import until
from waypost.domain.amendment import NotOpen, TooLate
from waypost.domain.ids import AppId, NotificationId, first_id_at
from waypost.domain.notification import Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, later
from waypost.ports.ledger import Completed
from waypost.ports.work import Settled
from waypost.runtime.peers import NoPeers
from waypost.stores.kafka.log import LedgerStore, Log, open_log
from waypost.stores.sql.store import open_store
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]


@pytest_asyncio.fixture
async def elsewhere(log_store: LogUnderTest) -> AsyncIterator[Log]:
    """A process of another machine, which accepted nothing yet and does not deliver."""
    store = await open_store(
        log_store._settings, clock=log_store.clock, peers=log_store._party.join(), telemetry=Silent()
    )
    behind = LedgerStore(store.work, store.ledger, store.views, store.holds)
    log = await open_log(
        log_store._kafka, behind, peers=NoPeers(), clock=log_store.clock, telemetry=Silent(), delivers=False
    )
    yield log
    await log.stop()
    await store.close()


async def test_what_was_accepted_on_another_machine_reads_pending_until_it_is_recorded(
    log_store: LogUnderTest, elsewhere: Log
) -> None:
    bench = Bench(log_store, (await log_store.open_workers(1))[0])
    made = notification(bench.now)
    await bench.accept(made)
    detail = await elsewhere.views.detail(APP, made.id)
    assert detail is not None
    assert (detail.record.status, detail.record.recorded) == (NotificationStatus.PENDING, False)
    assert (detail.record.notification.created_at, detail.record.content_known) == (bench.now, False)
    await log_store.recorded()
    detail = await elsewhere.views.detail(APP, made.id)
    assert detail is not None
    assert detail.record.recorded
    assert detail.record.notification == made


async def test_what_is_older_than_the_recorders_position_or_not_yet_possible_was_never_accepted(
    log_store: LogUnderTest, elsewhere: Log
) -> None:
    ledger = log_store._opened.ledger
    await ledger.begin({}, ["lane/0"])
    await ledger.complete(Completed(["lane/0"], START))
    before, later_on = first_id_at(later(START, -1)), first_id_at(later(START, DAY_MS))
    details = [await elsewhere.views.detail(APP, each) for each in (before, first_id_at(START), later_on)]
    assert [detail is not None for detail in details] == [False, True, False]
    assert await withdraw(elsewhere.work, APP, [before], "cancelled", START) == [NotOpen(None)]


async def test_what_is_not_recorded_is_cancelled_from_elsewhere_by_its_own_app_alone(
    log_store: LogUnderTest, elsewhere: Log
) -> None:
    """The process that accepted it may be gone, and no recorder there."""
    worker = (await log_store.open_workers(1))[0]
    bench = Bench(log_store, worker)
    made = notification(bench.now)
    assert await withdraw(elsewhere.work, OTHER_APP, [made.id], "meddled", bench.now) == [TooLate(0)]
    assert await withdraw(elsewhere.work, APP, [made.id], "changed my mind", bench.now) == [TooLate(0)]
    other = notification(bench.now)
    await withdraw(elsewhere.work, OTHER_APP, [other.id], "meddled", bench.now)
    await heard(log_store, other.id)
    await bench.accept(made, other)
    assert await bench.leasable() == [other.id]

    async def cancelled() -> str | None:
        detail = await log_store.views.detail(APP, made.id)
        return detail.record.reason if detail and detail.record.status is NotificationStatus.CANCELLED else None

    assert await until(cancelled, "its end") == "changed my mind"


async def heard(log_store: LogUnderTest, notification_id: bytes) -> None:
    """Return when the workers have heard of this withdrawal."""

    async def have() -> bool:
        return all(log._withdrawn.has(OTHER_APP, NotificationId(notification_id)) for log in log_store._logs.values())

    await until(have, "the withdrawal at the workers")


async def test_what_is_recorded_while_it_is_cancelled_is_not_called_cancelled(
    log_store: LogUnderTest, elsewhere: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder comes between the two looks for it: the log has it, and a worker may have begun."""
    bench = Bench(log_store, (await log_store.open_workers(1))[0])
    made = notification(bench.now)
    await bench.accept(made)
    ledger = log_store._opened.ledger
    look = ledger.of_log

    async def recorded_after(app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Notification]:
        found = await look(app, ids)
        monkeypatch.setattr(ledger, "of_log", look)
        await log_store.recorded()
        return found

    monkeypatch.setattr(ledger, "of_log", recorded_after)
    lease, _ = await bench.take_one()
    assert await withdraw(elsewhere.work, APP, [made.id], "cancelled", bench.now) == [TooLate(0)]
    await bench.settle(lease, Settled(made, (sent(0, bench.now),), targets(1)))
    statuses = await log_store.views.statuses(APP, [made.id])
    assert statuses == {made.id: NotificationStatus.SENT}

"""The search for what nobody moves, on SQL: what is found, what is not, what is done about it, and by one alone."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.bench import OTHER_APP, RETRY_MS, Bench, again, notification, parked, sent, targets
from tests.contract.recovering import NEVER_RETRIES, POLL_MS, STUCK_MS, Place, place, stuck_with
from tests.contract.sql import SqlUnderTest
from tests.contract.wait_scenarios import FALLBACK
from tests.shows import shows
from waypost.domain.delivery import PUT_OFF
from waypost.domain.notification import Lane
from waypost.domain.recovery import AlertType, Thresholds
from waypost.domain.sending_record import RecordStatus
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, later
from waypost.features.recovery.settings import RecoverySettings
from waypost.ports.recovery import AlertQuery, Cleared
from waypost.ports.work import Settled
from waypost.stores.sql.recovery import CLAIM_MS

pytestmark = pytest.mark.asyncio
N = NotificationStatus


@shows("S4-54", "S4-60")
async def test_what_nobody_takes_is_an_alert_after_five_minutes_and_not_before(ledger_store: SqlUnderTest) -> None:
    """S4-54, S4-60: seen twice at the head of its queue."""
    here = await place(ledger_store)
    made = await here.bench.accepted()
    here.bench.clock.advance(STUCK_MS - 3 * POLL_MS)
    await here.scan()
    await here.scan()
    assert await here.alerts() == []
    await here.scan()
    assert await here.alerts() == []  # noted: it may be its turn soon
    await here.scan()
    (alert,) = await here.alerts()
    assert (alert.notification_id, alert.type) == (made.id, AlertType.ORPHANED_PENDING)
    assert (alert.redis_status, alert.db_status, alert.retry_count) == (None, "pending", 0)
    assert (alert.resolved_at, alert.raised_at) == (None, here.bench.now)
    assert "nobody took it" in alert.reason
    await here.scan()
    await here.scan()
    assert len(await here.alerts()) == 1


@shows("S4-55")
async def test_what_was_scheduled_is_an_alert_once_its_time_is_over_by_the_threshold(
    ledger_store: SqlUnderTest,
) -> None:
    """S4-55: not flagged before."""
    here = await place(ledger_store)
    made = await here.bench.accepted(scheduled_at=later(here.bench.now, HOUR_MS))
    here.bench.clock.advance(HOUR_MS + STUCK_MS - 3 * POLL_MS)
    await here.scan()
    await here.scan()
    assert await here.store.recovery.suspects(later(here.bench.now, 1), 9) == []
    await here.scan()
    assert await here.store.recovery.suspects(later(here.bench.now, 1), 9) == [made.id]
    await here.scan()
    (alert,) = await here.alerts()
    assert (alert.type, alert.db_status) == (AlertType.ORPHANED_PENDING, "pending")
    assert alert.reason.startswith("its time came, and nobody took it for")


@shows("S4-53")
async def test_a_target_that_nobody_settles_is_an_alert(ledger_store: SqlUnderTest) -> None:
    """S4-53: its retry is overdue, and no worker takes it."""
    here = await place(ledger_store)
    made = await here.bench.accepted()
    lease, item = await here.bench.take_one()
    await here.bench.settle_first(lease, item, 2, again(0, here.bench.now), sent(1, here.bench.now))
    here.bench.clock.advance(RETRY_MS + STUCK_MS)
    await here.scan()
    await here.scan()
    (alert,) = await here.alerts()
    assert (alert.notification_id, alert.type) == (made.id, AlertType.STUCK_PROCESSING)
    assert (alert.db_status, alert.retry_count) == ("processing", 1)


@shows("S4-53")
async def test_what_is_routed_and_has_nothing_that_is_due_is_found(ledger_store: SqlUnderTest) -> None:
    """S4-53 by hand: no stage of ours leaves a row so."""
    here = await place(ledger_store)
    made = await here.bench.accepted()
    lease, item = await here.bench.take_one()
    await here.bench.settle_first(lease, item, 1, again(0, here.bench.now))
    await here.by_hand("UPDATE receipt SET due_at = NULL WHERE notification_id = ?", made.id)
    here.bench.clock.advance(STUCK_MS)
    await here.scan()
    await here.scan()
    (alert,) = await here.alerts()
    assert (alert.notification_id, alert.type) == (made.id, AlertType.STUCK_PROCESSING)
    await here.by_hand("UPDATE receipt SET due_at = 1 WHERE notification_id = ?", made.id)  # the balance missed it, too


@shows("S4-53")
async def test_what_waits_for_good_reason_is_no_suspect(ledger_store: SqlUnderTest) -> None:
    """Under an open breaker, for a retry, for a fallback's turn, for its time, or in a worker's hands."""
    here = await place(ledger_store)
    bench = here.bench
    over = later(bench.now, DAY_MS)
    for user, changes in (
        ("parked", [parked(0, bench.now, over)]),
        ("retried", [again(0, bench.now, wait_ms=HOUR_MS)]),
        ("fallback", [parked(0, bench.now, over, PUT_OFF)]),
    ):
        await bench.accepted(user=user)
        lease, item = await bench.take_one()
        listed = FALLBACK if user == "fallback" else targets(1)
        await bench.settle(lease, Settled(item.notification, tuple(changes), listed))
    await bench.accepted(user="scheduled", scheduled_at=later(bench.now, HOUR_MS))
    held = await bench.accepted(user="held")
    lease, item = await bench.take_one()
    bench.clock.advance(STUCK_MS)
    for _ in range(3):
        await here.scan()
        assert await here.alerts() == []
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await bench.status(held) == N.SENT


async def test_one_of_an_app_that_was_taken_out_stops_no_other(ledger_store: SqlUnderTest) -> None:
    here = await place(ledger_store)
    await here.bench.accepted(app=OTHER_APP)
    made = await here.bench.accepted()
    here.bench.clock.advance(STUCK_MS)
    await here.scan()
    await here.scan()
    assert [each.notification_id for each in await here.alerts()] == [made.id]
    assert len(await here.store.recovery.alerts(AlertQuery(OTHER_APP))) == 1


async def test_what_moved_between_two_looks_is_no_suspect(ledger_store: SqlUnderTest) -> None:
    """It was overdue; then a worker took it, and it waits for its next retry."""
    here = await place(ledger_store)
    made = await stuck_with(here, None, 0)
    await here.scan()
    assert await here.store.recovery.suspects(later(here.bench.now, 1), 9) == [made.id]
    lease, item = await here.bench.take_one()
    await here.bench.settle_rest(lease, item, again(0, here.bench.now, attempt=2, wait_ms=HOUR_MS))
    await here.scan()
    assert await here.alerts() == []
    assert await here.store.recovery.suspects(later(here.bench.now, 1), 9) == []


@shows("S4-54")
async def test_a_deep_backlog_that_moves_raises_no_alert(ledger_store: SqlUnderTest) -> None:
    """All of it is older than the threshold; each search finds others at the head."""
    here = await place(ledger_store, RecoverySettings(auto_retry=False, batch=5))
    await here.bench.accept(*[notification(here.bench.now, user=f"u{n}") for n in range(60)])
    here.bench.clock.advance(STUCK_MS)
    for _ in range(6):
        await here.scan()
        lease = await here.bench.take(10)
        await here.bench.settle(
            lease, *[Settled(each.notification, (sent(0, here.bench.now),), targets(1)) for each in lease.items]
        )
    await here.scan()
    assert await here.alerts() == []
    assert await here.store.recovery.suspects(later(here.bench.now, 1), 9) == []


@shows("S4-52")
async def test_a_search_takes_up_no_more_than_a_batch_and_the_next_one_goes_on(ledger_store: SqlUnderTest) -> None:
    """S4-52: of every queue its turn."""
    here = await place(ledger_store, RecoverySettings(auto_retry=False, batch=4))
    await here.bench.accept(*[notification(here.bench.now, user=f"u{n}") for n in range(5)])
    other = await here.bench.accepted(lane=Lane.LOW)
    here.bench.clock.advance(STUCK_MS)
    counts = []
    for _ in range(4):
        await here.scan()
        counts.append(len(await here.store.recovery.suspects(later(here.bench.now, 1), 99)))
        counts.append(len(await here.alerts()))
    assert counts == [4, 0, 2, 4, 0, 6, 0, 6]
    assert other.id in {each.notification_id for each in await here.alerts()}


async def test_what_no_provider_was_asked_for_is_offered_once_more_then_an_alert(ledger_store: SqlUnderTest) -> None:
    here = await place(ledger_store, RecoverySettings())
    made = await here.bench.accepted()
    here.bench.clock.advance(STUCK_MS)
    for _ in range(4):
        await here.scan()
    assert await here.alerts() == []
    assert await here.bench.leasable() == [made.id]
    lost = await here.bench.crash()
    here = Place(ledger_store, lost, RecoverySettings())
    here.bench.clock.advance(STUCK_MS)
    await here.scan()
    (alert,) = await here.alerts()
    assert alert.type is AlertType.ORPHANED_PENDING


@shows("S4-57")
async def test_two_workers_never_take_the_same_suspect(ledger_store: SqlUnderTest) -> None:
    """S4-57: claims are atomic, and those of a worker that is gone are taken over."""
    one, two = [Bench(ledger_store, each) for each in await ledger_store.open_workers(2)]
    first, second = (Place(ledger_store, each, NEVER_RETRIES).store.recovery for each in (one, two))
    await one.accept(*[notification(one.now, user=f"u{n}") for n in range(20)])
    one.clock.advance(STUCK_MS)
    found = await first.search(Thresholds(STUCK_MS, STUCK_MS), one.now, 50)
    ids = [each.standing.id for each in found]
    assert len(ids) == 20
    claimed = await asyncio.gather(
        *(who.claim(ids, name, one.now) for _ in range(5) for who, name in ((first, "one"), (second, "two")))
    )
    taken = [each.standing.id for batch in claimed for each in batch]
    assert sorted(taken) == sorted(ids)
    one.clock.advance(CLAIM_MS)
    assert await second.claim(ids, "two", one.now) == []
    one.clock.advance(1)
    assert len(await second.claim(ids, "two", one.now)) == 20
    await second.conclude([Cleared(each) for each in ids], one.now)
    assert await first.claim(ids, "one", later(one.now, HOUR_MS)) == []


@shows("S4-56", "S4-58")
async def test_a_ghost_is_healed_by_one_search_without_an_alert(ledger_store: SqlUnderTest) -> None:
    """S4-56, S4-58, S4-59: the record says delivered, the store says processing; the journal tells of its end."""
    here = await place(ledger_store)
    made = await stuck_with(here, RecordStatus.DELIVERED, 1)
    await here.scan()
    assert await here.bench.status(made) == N.SENT
    assert await here.alerts() == []
    assert [move.after for move in await here.bench.moves()][-2:] == ["sent", "sent"]


@shows("S4-58", "S4-60")
@pytest.mark.parametrize(
    ("status", "retries", "ends", "said"),
    [
        (RecordStatus.FAILED, 1, N.PROCESSING, "retries are left"),
        (RecordStatus.FAILED, 5, N.FAILED, None),
        (RecordStatus.PROCESSING, 1, N.PROCESSING, "somebody is at it"),
        (None, 0, N.PROCESSING, "no change for"),
    ],
)
async def test_the_record_decides(
    ledger_store: SqlUnderTest, status: RecordStatus | None, retries: int, ends: NotificationStatus, said: str | None
) -> None:
    """S4-58: the lines of table S4-T5 beside that of the ghost."""
    here = await place(ledger_store)
    made = await stuck_with(here, status, retries)
    await here.scan()
    await here.scan()
    assert await here.bench.status(made) == ends
    alerts = await here.alerts()
    assert [(each.redis_status, said in each.reason) for each in alerts if said] == (
        [] if said is None else [(status.value if status else None, True)]
    )
    assert len(alerts) == (0 if said is None else 1)

"""Alerts on SQL: they end by themselves or by people, come again, and go with their notifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from tests.contract.bench import APP, OTHER_APP, new_id, sent
from tests.contract.plans import misplanned
from tests.contract.recovering import alerted, place
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.amendment import Withdraw
from waypost.domain.ids import UserId
from waypost.domain.sending_record import RecordStatus
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, SECOND_MS, later
from waypost.features.recovery.scanning import drop_old
from waypost.ports.erasure import Erasure
from waypost.ports.recovery import AlertQuery, How
from waypost.ports.sending_records import Round
from waypost.ports.work import Replay
from waypost.stores.sql.recovery import OLD, OVER, PAGES
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio
N = NotificationStatus
_LAST: Final = b"\xff" * 17
_RESOLVED: Final = (
    "INSERT INTO alert (app, notification_id, type, reason, db_status, retry_count, raised_at, resolved_at, how)"
    " VALUES (?, ?, 'stuck_processing', 'why', 'pending', 0, 0, ?, 'ended')"
)


@shows("S4-64", "S4-65")
async def test_an_alert_closes_itself_and_goes_a_day_later(ledger_store: SqlUnderTest) -> None:
    """S4-64, S4-65: whatever ended its notification."""
    here = await place(ledger_store)
    made, alert = await alerted(here)
    lease, item = await here.bench.take_one()
    await here.bench.settle_rest(lease, item, sent(0, here.bench.now, attempt=2))
    await here.scan()
    (closed,) = await here.alerts()
    assert (closed.how, closed.resolved_at, closed.raised_at) == (How.ENDED, here.bench.now, alert.raised_at)
    assert await here.store.recovery.alerts(AlertQuery(APP, resolved=False)) == []
    here.bench.clock.advance(DAY_MS)
    assert await drop_old(here.ground, here.bench.now) == 0
    assert await drop_old(here.ground, later(here.bench.now, 1)) == 1
    assert await here.alerts() == []
    assert await here.bench.status(made) == N.SENT


@shows("S4-64")
async def test_the_alert_of_a_ghost_closes_itself(ledger_store: SqlUnderTest) -> None:
    """S4-64: its record comes to say delivered once the alert is open."""
    here = await place(ledger_store)
    made, _ = await alerted(here)
    assert here.records is not None
    await here.records.note({made.id: (RecordStatus.DELIVERED, Round(made.expires_at, 1))})
    await here.scan()
    (alert,) = await here.alerts()
    assert (alert.how, await here.bench.status(made)) == (How.ENDED, N.SENT)


async def test_what_is_stuck_again_is_an_alert_again(ledger_store: SqlUnderTest) -> None:
    here = await place(ledger_store)
    made, first = await alerted(here)
    recovery = here.store.recovery
    assert await recovery.resolve(APP, made.id, How.RETRIED, here.bench.now)
    assert not await recovery.resolve(APP, made.id, How.RESOLVED, here.bench.now)
    await here.scan()
    await here.scan()
    (second,) = await here.alerts()
    assert (second.resolved_at, second.how) == (None, None)
    assert second.raised_at > first.raised_at


async def test_an_alert_is_forgotten_with_its_user(ledger_store: SqlUnderTest) -> None:
    here = await place(ledger_store)
    made, _ = await alerted(here)
    await here.bench.worker.amend([Withdraw(APP, made.id, "erased")], here.bench.now)
    order = Erasure(new_id(here.bench.now), APP, made.user_id, UserId("erased-1"), here.bench.now)
    standing = await here.store.erasures.ask(order)
    assert await here.store.erasures.blank(standing, 100) == 1
    assert await here.alerts() == []


async def test_an_alert_goes_with_its_notification(ledger_store: SqlUnderTest) -> None:
    """Dropped by retention."""
    here = await place(ledger_store)
    made, _ = await alerted(here)
    await here.bench.worker.amend([Withdraw(APP, made.id, "cancelled")], here.bench.now)
    keeps = here.store.retention
    here.bench.clock.advance(2 * DAY_MS)
    before = later(here.bench.now, -SECOND_MS)
    assert await keeps.drop_before(before, 100) == 1
    await keeps.drop_whole(before)
    assert await here.alerts() == []


async def test_replayed_work_is_no_suspect_of_its_first_round(ledger_store: SqlUnderTest) -> None:
    here = await place(ledger_store)
    made, _ = await alerted(here)
    await here.bench.worker.amend([Withdraw(APP, made.id, "cancelled")], here.bench.now)
    await here.bench.accept(Replay(APP, made.id, here.bench.now, later(here.bench.now, DAY_MS)))
    await here.scan()
    await here.scan()
    assert [each.resolved_at is None for each in await here.alerts()] == [False]


def _add(transaction: Transaction, pages: Sequence[Sequence[Any]]) -> list[None]:
    transaction.connection.executemany(_RESOLVED, [row for page in pages for row in page])
    return [None] * len(pages)


_ADDING: Final[OperationKind[Sequence[Any], None]] = OperationKind("add_alerts", _add, durable=False)


async def test_who_finds_no_open_alert_looks_at_none_that_is_resolved(ledger_store: SqlUnderTest) -> None:
    """Nor does who looks for those that are over, or old."""
    here = await place(ledger_store)
    ids = [new_id(here.bench.now) for _ in range(3_000)]
    database = here.store.database
    await database.commits.submit(_ADDING, [(APP, each, later(here.bench.now, 1)) for each in ids])
    assert len(await here.store.recovery.alerts(AlertQuery(APP, resolved=True, limit=5_000))) == 3_000
    assert await misplanned(database, PAGES[False], (APP, _LAST, 50), keys=("app", "resolved_at")) == []
    assert await misplanned(database, PAGES[None], (OTHER_APP, _LAST, 50), keys=("app",)) == []
    assert await misplanned(database, OLD, (here.bench.now, 50), keys=()) == []
    assert [step for step in await misplanned(database, OVER, (50,), keys=()) if "alert" in step.lower()] == []

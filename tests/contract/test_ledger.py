"""Ledger: what the log says is written down once, whatever comes again and in whichever order."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from tests.contract.bench import APP, Bench, again, intent, notification, sent, targets
from tests.contract.clock import START
from tests.contract.sql import SqlUnderTest
from waypost.domain.delivery import FailureClass
from waypost.domain.ids import AppId, NotificationId, format_id
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.settlement import Change, Dead
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, SECOND_MS, later
from waypost.ports.ledger import Arrived, Completed, Decided, LogEntry, Mark
from waypost.ports.work import Accepted, Replay, Settled
from waypost.stores.sql.ledger import PATIENCE_MS

pytestmark = pytest.mark.asyncio


async def test_entries_may_come_again_and_in_any_order_but_settlements_in_theirs(ledger_store: SqlUnderTest) -> None:
    now = ledger_store.clock.now()
    made = notification(now)
    arrived: LogEntry = Arrived(made)
    first: LogEntry = Decided(Settled(made, (sent(0, now), again(1, now)), targets(2)))
    second: LogEntry = Decided(Settled(made, (sent(1, now, attempt=2),)))
    for n, order in enumerate(itertools.permutations([arrived, first, second])):
        if order.index(first) > order.index(second):
            continue
        other = [_about(entry, n) for entry in order]
        for batch in ([other[0]], other, other[1:]):
            await ledger_store._opened.ledger.record(batch)
        detail = await ledger_store.views.detail(APP, _id(n))
        assert detail is not None
        assert detail.record.status is NotificationStatus.SENT, format_id(_id(n))
        assert [receipt.attempt for receipt in detail.receipts] == [1, 2]
        assert detail.record.notification.content == made.content


async def test_what_is_recorded_is_leased_by_nobody_until_it_is_replayed(ledger_store: SqlUnderTest) -> None:
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    open_one, failed = notification(bench.now), notification(bench.now)
    dead = Change(0, 1, Dead("x", "x", FailureClass.TERMINAL, letter=True), bench.now)
    waits = again(0, bench.now)
    await ledger_store._opened.ledger.record(
        [Arrived(notification(bench.now)), Decided(Settled(open_one, (waits,), targets(1))),
         Decided(Settled(failed, (dead,), targets(1)))]
    )  # fmt: skip
    bench.clock.advance(HOUR_MS)
    assert await bench.leasable() == []
    assert set(await ledger_store._opened.ledger.of_log(APP, [open_one.id, failed.id])) == {open_one.id}
    assert await ledger_store._opened.ledger.of_log(AppId("another"), [open_one.id]) == {}
    order = Replay(APP, failed.id, bench.now, later(bench.now, DAY_MS))
    assert await bench.accept(order) == [Accepted(failed.id)]
    assert await bench.leasable() == [failed.id]


async def test_an_intent_without_an_outcome_ends_unknown_and_not_early(ledger_store: SqlUnderTest) -> None:
    careful = notification(ledger_store.clock.now(), guarantee=Guarantee.AT_MOST_ONCE)
    intended = intent(0, ledger_store.clock.now(), within_ms=SECOND_MS)
    await ledger_store._opened.ledger.record([Decided(Settled(careful, (intended,), targets(1)))])
    ledger = ledger_store._opened.ledger
    await ledger.begin({}, ["records/0"])
    ledger_store.clock.advance(SECOND_MS + PATIENCE_MS - 1)
    await ledger.complete(Completed(["records/0"], ledger_store.clock.now()))
    assert await ledger.close_intents(10) == 0
    ledger_store.clock.advance(1)
    assert await ledger.close_intents(10) == 1
    statuses = await ledger_store.views.statuses(APP, [careful.id])
    assert statuses == {careful.id: NotificationStatus.UNKNOWN}


async def test_no_intent_ends_while_a_recorder_is_behind_that_may_have_its_outcome(ledger_store: SqlUnderTest) -> None:
    ledger, began = ledger_store._opened.ledger, ledger_store.clock.now()
    careful = notification(began, guarantee=Guarantee.AT_MOST_ONCE)
    due_at = later(began, SECOND_MS)
    await ledger.begin({}, ["records/0", "records/1"])
    await ledger.record([Decided(Settled(careful, (intent(0, began, within_ms=SECOND_MS),), targets(1)))])
    ledger_store.clock.advance(DAY_MS)
    await ledger.complete(Completed(["records/0"], ledger_store.clock.now()))
    await ledger.complete(Completed(["records/1"], later(due_at, -1)))
    assert await ledger.close_intents(10) == 0
    await ledger.complete(Completed(["records/1"], due_at))
    assert await ledger.close_intents(10) == 1


async def test_a_step_is_made_once_and_by_whoever_has_the_part(ledger_store: SqlUnderTest) -> None:
    """A recorder that lost a part to another writes nothing of what it had read there, nor of what came with it."""
    ledger = ledger_store._opened.ledger
    first, second, late = (notification(ledger_store.clock.now()) for _ in range(3))
    assert await ledger.begin({"lane/0": 0, "lane/1": 7}, ["lane/0", "lane/1"]) == {"lane/0": 0, "lane/1": 7}
    both = [Mark("lane/1", 7, 9), Mark("lane/0", 0, 5)]
    assert await ledger.record([Arrived(first)], both)
    assert await ledger.begin({"lane/0": 0, "lane/1": 7}, ["lane/0", "lane/1"]) == {"lane/0": 5, "lane/1": 9}
    assert not await ledger.record([Arrived(late)], both)
    assert not await ledger.record([Arrived(late)], [Mark("lane/0", 5, 8), Mark("lane/1", 7, 9)])
    assert await ledger.record([Arrived(second)], [Mark("lane/0", 5, 8)])
    assert set(await ledger_store.views.statuses(APP, [first.id, second.id, late.id])) == {first.id, second.id}


async def test_all_is_complete_up_to_where_the_last_part_is(ledger_store: SqlUnderTest) -> None:
    """One of which no recorder has said anything is not complete, and one that is gone is not waited for."""
    ledger = ledger_store._opened.ledger
    assert await ledger.complete_until() == 0
    await ledger.begin({"lane/0": 0}, ["lane/0", "lane/1"])
    await ledger.complete(Completed(["lane/0"], later(START, 2)))
    assert await ledger.complete_until() == 0
    await ledger.complete(Completed(["lane/1"], START))
    assert await ledger.complete_until() == START
    await ledger.complete(Completed(["lane/0", "lane/1"], later(START, 1)))
    assert await ledger.complete_until() == later(START, 1)
    await ledger.begin({"lane/0": 0}, ["lane/0"])
    assert await ledger.complete_until() == later(START, 2), "nothing that was said is taken back"


async def test_a_withdrawal_gives_its_reason(ledger_store: SqlUnderTest) -> None:
    made = notification(ledger_store.clock.now(), lane=Lane.HIGH)
    over = Settled(made, verdict=NotificationStatus.CANCELLED)
    await ledger_store._opened.ledger.record([Arrived(made), Decided(over, "changed my mind")])
    detail = await ledger_store.views.detail(APP, made.id)
    assert detail is not None
    assert (detail.record.status, detail.record.reason) == (NotificationStatus.CANCELLED, "changed my mind")


def _id(n: int) -> NotificationId:
    return NotificationId(START.to_bytes(6, "big") + b"\x70\x00\x80" + bytes(6) + bytes([n]))


def _about(entry: LogEntry, n: int) -> LogEntry:
    """The same entry about the *n*-th notification."""
    if isinstance(entry, Arrived):
        return Arrived(msgspec.structs.replace(entry.notification, id=_id(n)))
    settled = entry.settled
    made = msgspec.structs.replace(settled.notification, id=_id(n))
    return Decided(msgspec.structs.replace(settled, notification=made))

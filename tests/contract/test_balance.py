"""The contract of BalanceSheet on every engine; that it adds up is checked after each test of every other port, too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pysqlite3 import dbapi2

from tests.contract.bench import APP, OTHER_APP, Bench, again, by_content, by_key, intent, notification, parked, sent
from tests.contract.conftest import empty_store
from tests.contract.promised import promise
from tests.contract.sql import SqlUnderTest
from tests.engines import run_sql
from tests.journeys.harness import until
from tests.unit.adapters.noted import Noted
from waypost.config import Config
from waypost.domain.balance import Balance, Difference, Line, Requests, Waiting, together
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, later
from waypost.features.balance.parts import look
from waypost.features.parts import Ground
from waypost.ports.promises import Promise
from waypost.ports.work import NewNotification
from waypost.telemetry import Event

pytestmark = pytest.mark.asyncio

W = Waiting


async def of_app(bench: Bench) -> Balance:
    """The balance of the app of most tests."""
    return together((await bench.store.balance.read(APP)).balances.values())


@promise(Promise.RECORDS_DUPLICATES)
async def test_a_request_is_refused_a_duplicate_or_accepted(bench: Bench) -> None:
    """A repeat leaves no row, a content duplicate leaves a record; a key with another body is refused."""
    first, other = notification(bench.now), notification(bench.now)
    said, same = notification(bench.now, body="same"), notification(bench.now, body="same")
    await bench.accept(NewNotification(first, (by_key(first, "k"),)), NewNotification(said, (by_content(said),)))
    once_more = (NewNotification(other, (by_key(other, "k"),)), NewNotification(same, (by_content(same),)))
    await bench.accept(first, *once_more)
    assert (await of_app(bench)).requests == Requests(requests=5, refused=1, duplicates=2, accepted=2)
    bench.store.balance.refused(APP, Lane.NORMAL, 3)

    async def counted() -> bool:
        return (await of_app(bench)).requests == Requests(requests=8, refused=4, duplicates=2, accepted=2)

    await until(counted, "refusals are written with what comes next")
    assert (await bench.store.balance.read(OTHER_APP)).balances == {}


@promise(Promise.KEEPS_TIME, Promise.SENDS_AT_MOST_ONCE, Promise.REPLAYS)
async def test_what_is_open_is_where_it_is(bench: Bench) -> None:
    """Scheduled, waiting, processing; of deliveries due ones, parked ones, those under way, and what ended."""
    await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    await bench.accepted(user="bob", guarantee=Guarantee.AT_MOST_ONCE)
    await bench.accepted(user="cyd")
    lease = await bench.take()
    for item in lease.items:
        if item.notification.guarantee is Guarantee.AT_MOST_ONCE:
            await bench.settle_first(lease, item, 2, intent(0, bench.now), sent(1, bench.now))
        else:
            changes = again(0, bench.now), parked(1, bench.now, later(bench.now, DAY_MS))
            await bench.settle_first(lease, item, 2, *changes)
    await bench.accepted(user="dan")
    balance = await of_app(bench)
    assert balance.notifications.came == 4
    assert balance.notifications.open == {W.SCHEDULED: 1, W.WAITING: 1, W.PROCESSING: 2}
    assert dict(balance.notifications.ended) == {}
    assert balance.deliveries.came == 4
    assert dict(balance.deliveries.ended) == {"sent": 1}
    assert balance.deliveries.open == {W.WAITING: 1, W.PARKED: 1, W.UNDER_WAY: 1}
    assert balance.differences == {}
    outline = await bench.store.balance.outline(APP)
    assert (outline.ended, outline.open, outline.scheduled) == ({}, 4, 1)
    assert (await bench.store.balance.outline(OTHER_APP)).open == 0


class Behind:
    """A store behind whose back somebody writes, and the watch over it."""

    def __init__(self, store: SqlUnderTest, bench: Bench) -> None:
        self.bench = bench
        self._store = store
        self._noted = Noted()
        opened = store._opened
        common = opened, opened.work, opened.devices, store.clock, self._noted
        self._ground = Ground(*common, Config(apps={}), None)

    def write(self, sql: str) -> None:
        """Write as nobody should."""
        url = self._store._settings.url
        if not url.startswith("sqlite"):
            run_sql(url, sql)
            return
        connection = dbapi2.connect(url.removeprefix("sqlite:///"))
        connection.execute(sql)
        connection.commit()
        connection.close()

    async def alarms(self) -> list[dict[str, object]]:
        """What is told by the looks of a minute."""
        await look(self._ground)
        self._store.clock.advance(MINUTE_MS)
        await look(self._ground)
        return self._noted.fields_of(Event.BALANCE_OFF)

    async def recount(self) -> list[Difference]:
        """What a recount finds."""
        return [*await self._store.balance.audit()]


@pytest_asyncio.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engines)])
async def behind(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[Behind]:
    """A store with one notification that ended, of two deliveries, and one that is open."""
    async with empty_store(request.param, tmp_path, request, empty_database, adds_up=False) as store:
        assert isinstance(store, SqlUnderTest)
        bench = Bench(store, (await store.open_workers(1))[0])
        await bench.accepted()
        lease, item = await bench.take_one()
        changes = sent(0, bench.now), sent(1, bench.now)
        await bench.settle_first(lease, item, 2, *changes)
        await bench.accepted(user="bob")
        yield Behind(store, bench)


async def test_nothing_is_told_of_what_adds_up(behind: Behind) -> None:
    assert await behind.alarms() == []
    assert await behind.recount() == []


async def test_an_open_row_that_is_gone_is_missed_within_a_minute(behind: Behind) -> None:
    """It was accepted, did not end, and is nowhere."""
    behind.write("DELETE FROM notification WHERE status = 'pending'")
    (alarm,) = await behind.alarms()
    assert alarm == {"app": APP, "lane": "normal", "line": "notifications", "difference": 1}
    assert await behind.recount() == [
        Difference(APP, "normal", Line.NOTIFICATIONS, "pending", counted=1, found=0),
        Difference(APP, "normal", Line.NOTIFICATIONS, "accepted", counted=2, found=1),
    ]


async def test_a_final_row_that_is_gone_is_found_by_the_recount(behind: Behind) -> None:
    """Its deliveries are missed with it, and where counters are kept by the hour, the hour in which it ended."""
    ended = behind.bench.now // HOUR_MS
    behind.write("DELETE FROM notification WHERE status = 'sent'")
    found = await behind.recount()
    named = {(each.line, each.status): (each.counted, each.found) for each in found}
    assert named == {
        (Line.NOTIFICATIONS, "accepted"): (2, 1),
        (Line.NOTIFICATIONS, "sent"): (1, 0),
        (Line.DELIVERIES, "targets"): (2, 0),
        (Line.DELIVERIES, "sent"): (2, 0),
    }
    assert {each.hours for each in found if each.status == "sent" and each.line is Line.NOTIFICATIONS} <= {(ended,), ()}


async def test_a_counter_that_was_changed_is_told_of_and_named(behind: Behind) -> None:
    behind.write("UPDATE counter SET delta = delta + 5 WHERE status = 'delivery:sent'")
    (alarm,) = await behind.alarms()
    assert alarm == {"app": APP, "lane": "normal", "line": "deliveries", "difference": -5}
    assert Difference(APP, "normal", Line.DELIVERIES, "sent", counted=7, found=2) in await behind.recount()
    behind.write("UPDATE counter SET delta = delta - 5 WHERE status = 'delivery:sent'")
    await behind.alarms()
    assert behind._noted.fields_of(Event.BALANCE_RESTORED) == [{"app": APP, "lane": "normal", "line": "deliveries"}]


async def test_a_status_that_was_changed_is_named_on_both_sides(behind: Behind) -> None:
    behind.write("UPDATE receipt SET status = 'failed' WHERE n = 0")
    assert await behind.alarms() == [], "the counters add up: a recount alone can see it"
    assert await behind.recount() == [
        Difference(APP, "normal", Line.DELIVERIES, "failed", counted=0, found=1),
        Difference(APP, "normal", Line.DELIVERIES, "sent", counted=2, found=1),
    ]

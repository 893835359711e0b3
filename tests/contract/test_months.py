"""Months on PostgreSQL that are over: dropped whole, where nothing in them is kept and nobody has to wait."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

from tests.contract.balanced import check_balance
from tests.contract.bench import Bench, sent
from tests.contract.sql import SqlUnderTest
from tests.contract.test_retention import made_now
from tests.shows import shows
from tests.unit.adapters.noted import Noted
from waypost.domain.notification import Notification
from waypost.domain.settlement import Sent
from waypost.domain.time import DAY_MS, Instant, later
from waypost.ports.work import NewNotification
from waypost.stores.sql.postgres.months import drop_months
from waypost.telemetry import Event, Metric

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

JANUARY = {"content_2027_01", "notification_2027_01", "receipt_2027_01"}
"""Where the clock of tests begins, in the middle of it."""
MARCH = 50 * DAY_MS
"""After its beginning; the partitions of tests end with it."""


@pytest_asyncio.fixture
async def bench(postgres_url: str) -> AsyncIterator[Bench]:
    """A worker of a database that nobody else has."""
    store = SqlUnderTest(postgres_url)
    await store.open()
    yield Bench(store, (await store.open_workers(1))[0])
    await check_balance(store)
    await store.close()


def months(url: str) -> set[str]:
    """The tables that a month has to itself, up to February."""
    named = r"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '_2027_0[12]$'"
    with psycopg.connect(url, autocommit=True) as connection:
        return {row[0] for row in connection.execute(named).fetchall()}


def drop(url: str, before: Instant) -> int:
    """What the sweep does once a day."""
    with psycopg.connect(url, autocommit=True) as connection:
        return drop_months(connection, before).tables


async def is_known(bench: Bench, made: Notification) -> bool:
    """Whether it can be asked for."""
    return await bench.store.views.detail(made.app, made.id) is not None


async def january(bench: Bench) -> Notification:
    """A notification that is delivered in January."""
    made = made_now(bench, "ann")
    await bench.routed(made, Sent("id"))
    return made


@shows("S1-62")
async def test_a_month_of_which_nothing_is_kept_goes_whole(bench: Bench, postgres_url: str) -> None:
    """Content a month after its notifications: the clocks of workers and server differ."""
    made = await january(bench)
    before = months(postgres_url)
    bench.clock.advance(MARCH)
    february = later(bench.now, -30 * DAY_MS)
    assert drop(postgres_url, later(bench.now, -40 * DAY_MS)) == 0, "it is January that is under way"
    assert drop(postgres_url, february) == len(JANUARY)
    assert months(postgres_url) == before - JANUARY
    assert not await is_known(bench, made)
    young = made_now(bench, "ann")
    await bench.routed(young, Sent("id"))
    assert await is_known(bench, young)


@pytest.mark.parametrize("kept", ["open", "finished lately"])
async def test_a_month_that_keeps_something_stays(kept: str, bench: Bench, postgres_url: str) -> None:
    """What was finished in time goes by pages."""
    gone = await january(bench)
    stays = made_now(bench, "ann")
    await bench.accept(NewNotification(stays))
    bench.clock.advance(MARCH)
    before = later(bench.now, -30 * DAY_MS)
    if kept == "finished lately":
        lease, item = await bench.take_one()
        await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert drop(postgres_url, before) == 0
    by_pages = await bench.store.retention.drop_whole(before)
    assert await bench.store.retention.drop_before(by_pages, 10) == 1
    assert not await is_known(bench, gone)
    assert await is_known(bench, stays)


async def test_nobody_waits_for_a_month_to_go(bench: Bench, postgres_url: str) -> None:
    """Somebody else's long read has the table: it is tried again another day, and intake goes on."""
    await january(bench)
    bench.clock.advance(MARCH)
    before = later(bench.now, -30 * DAY_MS)
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT count(*) FROM notification")
        assert drop(postgres_url, before) == 0
        await bench.accept(NewNotification(made_now(bench, "ann")))
    assert drop(postgres_url, before) == len(JANUARY)


async def test_what_a_crash_left_detached_is_dropped_and_what_an_operator_detached_is_not(
    bench: Bench, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE receipt DETACH PARTITION receipt_2027_01")
        connection.execute("ALTER TABLE content DETACH PARTITION content_2027_01")
        connection.execute("ALTER TABLE content_2027_01 RENAME TO doomed_content_2027_01")
    assert drop(postgres_url, bench.now) == 1
    assert {"receipt_2027_01", "notification_2027_01"} <= months(postgres_url)


@shows("S1-62", "S3-77")
async def test_months_are_made_ahead_as_the_clock_goes_over_their_ends(bench: Bench, postgres_url: str) -> None:
    """Day after day, across the end of a year: whatever is accepted has a table of its own month."""
    noted = told(bench)
    for _ in range(13):
        bench.clock.advance(30 * DAY_MS)
        await bench.store.retention.drop_whole(later(bench.now, -60 * DAY_MS))
        await bench.routed(made_now(bench, "ann"), Sent("id"))
    rest = "SELECT EXISTS (TABLE notification_rest), EXISTS (TABLE receipt_rest)"  # content goes by the server's clock
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert connection.execute(rest).fetchone() == (False, False)
    assert noted.fields_of(Event.STORE_MONTHS) == []


async def test_a_month_that_cannot_be_made_is_told(bench: Bench) -> None:
    """Nobody swept for months, and what was accepted meanwhile lies in the rest."""
    noted = told(bench)
    bench.clock.advance(100 * DAY_MS)
    await bench.accept(NewNotification(made_now(bench, "ann")))
    await bench.store.retention.drop_whole(later(bench.now, -300 * DAY_MS))
    (fields,) = noted.fields_of(Event.STORE_MONTHS)
    assert (fields["missing"], fields["undropped"]) == ("notification_2027_04", "")
    assert noted.gauges[Metric.MONTHS_MISSING] == 1


async def test_a_month_that_cannot_be_dropped_is_told(bench: Bench, postgres_url: str) -> None:
    noted = told(bench)
    await january(bench)
    bench.clock.advance(MARCH)
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT count(*) FROM notification")
        await bench.store.retention.drop_whole(later(bench.now, -30 * DAY_MS))
    (fields,) = noted.fields_of(Event.STORE_MONTHS)
    assert fields["undropped"] == "notification_2027_01 receipt_2027_01"


def told(bench: Bench) -> Noted:
    """What is said from now on."""
    noted = Noted()
    assert isinstance(bench.store, SqlUnderTest)
    bench.store._opened.database.telemetry = noted
    return noted

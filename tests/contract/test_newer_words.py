"""Words that only a newer version knows, while both run: what bears one is left to that, and all beside it goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pysqlite3 import dbapi2

from tests.contract.bench import OTHER_APP, RETRY_MS, Bench, again, notification, sent, targets
from tests.contract.claims import ClaimsUnderTest
from tests.contract.conftest import empty_store
from tests.contract.sql import SqlUnderTest
from tests.engines import run_sql
from tests.unit.adapters.noted import Noted
from waypost.domain.amendment import NotConfirmed
from waypost.domain.ids import format_id
from waypost.domain.notification import Notification
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.views import HistoryQuery
from waypost.ports.work import NotReplayable, Replay, Settled
from waypost.telemetry import Event

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(
    params=[
        "sqlite",
        *(pytest.param(name, marks=pytest.mark.engines) for name in ("ledger on postgres", "postgres")),
    ]
)
async def opened(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[SqlUnderTest]:
    """An empty store."""
    async with empty_store(request.param, tmp_path, request, empty_database, adds_up=False) as made:
        assert isinstance(made, SqlUnderTest)
        made.telemetry = Noted()
        yield made


async def bench_of(opened: SqlUnderTest) -> Bench:
    """One worker."""
    return Bench(opened, (await opened.open_workers(1))[0])


def write(opened: SqlUnderTest, sql: str, made: Notification) -> None:
    """Write as another version would: *sql* ends with the key, to which the id is added."""
    url, statement = opened._settings.url, f"{sql} = {{}}"
    if url.startswith("sqlite"):
        connection = dbapi2.connect(url.removeprefix("sqlite:///"))
        connection.execute(statement.format(f"x'{made.id.hex()}'"))
        connection.commit()
        connection.close()
    else:
        run_sql(url, statement.format(f"'\\x{made.id.hex()}'").replace("x'c1'", "'\\xc1'"))


async def tried(bench: Bench, *made: Notification) -> None:
    """Accept these, of two targets each, and try all in vain."""
    await bench.accept(*made)
    lease = await bench.take()
    changes = (again(0, bench.now), again(1, bench.now))
    assert await bench.settle(lease, *(Settled(item.notification, changes, targets(2)) for item in lease.items)) == []


async def due_parts(bench: Bench) -> set[tuple[bytes, int]]:
    """Which targets are leased now."""
    lease = await bench.take()
    return {(item.notification.id, target.n) for item in lease.items for target in item.open_targets or ()}


@pytest.mark.parametrize("word", ["status = 'newer'", "waits = x'c1'"])
async def test_a_target_is_left_alone(opened: SqlUnderTest, word: str) -> None:
    """It reads as unknown, keeps its notification open, and can be sent once its word is known again."""
    bench = await bench_of(opened)
    spoilt, sound = notification(bench.now, user="ann"), notification(bench.now, user="bob")
    await tried(bench, spoilt, sound)
    write(opened, f"UPDATE receipt SET {word} WHERE n = 0 AND notification_id", spoilt)  # noqa: S608 - words of this test
    bench.clock.advance(RETRY_MS)
    lease = await bench.take()
    parts = {(item.notification.id, target.n) for item in lease.items for target in item.open_targets or ()}
    assert parts == {(spoilt.id, 1), (sound.id, 0), (sound.id, 1)}
    done = {spoilt.id: (1,), sound.id: (0, 1)}
    changes = [
        Settled(item.notification, tuple(sent(n, bench.now, attempt=2) for n in done[item.notification.id]))
        for item in lease.items
    ]
    assert await bench.settle(lease, *changes) == []
    assert await bench.status(sound) is NotificationStatus.SENT
    assert await bench.status(spoilt) is NotificationStatus.PROCESSING
    statuses = [each.status for each in await bench.receipts(spoilt)]
    assert statuses == [DeliveryStatus.UNKNOWN, DeliveryStatus.SENT]
    write(opened, "UPDATE receipt SET status = 'pending', waits = NULL WHERE n = 0 AND notification_id", spoilt)
    assert await due_parts(await bench.crash()) == {(spoilt.id, 0)}


async def test_a_target_that_a_newer_version_settled_ends_with_the_others(opened: SqlUnderTest) -> None:
    """Nobody else would end the notification; what became of that target nobody here can say."""
    bench = await bench_of(opened)
    made = notification(bench.now)
    await tried(bench, made)
    settled = "UPDATE receipt SET status = 'newer', due_at = NULL, resolved_at = 1, failure_class = 'newer'"
    write(opened, f"{settled} WHERE n = 0 AND notification_id", made)
    bench.clock.advance(RETRY_MS)
    lease, item = await bench.take_one()
    assert await bench.settle_rest(lease, item, sent(1, bench.now, attempt=2)) == []
    assert await bench.status(made) is NotificationStatus.PARTIAL
    assert [each.status for each in await bench.receipts(made)] == [DeliveryStatus.UNKNOWN, DeliveryStatus.SENT]
    assert await bench.confirm(made, 0) == NotConfirmed(DeliveryStatus.UNKNOWN)
    order = Replay(made.app, made.id, bench.now, later(bench.now, MINUTE_MS))
    assert await bench.accept(order) == [NotReplayable(known=True)]


@pytest.mark.parametrize("scheduled", [False, True])
async def test_a_notification_is_left_alone(opened: SqlUnderTest, scheduled: bool) -> None:
    """Nothing of it is leased, and lists show it beside the others."""
    bench = await bench_of(opened)
    at = later(bench.now, MINUTE_MS) if scheduled else None
    spoilt = notification(bench.now, user="ann", scheduled_at=at)
    sound = notification(bench.now, user="bob", scheduled_at=at)
    await bench.accept(spoilt, sound)
    write(opened, "UPDATE notification SET status = 'newer' WHERE id", spoilt)
    bench.clock.advance(2 * MINUTE_MS)
    assert await bench.leasable() == [sound.id]
    found = await opened.views.history(HistoryQuery(spoilt.app, limit=10))
    assert {record.notification.id: record.status for record in found}[spoilt.id] is NotificationStatus.UNKNOWN
    assert len(found) == 2
    assert (await opened.views.balance())[NotificationStatus.UNKNOWN] == 1
    order = Replay(spoilt.app, spoilt.id, bench.now, later(bench.now, MINUTE_MS))
    assert await bench.accept(order) == [NotReplayable(known=True)]
    write(opened, "UPDATE notification SET status = 'pending' WHERE id", spoilt)
    assert set(await (await bench.crash()).leasable()) == {spoilt.id, sound.id}


async def test_what_is_leased_when_a_newer_version_writes_its_word_is_refused_alone(opened: SqlUnderTest) -> None:
    """Reported together with another, which is settled."""
    bench = await bench_of(opened)
    spoilt, sound = notification(bench.now, user="ann"), notification(bench.now, user="bob")
    await bench.accept(spoilt, sound)
    lease = await bench.take()
    write(opened, "UPDATE notification SET status = 'newer' WHERE id", spoilt)
    settled = [Settled(item.notification, (sent(0, bench.now),), targets(1)) for item in lease.items]
    assert [each.notification_id for each in await bench.settle(lease, *settled)] == [spoilt.id]
    assert await bench.status(sound) is NotificationStatus.SENT


async def test_it_is_told_once_for_each(opened: SqlUnderTest) -> None:
    """However often it is met."""
    bench = await bench_of(opened)
    spoilt, sound = notification(bench.now, user="ann"), notification(bench.now, user="bob", app=OTHER_APP)
    await tried(bench, spoilt, sound)
    bench.clock.advance(RETRY_MS)
    if isinstance(opened, ClaimsUnderTest):  # it has a claim already, as if a newer version had made that
        await bench.worker.promote_due(bench.now, 100)
    write(opened, "UPDATE receipt SET status = 'newer' WHERE notification_id", spoilt)
    for _ in range(3):
        bench.clock.advance(MINUTE_MS)
        await bench.take()
    assert isinstance(opened.telemetry, Noted)
    told = [(fields["notification_id"], fields["n"]) for fields in opened.telemetry.fields_of(Event.NOTIFICATION_NEWER)]
    assert sorted(told) == [(format_id(spoilt.id), 0), (format_id(spoilt.id), 1)]

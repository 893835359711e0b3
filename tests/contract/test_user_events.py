"""What users did is counted for each of them by day: an event with an id once, whoever says it again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, later
from waypost.domain.tracked import TrackedEvent, day_of
from waypost.stores.sql.transaction import Transaction
from waypost.stores.sql.user_events import SqlUserEvents, UserEventCount

pytestmark = pytest.mark.asyncio

DEMO, ANN, BOB = AppId("demo"), UserId("ann"), UserId("bob")
NOON = Instant(20_000 * DAY_MS + 12 * HOUR_MS)
TODAY = day_of(NOON)


def bought(user: UserId = ANN, at: Instant = NOON, key: bytes | None = None) -> TrackedEvent:
    """A user paid an order."""
    return TrackedEvent(DEMO, user, "order_paid", at, key=key)


@pytest.fixture
def events(ledger_store: SqlUnderTest) -> SqlUserEvents:
    """The events of an empty store."""
    return ledger_store._opened.user_events


async def test_events_count_by_user_and_day_with_the_last_time(events: SqlUserEvents) -> None:
    hour_later, next_day = later(NOON, HOUR_MS), later(NOON, DAY_MS)
    assert await events.track([bought(at=hour_later), bought(), bought(at=next_day), bought(BOB)]) == 4
    assert await events.of(DEMO, ANN) == [
        UserEventCount("order_paid", TODAY, 2, hour_later),
        UserEventCount("order_paid", TODAY + 1, 1, next_day),
    ]
    assert await events.of(DEMO, ANN, TODAY + 1) == [UserEventCount("order_paid", TODAY + 1, 1, next_day)]
    assert await events.of(AppId("other"), ANN) == []


async def test_an_event_with_an_id_counts_once_in_one_batch_and_among_many(events: SqlUserEvents) -> None:
    assert await events.track([bought(key=b"1" * 16), bought(key=b"1" * 16)]) == 1
    batches = [[bought(key=bytes([n % 5]) * 16) for n in range(50)] for _ in range(8)]
    assert sum(await asyncio.gather(*(events.track(batch) for batch in batches))) == 5
    assert [each.count for each in await events.of(DEMO, ANN)] == [6]


async def test_who_hears_of_events_writes_with_them_and_hears_no_repeat(events: SqlUserEvents) -> None:
    heard: list[TrackedEvent] = []

    def hears(transaction: Transaction, fresh: Sequence[TrackedEvent]) -> None:
        assert transaction.connection.execute("SELECT count(*) FROM event_id").fetchone()[0] == 1
        heard.extend(fresh)

    for _ in range(2):
        await events.track([bought(key=b"1" * 16)], [hears])
    assert heard == [bought(key=b"1" * 16)]


async def test_what_who_hears_cannot_write_is_not_counted_either(events: SqlUserEvents) -> None:
    def fails(transaction: Transaction, fresh: Sequence[TrackedEvent]) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await events.track([bought(key=b"1" * 16)], [fails])
    assert await events.of(DEMO, ANN) == []
    assert await events.track([bought(key=b"1" * 16)]) == 1

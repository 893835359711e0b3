"""How much a user gets: counted before it is sent, exactly, whoever sends it, and once for each notification."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from tests.contract.bench import Bench, notification
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.capping import Capped, Claim, Full, Verdicts
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.preferences import Cap
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, later
from waypost.stores.sql.frequency import SqlFrequency

pytestmark = pytest.mark.asyncio

DEMO, ANN = AppId("demo"), UserId("ann")
NOON = Instant(20_000 * DAY_MS + 12 * HOUR_MS)
PUSH = frozenset({"push"})
ROOM = Verdicts()


def claim(
    n: int, cap: Cap, at: Instant = NOON, zone: str = "UTC", channels: Iterable[str] = PUSH, **of_channel: Cap
) -> Claim:
    """A wish to send notification number *n*."""
    capped = Capped({"": cap}, of_channel, "promotion", ZoneInfo(zone))
    return Claim(DEMO, ANN, NotificationId(n.to_bytes(16)), capped, frozenset(channels), at)


@pytest.fixture
def frequency(ledger_store: SqlUnderTest) -> SqlFrequency:
    """The counts of an empty store."""
    return ledger_store._opened.frequency


@shows("S3-113")
async def test_processes_that_send_at_the_same_time_send_no_more_than_the_cap(ledger_store: SqlUnderTest) -> None:
    """Forty notifications, each wanted by two of three processes at once: five pass, whoever asks."""
    workers = await ledger_store.open_workers(3)
    counts = [ledger_store.ground_of(worker).store.frequency for worker in workers]
    cap = Cap(limit=5, over="drop")
    asked = [(n, counts[(n + m) % 3].claim([claim(n, cap)])) for n in range(40) for m in range(2)]
    said = await asyncio.gather(*(each for _, each in asked))
    passed = {n for (n, _), (verdicts,) in zip(asked, said, strict=True) if verdicts == ROOM}
    assert len(passed) == 5
    again = await counts[0].claim([claim(n, cap) for n in range(40)])
    assert {n for n, verdicts in enumerate(again) if verdicts == ROOM} == passed, "a retry counts once"


async def test_a_day_is_the_users_and_ends_at_their_midnight(frequency: SqlFrequency) -> None:
    cap, midnight = Cap(limit=1), Instant(20_000 * DAY_MS + 15 * HOUR_MS)  # 00:00 in Tokyo, nine hours ahead
    assert await frequency.claim([claim(1, cap, zone="Asia/Tokyo")]) == [ROOM]
    assert await frequency.claim([claim(2, cap, zone="Asia/Tokyo")]) == [Verdicts(Full(midnight))]
    assert await frequency.look([claim(2, cap, zone="Asia/Tokyo")]) == [Verdicts(Full(midnight))]
    assert await frequency.claim([claim(2, cap, midnight, "Asia/Tokyo")]) == [ROOM]


async def test_a_time_that_rolls_has_room_when_the_oldest_is_over(frequency: SqlFrequency) -> None:
    cap = Cap(limit=2, per="24h")
    assert await frequency.claim([claim(1, cap), claim(2, cap, later(NOON, HOUR_MS))]) == [ROOM, ROOM]
    soon = later(NOON, DAY_MS - 1)
    assert await frequency.claim([claim(3, cap, soon)]) == [Verdicts(Full(later(NOON, DAY_MS)))]
    assert await frequency.claim([claim(3, cap, later(NOON, DAY_MS))]) == [ROOM]
    assert await frequency.claim([claim(1, cap, later(NOON, DAY_MS))]) == [
        Verdicts(Full(later(NOON, DAY_MS + HOUR_MS)))
    ], "a retry a day later counts where it is made"


async def test_a_channel_has_a_cap_of_its_own_and_the_others_go_on(frequency: SqlFrequency) -> None:
    cap, both = Cap(limit=9), ("push", "sms")
    first = claim(1, cap, channels=both, sms=Cap(limit=1, over="drop"))
    second = replace(first, notification_id=NotificationId(bytes(16)))
    assert await frequency.claim([first, second]) == [ROOM, Verdicts(None, {"sms": Full(None)})]
    assert await frequency.claim([replace(second, channels=PUSH)]) == [ROOM]


async def test_what_came_to_its_end_unsent_is_not_counted(ledger_store: SqlUnderTest) -> None:
    """It held a place as long as it was on its way."""
    (worker,) = await ledger_store.open_workers(1)
    bench, cap = Bench(ledger_store, worker), Cap(limit=1, over="drop")
    frequency = ledger_store.ground_of(worker).store.frequency
    made = notification(bench.now)
    await bench.accept(made)
    first = replace(claim(1, cap), notification_id=made.id)
    assert await frequency.claim([first]) == [ROOM]
    assert await frequency.claim([claim(2, cap)]) == [Verdicts(Full(None))]
    await bench.withdraw(made)
    assert await frequency.claim([claim(2, cap)]) == [ROOM]


async def test_counts_are_dropped_when_no_cap_can_ask_for_them_and_a_user_is_erased(frequency: SqlFrequency) -> None:
    cap = Cap(limit=1, per="31d", over="drop")
    await frequency.claim([claim(1, cap)])
    assert await frequency.drop(later(NOON, 31 * DAY_MS), 100) == 0
    assert await frequency.drop(later(NOON, 34 * DAY_MS), 100) == 1
    assert await frequency.claim([claim(2, cap)]) == [ROOM]

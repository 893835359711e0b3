"""Segments: SQL chooses whom the filter chooses when it is read in plain Python, page by page, from indexes."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.contract.segment_users import APP, NOW, fill, random_filter
from tests.contract.sql import SqlUnderTest
from tests.memory.segments import chooses
from tests.shows import shows
from waypost.domain.ids import UserId
from waypost.domain.segment import Filter
from waypost.domain.time import DAY_MS, later
from waypost.domain.tracked import TrackedEvent
from waypost.stores.sql import segments as sql_segments
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.segment_filter import Asked
from waypost.stores.sql.segment_walk import matching_range
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio

SEED, USERS = 20, 80
FILTERS, ON_POSTGRES = 250, 80
"""Random filters; fewer where the server plans each for milliseconds."""


@pytest.fixture
def opened(ledger_store: SqlUnderTest) -> Store:
    """An empty store."""
    return ledger_store._opened


def filter_of(said: object) -> Filter:
    return msgspec.convert(said, Filter)


async def test_sql_chooses_whom_plain_python_chooses(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random filters over random users, in pages, and once more as the range of a piece of a job."""
    monkeypatch.setattr(sql_segments, "COUNT_PAGE", 30)
    users = await fill(opened, SEED, USERS)
    chance = random.Random(SEED)
    sizes: set[int] = set()
    for _ in range(ON_POSTGRES if await on_postgres(opened) else FILTERS):
        chosen = random_filter(chance)
        wanted = sorted(user for user, known in users.items() if chooses(chosen, known, NOW))
        counted = await opened.segments.count(APP, chosen, NOW, USERS)
        assert list(counted.examples) == wanted, msgspec.json.encode(chosen)
        assert counted.count == len(wanted)
        assert list(await opened.segments.first(APP, chosen, NOW, 7)) == wanted[:7]
        middle = sorted(users)[USERS // 2]
        assert await in_range(opened, chosen, "", middle) == [user for user in wanted if user <= middle]
        assert await in_range(opened, chosen, middle, "\U0010ffff") == [user for user in wanted if user > middle]
        sizes.add(len(wanted))
    assert len(sizes) > 15, "filters that choose nobody or everybody show nothing"


async def on_postgres(opened: Store) -> bool:
    """Whether the store is PostgreSQL."""
    return await opened.database.read(lambda connection: connection.dialect.has_jsonb)


async def in_range(opened: Store, chosen: Filter, after: str, until: str) -> list[UserId]:
    """The users of a range whom *chosen* chooses."""

    def read(connection: Connection) -> list[UserId]:
        table, bound = matching_range(chosen, Asked(APP, NOW, connection.dialect), after, until)
        rows = connection.execute(f"SELECT user_id FROM ({table}) AS chosen ORDER BY user_id", bound)  # noqa: S608 - what is tested
        return [user for (user,) in rows.fetchall()]

    return await opened.database.read(read)


@shows("S3-122")
async def test_who_opened_something_in_the_last_seven_days_is_found_from_tracked_events(opened: Store) -> None:
    """To the millisecond, though events are kept by day; and who did not, among those that are known."""
    week = 7 * DAY_MS
    for user, event, ago in (
        ("ann", "opened", week),
        ("bob", "opened", week + 1),
        ("cat", "delivered", 0),
        ("dan", "opened", 0),
        ("dan", "opened", 3 * DAY_MS),
    ):
        await opened.user_events.track([TrackedEvent(APP, UserId(user), event, later(NOW, -ago))])
    lately = filter_of({"event": {"name": "opened", "within_days": 7}})
    often = filter_of({"event": {"name": "opened", "within_days": 7, "at_least": 2}})
    lapsed = filter_of({"not": {"event": {"name": "opened", "within_days": 7}}})
    assert (await opened.segments.count(APP, lately, NOW, 9)).examples == ("ann", "dan")
    assert (await opened.segments.count(APP, often, NOW, 9)).examples == ("dan",)
    assert (await opened.segments.count(APP, lapsed, NOW, 9)).examples == ("bob", "cat")


async def test_a_segment_is_kept_by_name(opened: Store) -> None:
    news, sport = filter_of({"topic": "news"}), filter_of({"or": [{"topic": "sport"}, {"not": {"topic": "news"}}]})
    assert await opened.segments.put(APP, "b", news, NOW)
    assert not await opened.segments.put(APP, "b", sport, later(NOW, 1))
    await opened.segments.put(APP, "a", news, NOW)
    found = await opened.segments.find(APP, "b")
    assert found is not None
    assert (found.filter, found.changed_at) == (sport, later(NOW, 1))
    assert [each.name for each in await opened.segments.page(APP, "", 9)] == ["a", "b"]
    assert [each.name for each in await opened.segments.page(APP, "a", 9)] == ["b"]
    assert await opened.segments.remove(APP, "b")
    assert not await opened.segments.remove(APP, "b")
    assert await opened.segments.find(APP, "b") is None

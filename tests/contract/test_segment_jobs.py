"""Bulk jobs to a topic or a segment: whom the filter chooses when their turn comes, each once, found by index."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.contract.bench import APP, Bench
from tests.contract.bulk_bench import created, job, leased, record, registered, sent_to_all, taken, users_of, walked
from tests.contract.sql import SqlUnderTest
from waypost.domain.bulk import BulkJob
from waypost.domain.ids import UserId
from waypost.domain.profile import Profile, ProfileChange
from waypost.domain.segment import Filter
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, Instant, later
from waypost.domain.tracked import TrackedEvent
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.segment_filter import Asked
from waypost.stores.sql.segment_walk import matching_page, matching_range
from waypost.stores.sql.store import Store
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio

SENT, NO_TARGETS = NotificationStatus.SENT, NotificationStatus.NO_TARGETS
USERS = [f"u{n:02}" for n in range(12)]


@pytest_asyncio.fixture
async def bench(ledger_store: SqlUnderTest) -> Bench:
    """One worker on an empty store of either engine."""
    return Bench(ledger_store, (await ledger_store.open_workers(1))[0])


def store_of(bench: Bench) -> Store:
    store: Store = bench.store.ground_of(bench.worker).store  # type: ignore[attr-defined]  # of SQL alone
    return store


def filter_of(said: object) -> Filter:
    return msgspec.convert(said, Filter)


async def made_for(bench: Bench, said: object) -> BulkJob:
    """Make a job to whom a filter chooses."""
    return await created(bench, msgspec.structs.replace(job(at=bench.now), registry=None, segment=filter_of(said)))


async def hear(bench: Bench, *users: str) -> None:
    topics = store_of(bench).topics
    await topics.put(APP, "news", "", is_open=False, at=bench.now)
    await topics.change(APP, "news", [UserId(user) for user in users], [], bench.now)


async def test_a_topic_is_told_once_each_in_pages_and_pieces(bench: Bench) -> None:
    await registered(bench, *USERS)
    await registered(bench, "u03", device="second", platform="android")
    await hear(bench, *USERS[:9], "nobody")
    await store_of(bench).opt_outs.put(APP, UserId("u05"), bench.now)
    made = await made_for(bench, {"topic": "news"})
    assert await walked(bench, made, most=4, piece=2) == 9
    assert (await record(bench, made)).left_out == 1
    first = await leased(bench, 5)
    assert users_of(first) == ["nobody", "u00", "u01", "u02", "u03"]
    assert [len(item.devices or ()) for item in first.items if item.notification.user_id == "u03"] == [2]
    await bench.settle(first, *(taken(item, bench.now) for item in first.items))
    await sent_to_all(bench, made)
    counts = (await record(bench, made)).counts
    assert counts[NO_TARGETS] == 1
    assert sum(counts.values()) == 9


async def test_who_leaves_before_their_turn_is_not_told_and_who_comes_behind_the_walk_is_not_either(
    bench: Bench,
) -> None:
    await registered(bench, *USERS)
    await hear(bench, "u01", "u03", "u05", "u07")
    muted = {"attribute": {"name": "muted", "is": True}}
    made = await made_for(bench, {"and": [{"topic": "news"}, {"not": muted}]})
    assert await walked(bench, made) == 4
    store = store_of(bench)
    await store.topics.change(APP, "news", [UserId("u09")], [UserId("u03")], bench.now)
    await store.profiles.put(APP, UserId("u05"), Profile(attributes={"muted": True}), bench.now)
    assert users_of(await leased(bench)) == ["u01", "u07"]


async def test_a_job_keeps_its_filter_and_counts_days_back_from_when_it_was_made(bench: Bench) -> None:
    await registered(bench, "ann", "bob")
    store = store_of(bench)
    event = TrackedEvent(APP, UserId("ann"), "opened", later(bench.now, -7 * DAY_MS))
    await store.user_events.track([event])
    lapsed = {"not": {"event": {"name": "opened", "within_days": 7}}}
    made = await made_for(bench, lapsed)
    bench.clock.advance(10_000)  # now ann has not opened anything for seven days, too
    assert (await store.segments.count(APP, filter_of(lapsed), bench.now, 9)).examples == ("ann", "bob")
    assert await walked(bench, made) == 1
    assert users_of(await leased(bench)) == ["bob"]
    found = await store.bulk_views.recipient(APP, made.id, UserId("bob"))
    assert found is not None and found.notification_id is not None
    assert await store.bulk_views.recipient(APP, made.id, UserId("ann")) is None


async def test_a_walk_passes_pages_in_which_nobody_is_chosen(bench: Bench) -> None:
    store = store_of(bench)
    changes = [ProfileChange(named=frozenset(), attributes={"last": n == 999}) for n in range(1_000)]
    users = [(UserId(f"u{n:04}"), change) for n, change in enumerate(changes)]
    assert await store.profiles.change_many(APP, users, bench.now) == []
    made = await made_for(bench, {"attribute": {"name": "last", "is": True}})
    assert await walked(bench, made, most=1) == 1
    assert users_of(await leased(bench)) == ["u0999"]


FILTERS = [
    {"topic": "news"},
    {"event": {"name": "opened", "within_days": 7}},
    {"event": {"name": "opened", "at_least": 2}},
    {"device": {"platforms": ["ios"], "seen_within_days": 30}},
    {"attribute": {"name": "plan", "is": "premium"}},
    {"and": [{"locale": ["de"]}, {"not": {"event": {"name": "opened", "within_days": 7}}}, {"topic": "news"}]},
    {"or": [{"topic": "news"}, {"time_zone": ["Europe/Zurich"]}, {"device": {}}]},
    {"not": {"or": [{"topic": "news"}, {"event": {"name": "opened", "within_days": 90}}, {"device": {}}]}},
]
MOST_READ = 600
"""Rows of one table for a page of 50 users, each with five events; all of a table are 4,000 or more."""
TABLES = ("user_profile", "device", "topic_member", "user_event", "segment", "topic")


async def test_no_page_and_no_piece_reads_a_table_from_end_to_end(bench: Bench) -> None:
    """Each table is reached by a key, from where the walk stands on: what the plan of each engine says."""
    store = store_of(bench)
    await _fill(store, bench.now)

    def plans(connection: Connection) -> list[str]:
        found: list[str] = []
        asked = Asked(APP, bench.now, connection.dialect)
        for said in FILTERS:
            for sql, bound in (
                matching_page(filter_of(said), asked, "u00100", 50),
                matching_range(filter_of(said), asked, "u00100", "u00150"),
            ):
                found += [f"{said}: {line}" for line in _whole_reads(connection, sql, bound)]
        return found

    assert await store.database.read(plans) == []


def _whole_reads(connection: Connection, sql: str, bound: Any) -> list[str]:
    """The lines of a statement's plan that read a table of ours, and not by a key in it."""
    if not connection.dialect.has_jsonb:
        lines = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()]
        aliases = (*TABLES, "profile", "held", "heard", "had")
        return [line for line in lines if re.match(rf"SCAN ({'|'.join(aliases)})\b", line)]
    ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", bound).fetchall()
    return [line for line, rows in _rows_read(plan[0]["Plan"]) if rows > MOST_READ]


def _rows_read(node: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """How many rows each scan of a plan looked at, in all of its loops."""
    if node.get("Relation Name") in TABLES:
        looked_at = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        yield (
            f"{node['Node Type']} on {node['Relation Name']}: {looked_at * node['Actual Loops']}",
            int(looked_at * node["Actual Loops"]),
        )
    for inner in node.get("Plans", ()):
        yield from _rows_read(inner)


async def _fill(store: Store, now: Instant) -> None:
    """Enough rows that a plan matters, and what the server knows of them."""
    chance = random.Random(1)
    users = [UserId(f"u{n:05}") for n in range(4_000)]
    await store.topics.put(APP, "news", "", is_open=False, at=now)
    await store.topics.change(APP, "news", users[::3], [], now)
    events = [
        TrackedEvent(APP, user, "opened", later(now, -day * DAY_MS)) for user in users[::2] for day in range(0, 30, 7)
    ]
    await store.user_events.track(events)

    def write(connection: Connection) -> None:
        profiles = (
            "INSERT INTO user_profile (app, user_id, locale, time_zone, attributes, changed_at)"
            " VALUES (?, ?, ?, ?, ?, ?)"
        )
        plans = ('{"plan": "premium"}', '{"plan": "free"}')
        rows = [(APP, user, "de", "Europe/Zurich", chance.choice(plans), now) for user in users]
        connection.executemany(profiles, rows)
        devices = (
            "INSERT INTO device (app, user_id, device_id, platform, token, token_hash, registered_at, last_seen_at,"
            " token_updated_at, active, token_use) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        held = [(APP, user, "d", "ios", user, user.encode(), now, now, now, 1, "alert") for user in users]
        connection.executemany(devices, held)
        connection.execute("ANALYZE")

    def fill(transaction: Transaction, ops: Sequence[None]) -> list[None]:
        write(transaction.connection)
        return [None] * len(ops)

    await store.database.commits.submit(OperationKind("fill", fill, durable=True), None)

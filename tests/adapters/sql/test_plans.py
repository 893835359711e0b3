"""The reads of the hot path stay on their indexes, whatever a table holds."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.amending import withdraw
from tests.contract.bench import notification
from tests.empty_store import put_empty
from tests.shows import shows
from waypost.domain.amendment import TooLate
from waypost.domain.ids import SHARDS
from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.work import NewNotification
from waypost.stores.sql import (
    amend,
    audit,
    backlog,
    balance,
    bulk_views,
    devices,
    due_pages,
    erasures,
    lease,
    pages,
    pending_changes,
    promote,
    reading,
    views,
    work,
)
from waypost.stores.sql.connection import SqliteConnection, connect
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.units import Leasing

HOT = {
    "fresh rows": lease.READ,
    "scheduled": promote._WHOLE,
    "due receipts": promote._DUE,
    "scheduled of an app": promote._WHOLE_OF_APP,
    "due receipts of an app": promote._DUE_OF_APP,
    "lifted receipts": promote._LIFTED,
    "notifications": promote._NOTIFICATIONS,
    "older ones of a collapse key": amend._OLDER,
    "receipts": promote._RECEIPTS,
    "what is settled": pending_changes._FIND,
}

LISTS = {
    "history of an app": views._OF_APP,
    "history of a user": views._OF_USER,
    "page of a user": pages._SEEN,
    "dead letters": views._DEAD,
    "duplicates": views._DUPLICATES_OF,
    "receipts of one": views._RECEIPTS_OF,
    "statuses": views._STATUSES,
    "get": reading._RECORDS,
    "marks": pages._MARKS,
    "jobs of an app": bulk_views._OF_APP,
    "recipient of a job": bulk_views._OF_USER,
    "what is left to erase": erasures._UNFINISHED,
    "what of a user is final": erasures._FINAL,
    "what of a user is to be deleted": erasures._ALL_OF,
    "audit of an app": audit.PAGES[False, False],
    "users with a mailbox": devices._WITH_CONTACT,
}
"""What the API lists and counts: each reads what it answers, of the app that asks, and nothing of the others."""

OF_ONE_APP = {
    "history of an app",
    "dead letters",
    "jobs of an app",
    "audit of an app",
}
OF_ONE_USER = {
    "history of a user",
    "page of a user",
    "recipient of a job",
    "what is left to erase",
    "what of a user is final",
    "what of a user is to be deleted",
}
"""The statements that walk the slices of the history, in their order."""


@shows("S1-61", "S3-69")
@pytest.mark.parametrize("shards", [frozenset(range(SHARDS)), frozenset({3, 5}), frozenset[int]()])
@pytest.mark.parametrize("name", HOT)
def test_a_hot_read_searches_an_index_and_never_sorts(name: str, shards: frozenset[int], tmp_path: Path) -> None:
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    sql = HOT[name].format(shards=lease.in_shards(shards), keys="?, ?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")).fetchall()
    connection.close()
    steps = [row[3] for row in rows]
    assert all(step.startswith("SEARCH") for step in steps), steps


@shows("S3-38", "S3-69")
@pytest.mark.parametrize("name", LISTS)
def test_a_list_searches_an_index_by_its_app_and_never_sorts(name: str, tmp_path: Path) -> None:
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    sql = LISTS[name].format(keys="?, ?") if "{keys}" in LISTS[name] else LISTS[name]
    bound = (1,) * (max(map(int, re.findall(r"\?(\d)", sql))) if "?1" in sql else sql.count("?"))
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()]
    connection.close()
    assert all(step.startswith("SEARCH") for step in steps), steps
    assert name not in OF_ONE_APP or "(app=?" in steps[0], steps
    if name in OF_ONE_USER:
        assert steps[0].startswith("SEARCH history_slice USING PRIMARY KEY"), steps
        assert "INDEX notification_history (slice=? AND app=? AND user_id=? AND id" in steps[1], steps
    assert name != "users with a mailbox" or "device_contact (app=? AND token=?)" in steps[0], steps


def test_the_first_pages_of_what_is_due_are_searches_of_the_indexes_of_lanes(tmp_path: Path) -> None:
    """One for each lane and table, in the order of the index; a lane that is another process's is not looked at."""
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    sql = due_pages._statement(Leasing(frozenset({3, 5})))
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1, 1, 1)).fetchall()]
    connection.close()
    searches = [step for step in steps if step.startswith("SEARCH")]
    assert len(searches) == 2 * (len(Lane) - 1), steps
    assert all("_due (lane=? AND due_at>? AND due_at<?)" in step for step in searches), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("table", [0, 1])
def test_the_apps_with_something_due_are_found_by_steps_down_an_index(table: int, tmp_path: Path) -> None:
    """Two of the counters' to find them, and one to see whether anything of it is due, by all that it asks for."""
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    sql = f"EXPLAIN QUERY PLAN {promote._APPS_DUE[table]}"
    steps = [row[3] for row in connection.execute(sql, (1,) * 3).fetchall()]
    connection.close()
    index = ("notification_due_of_app", "receipt_due_of_app")[table]
    searches = [step for step in steps if f"USING COVERING INDEX {index}" in step]
    assert [step.startswith("SEARCH") for step in searches] == [True], steps
    assert sum(step.startswith("SEARCH counter USING PRIMARY KEY") for step in steps) == 2, steps
    assert any("lane=? AND app=? AND due_at" in step for step in searches), steps
    assert not any(step.startswith("SCAN") and "found" not in step for step in steps), steps


def test_the_apps_with_fresh_rows_are_found_by_one_step_down_the_index_for_each(tmp_path: Path) -> None:
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {lease._APPS}", (1,)).fetchall()]
    connection.close()
    step = "SEARCH notification USING COVERING INDEX notification_fresh (lane=? AND app>?)"
    assert [each for each in steps if "notification" in each] == [step] * 2, steps


def test_the_conditions_in_use_are_found_by_one_step_down_the_index_for_each(tmp_path: Path) -> None:
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {promote._CONDITIONS}").fetchall()]
    connection.close()
    assert not any(step.startswith("SCAN receipt") for step in steps), steps
    assert sum(step.startswith("SEARCH receipt USING COVERING INDEX receipt_parked") for step in steps) == 2, steps


def test_what_is_scheduled_is_counted_in_an_index_alone(tmp_path: Path) -> None:
    """However much it is, no row of the table is read."""
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {backlog._SCHEDULED}", ("normal", 1)).fetchall()]
    connection.close()
    assert steps[0].startswith("SEARCH notification USING COVERING INDEX notification_due_of_app"), steps


def test_an_outline_reads_the_counters_of_its_app_and_of_what_is_open_no_more_than_it_counts(tmp_path: Path) -> None:
    put_empty(tmp_path / "a.db")
    connection = connect(tmp_path / "a.db")
    found = [
        step
        for sql in (balance._COUNTED_OF, balance._SCHEDULED_OF)
        for _, _, _, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")).fetchall()
    ]
    connection.close()
    by_key = "SEARCH counter USING PRIMARY KEY (app=?)"
    by_index = "SEARCH notification USING COVERING INDEX notification_due_of_app (lane=? AND app=? AND due_at>?)"
    assert [step for step in found if step.startswith("SEARCH")] == [by_key, by_index]


@pytest.mark.asyncio
async def test_what_is_read_on_the_event_loop_searches_an_index(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leases, releases, withdraws and counts reads no table whole there, however long a lane is."""
    monkeypatch.setattr(work, "_DEPTH_COUNTED", 1)
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = notification(now)
    await store.work.accept([NewNotification(made), NewNotification(notification(now, scheduled_at=later(now, 1)))])
    assert isinstance(store.database.loop_reader, SqliteConnection)
    on_loop: set[str] = set()
    store.database.loop_reader.set_trace_callback(on_loop.add)
    for lane in Lane:
        await store.work.promote_due(later(now, MINUTE_MS), 100, {"breaker:demo/apns": 1})
        await store.work.lease(lane, 100, later(now, MINUTE_MS))
        assert await store.work.depth(lane) == (2 if lane is made.lane else 0)
    assert await withdraw(store.work, made.app, [made.id], "cancelled", now) == [TooLate(0)]
    store.database.loop_reader.set_trace_callback(None)
    plans = {sql: await store.database.read(partial(_steps, sql)) for sql in on_loop}
    whole = {sql: steps for sql, steps in plans.items() if any(step.startswith("SCAN") for step in steps)}
    assert whole == {}
    assert len(plans) > 10


def _steps(sql: str, connection: Connection) -> list[str]:
    """The plan of a statement, less what reads only what was found before it, or an index of what is open."""
    short = ("SCAN CONSTANT ROW", "SCAN fresh", "SCAN found", "SCAN page", "SCAN bulk_job USING INDEX bulk_job_open")
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]
    return [step for step in steps if step not in short]

"""The reads of the hot path stay on their indexes, whatever a table holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.sql.conftest import settings_of
from waypost.adapters.sql import audit, bulk_views, cases, lease, pages, reading, release, views
from waypost.adapters.sql.connection import connect
from waypost.adapters.sql.database import prepare
from waypost.domain.ids import SHARDS
from waypost.domain.time import Instant

HOT = {
    "fresh rows": lease.READ,
    "apps with fresh rows": lease._NEXT_APP,
    "scheduled": release._WHOLE,
    "due receipts": release._DUE,
    "lifted receipts": release._LIFTED,
    "notifications": release._NOTIFICATIONS,
    "receipts": release._RECEIPTS,
    "what is settled": cases._FIND,
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
    "audit of an app": audit._PAGE,
}
"""What the API lists and counts: each reads what it answers, of the app that asks, and nothing of the others."""

OF_ONE_APP = {
    "history of an app",
    "history of a user",
    "page of a user",
    "dead letters",
    "jobs of an app",
    "audit of an app",
}


@pytest.mark.parametrize("shards", [frozenset(range(SHARDS)), frozenset({3, 5}), frozenset[int]()])
@pytest.mark.parametrize("name", HOT)
def test_a_hot_read_searches_an_index_and_never_sorts(name: str, shards: frozenset[int], tmp_path: Path) -> None:
    prepare(settings_of(tmp_path / "a.db"), Instant(0))
    connection = connect(tmp_path / "a.db")
    sql = HOT[name].format(shards=lease.in_shards(shards), keys="?, ?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")).fetchall()
    connection.close()
    steps = [row[3] for row in rows]
    assert all(step.startswith("SEARCH") for step in steps), steps


@pytest.mark.parametrize("name", LISTS)
def test_a_list_searches_an_index_by_its_app_and_never_sorts(name: str, tmp_path: Path) -> None:
    prepare(settings_of(tmp_path / "a.db"), Instant(0))
    connection = connect(tmp_path / "a.db")
    sql = LISTS[name].format(keys="?, ?") if "{keys}" in LISTS[name] else LISTS[name]
    bound = (1,) * (5 if "?5" in sql else sql.count("?"))
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()]
    connection.close()
    assert all(step.startswith("SEARCH") for step in steps), steps
    assert name not in OF_ONE_APP or "(app=?" in steps[0], steps


def test_the_conditions_in_use_are_found_by_one_step_down_the_index_for_each(tmp_path: Path) -> None:
    prepare(settings_of(tmp_path / "a.db"), Instant(0))
    connection = connect(tmp_path / "a.db")
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {release._CONDITIONS}").fetchall()]
    connection.close()
    assert not any(step.startswith("SCAN receipt") for step in steps), steps
    assert sum(step.startswith("SEARCH receipt USING COVERING INDEX receipt_parked") for step in steps) == 2, steps

"""The reads of the hot path stay on their indexes, whatever a table holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.sql.conftest import settings_of
from waypost.adapters.sql import cases, lease, release
from waypost.adapters.sql.connection import connect
from waypost.adapters.sql.database import prepare
from waypost.domain.ids import SHARDS
from waypost.domain.time import Instant

HOT = {
    "fresh rows": lease._READ,
    "apps with fresh rows": lease._NEXT_APP,
    "scheduled": release._WHOLE,
    "due receipts": release._DUE,
    "lifted receipts": release._LIFTED,
    "notifications": release._NOTIFICATIONS,
    "receipts": release._RECEIPTS,
    "what is settled": cases._FIND,
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

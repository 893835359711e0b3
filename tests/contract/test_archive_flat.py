"""S3-79: what a list costs does not grow with the archive. Counted, not timed.

SQLite tells the instructions of its machine that a statement takes, PostgreSQL the rows that each step of a plan reads.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.contract.archiving import ArchiveBench, day
from tests.contract.bench import APP, Bench
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.ids import first_id_at, next_ids
from waypost.domain.time import DAY_MS, Instant
from waypost.ports.archive import ArchiveFile
from waypost.stores.sql import archive as manifest
from waypost.stores.sql import views
from waypost.stores.sql.archive import NewFile, Placing, hashes_of
from waypost.stores.sql.connection import SqliteConnection
from waypost.stores.sql.driver import Connection

pytestmark = pytest.mark.asyncio
LAST = b"\xff" * 16
BY_INDEX = """\
SELECT set_config(way, 'off', false) FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_sort']) AS way
"""
"""Has PostgreSQL read along an index, as it does where there is much to read.

In a table of three rows it may read all instead, one that other tests have filled and emptied by a bitmap of all that
was ever in it; and which it does changes when it has looked at the table again.
"""


def rows_of(plan: dict[str, Any]) -> float:
    """What each step of a plan of PostgreSQL read, those that it threw away too."""
    read: float = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return read + sum(rows_of(each) for each in plan.get("Plans", ()))


def cost(sql: str, bound: tuple[Any, ...], connection: Connection) -> float:
    """What a statement does, whatever the machine has to do beside it."""
    if not isinstance(connection, SqliteConnection):
        connection.execute(BY_INDEX)
        ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", bound).fetchall()
        return rows_of(plan[0]["Plan"])
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.execute(sql, bound).fetchall()  # the first time it is compiled
    connection.set_progress_handler(count, 1)
    connection.execute(sql, bound).fetchall()
    connection.set_progress_handler(None, 1)
    return steps


async def costs(archive: ArchiveBench) -> dict[str, float]:
    """What lists and a look-up do, in the store and in the manifest."""
    asked: dict[str, tuple[str, tuple[Any, ...]]] = {
        "history of an app": (views._OF_APP, (APP, LAST, 50)),
        "history of a user": (views._OF_USER, (APP, "ann", LAST, 50)),
        "the file of an id": (manifest._AT_OR_BELOW, (APP, first_id_at(Instant(DAY_MS * 9_000)))),
        "files for a page": (manifest._NEWEST, (APP, LAST, 20)),
        "users of these files": (manifest._NEWEST_USERS, (APP, LAST, 20)),
        "what is to be archived": (manifest._OLDEST, (b"", LAST, 0, 1)),
    }
    found: dict[str, float] = {}
    for name, (sql, bound) in asked.items():
        found[name] = await archive.store.database.read(partial(cost, sql, bound))
    return found


async def grow(archive: ArchiveBench, days: range) -> None:
    """Put days into the manifest, of files that nobody opens here."""
    for number in days:
        at = Instant(number * DAY_MS)
        (one,), _ = next_ids(at, 1, bytes(10), 0)
        path = f"demo/{number}.parquet"
        file = ArchiveFile(APP, one, one, path, 1, 1, b"", 1, at)
        await archive.store.archive.begin(APP, [path])
        new = NewFile(file, hashes_of(["ann"]))  # type: ignore[list-item]  # a user
        assert await archive.store.archive.place(Placing((new,), None, {}, drops=False))


@shows("S3-79")
async def test_what_a_list_costs_is_the_same_while_the_archive_grows(
    ledger_store: SqlUnderTest, tmp_path: Path
) -> None:
    """What was archived is in no list of the store and in no index of it."""
    archive = ArchiveBench(Bench(ledger_store, (await ledger_store.open_workers(1))[0]), tmp_path / "archive")
    await grow(archive, range(9_000, 9_030))
    young = [await archive.finished("ann") for _ in range(3)]
    day(archive.bench, 1)
    before = await costs(archive)
    await grow(archive, range(9_030, 9_330))
    assert await costs(archive) == before
    day(archive.bench, 100)
    assert await archive.moved() == 3
    for _ in young:
        await archive.finished("ann")
    day(archive.bench, 1)
    assert await costs(archive) == before

"""The registry on a real file: several processes' writers at once, and reads that stay on their indexes."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore
from tests.empty_store import put_empty
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import Instant
from waypost.stores.sql import devices, pages, reading, views
from waypost.stores.sql.connection import connect

APP = AppId("demo")

READS = {
    "devices of users": devices._FOR_USERS,
    "holder of a token": devices._TAKE_OVER,
    "dead token": devices._EVICT,
    "page of devices": devices._SCAN,
    "record": reading._RECORDS.format(keys="?"),
    "receipts": views._RECEIPTS_OF,
    "duplicates": views._DUPLICATES_OF,
    "history of an app": views._OF_APP,
    "marks": pages._MARKS.format(keys="?"),
    "dead letters": views._DEAD,
}


@pytest.mark.asyncio
async def test_a_hundred_registrations_through_two_writers_leave_one_row(open_at: OpenStore, tmp_path: Path) -> None:
    """Both for one device and for one token; each writer has a connection of its own, as in two processes."""
    stores = [await open_at(tmp_path / "waypost.db") for _ in range(2)]
    same_device = [Registration(APP, UserId("ann"), DeviceId("d"), Platform("ios"), f"t{n}") for n in range(50)]
    same_token = [Registration(APP, UserId(f"u{n}"), DeviceId("d"), Platform("ios"), "t") for n in range(50)]
    calls = enumerate([*same_device, *same_token], start=1)
    await asyncio.gather(*(stores[n % 2].devices.upsert(call, Instant(n), 10) for n, call in calls))
    everybody = [UserId("ann"), *(UserId(f"u{n}") for n in range(50))]
    of_ann, *of_others = await stores[0].devices.for_users([(APP, user) for user in everybody])
    assert [device.device_id for device in of_ann] == ["d"]
    assert sum(map(len, of_others)) == 1


@pytest.mark.parametrize("name", READS)
def test_a_read_searches_an_index_and_never_sorts(name: str, tmp_path: Path) -> None:
    put_empty(tmp_path / "waypost.db")
    connection = connect(tmp_path / "waypost.db")
    sql = READS[name].replace("{devices_of_users}", connection.dialect.devices_of_users)
    arguments = ("[]",) if name == "devices of users" else (1,) * sql.count("?")
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", arguments).fetchall()]
    connection.close()
    assert all(step.startswith(("SEARCH", "SCAN json_each VIRTUAL TABLE")) for step in steps), steps


@pytest.mark.asyncio
async def test_a_search_that_takes_long_does_not_hold_up_a_delivery(tmp_path: Path, open_at: OpenStore) -> None:
    """Every thread for searches is busy: the devices of a user are read all the same."""
    store = await open_at(tmp_path / "waypost.db")
    release = threading.Event()
    searches = [asyncio.ensure_future(store.database.read(lambda _: release.wait(60))) for _ in range(4)]
    try:
        async with asyncio.timeout(60):
            assert await store.devices.for_users([(AppId("demo"), UserId("ann"))]) == [[]]
    finally:
        release.set()
        await asyncio.gather(*searches)

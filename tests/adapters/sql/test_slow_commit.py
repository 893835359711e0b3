"""A disk that does not end a commit: callers are answered in time all the same, and a repeat finds out what became."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.adapters.rest.service import Service, shown
from tests.adapters.sql.conftest import OpenStore
from waypost.entrypoints.rest.app import build_app
from waypost.stores.sql.sqlite import SqliteWriter
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio


class SlowDisk:
    """A store whose next commit stands still until it is told to end."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.end = threading.Event()
        self._began = threading.Event()
        commit = SqliteWriter.commit

        def stand_still(writer: SqliteWriter) -> None:
            self._began.set()
            self.end.wait()
            commit(writer)

        monkeypatch.setattr(SqliteWriter, "commit", stand_still)

    async def is_committing(self) -> None:
        """Wait until something is under way."""
        await asyncio.to_thread(self._began.wait)

    async def service(self) -> Service:
        """The API in front of it, which refuses nobody beforehand."""
        service = Service()
        await service.add_keys()
        intake = msgspec.structs.replace(service.api.intake, work=self.store.work)
        service.app = build_app(msgspec.structs.replace(service.api, intake=intake))
        return service


@pytest_asyncio.fixture
async def disk(open_at: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowDisk]:
    """It goes on after the test at the latest."""
    disk = SlowDisk(await open_at(tmp_path / "a.db", lock_timeout_s=0.5), monkeypatch)
    try:
        yield disk
    finally:
        disk.end.set()


async def test_callers_are_answered_while_a_commit_stands_still(disk: SlowDisk) -> None:
    """What is under way is in doubt, and the repeat of its key is told its id; what has not begun never is."""
    service = await disk.service()
    commits = disk.store.database.commits
    async with service.client() as client, asyncio.timeout(60):
        said = shown("first", idempotency_key="order-1")
        first = asyncio.create_task(client.post("/v1/notifications", json=said))
        await disk.is_committing()
        second = await client.post("/v1/notifications", json=shown("second", idempotency_key="order-2"))
        assert (second.status_code, second.json()["code"]) == (503, "storage_busy")
        assert ((await first).status_code, (await first).json()["code"]) == (503, "storage_away")
        assert all(answer.headers["retry-after"] == "1" for answer in (await first, second))
        assert commits.pressure().share >= 1, "whoever comes now is refused at the door"
        assert commits.held == 0
        disk.end.set()
        while (again := await client.post("/v1/notifications", json=said)).status_code == 503:
            pass  # the disk itself may be slow, and hold up that commit, too
        assert (again.status_code, again.json()["deduplicated"]) == (200, True)
        stored = await disk.store.database.read(
            lambda connection: connection.execute("SELECT user_id FROM notification").fetchall()
        )
        assert [tuple(row) for row in stored] == [("first",)]
        assert commits.pressure().share < 1

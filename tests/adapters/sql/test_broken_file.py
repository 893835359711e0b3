"""A file that cannot be trusted is refused, loudly, and never written to."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from tests.adapters.sql.conftest import OpenStore, settings_of
from tests.contract.bench import notification
from waypost.domain.errors import StorageBroken
from waypost.domain.time import Instant
from waypost.ports.work import Accepted, NewNotification
from waypost.stores.sql.connection import connect
from waypost.stores.sql.database import prepare
from waypost.stores.sql.migrate import sqlite_engine
from waypost.stores.sql.migrations import NOTED_IN, latest
from waypost.stores.sql.schema import metadata
from waypost.stores.sql.state import StoreState

pytestmark = pytest.mark.asyncio

NOW = Instant(1_800_000_000_000)


async def test_a_file_that_is_no_database_is_not_opened(open_at: OpenStore, tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"this is not a database. " * 1000)
    before = file.read_bytes()
    with pytest.raises(StorageBroken):
        await open_at(file)
    assert file.read_bytes() == before


async def test_a_newer_database_is_refused_naming_both_revisions(open_at: OpenStore, tmp_path: Path) -> None:
    newer = f"{int(latest()) + 2:04}"
    await _migrated(open_at, tmp_path / "a.db", newer)
    with pytest.raises(StorageBroken, match=rf"{newer}.*{latest()}"):
        await open_at(tmp_path / "a.db")


async def test_one_migration_more_than_this_version_has_is_lived_with(open_at: OpenStore, tmp_path: Path) -> None:
    """Amid an upgrade a worker of the version before dies and is started again."""
    newer = f"{int(latest()) + 1:04}"
    await _migrated(open_at, tmp_path / "a.db", newer)
    store = await open_at(tmp_path / "a.db")
    (answer,) = await store.work.accept([NewNotification(notification(NOW))])
    assert isinstance(answer, Accepted)
    await store.close()
    assert _revision(tmp_path / "a.db") == newer


async def _migrated(open_at: OpenStore, file: Path, revision: str) -> None:
    await (await open_at(file)).close()
    connection = connect(file)
    connection.execute(f"UPDATE {NOTED_IN} SET version_num = ?", (revision,))  # noqa: S608 - ours
    connection.close()


def _revision(file: Path) -> str:
    connection = connect(file, read_only=True)
    ((revision,),) = connection.execute(f"SELECT version_num FROM {NOTED_IN}").fetchall()  # noqa: S608 - ours
    connection.close()
    return str(revision)


async def test_damage_found_while_running_refuses_everything(open_at: OpenStore, tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    await (await open_at(file)).close()
    kept = file.stat().st_size  # the schema, empty
    store = await open_at(file)
    await store.work.accept([NewNotification(notification(NOW, user=f"u{n}")) for n in range(1500)])
    await store.close()
    raw = file.read_bytes()
    assert len(raw) > 2 * kept
    file.write_bytes(raw[:kept] + b"\xff" * (len(raw) - kept))
    damaged = await open_at(file)
    with pytest.raises(StorageBroken):
        await damaged.work.accept([NewNotification(notification(NOW))])
    assert damaged.database.state is StoreState.BROKEN
    with pytest.raises(StorageBroken):
        await damaged.work.accept([NewNotification(notification(NOW))])


async def test_the_revisions_make_the_schema(tmp_path: Path) -> None:
    prepare(settings_of(tmp_path / "a.db"), NOW)
    with sqlite_engine(tmp_path / "a.db").connect() as connection:
        assert (
            compare_metadata(MigrationContext.configure(connection, opts={"version_table": NOTED_IN}), metadata) == []
        )


async def test_opening_twice_migrates_once(open_at: OpenStore, tmp_path: Path) -> None:
    prepare(settings_of(tmp_path / "a.db"), NOW)
    store = await open_at(tmp_path / "a.db")
    await store.work.accept([NewNotification(notification(NOW))])
    second = await open_at(tmp_path / "a.db")
    assert sum((await second.views.balance()).values()) == 1

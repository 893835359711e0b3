"""A move into a real PostgreSQL: all or nothing, with every row, and what comes after it behind what was there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from msgspec.structs import replace

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.adapters.sql.test_copies import accept, said
from tests.contract.kills import known
from tests.engines import run_sql
from waypost.bootstrap import moving
from waypost.bootstrap.features import tables
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.domain.device import Platform, Registration
from waypost.domain.errors import ConfigurationError, StorageBroken, Unavailable, WaypostError
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.pipeline.report import READER
from waypost.ports.audit import Act, Ordered
from waypost.ports.feed import PLACES_A_ROW, FeedQuery, NewEntry
from waypost.stores.sql.connection import connect
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.store import Store, open_store
from waypost.telemetry.sink import Silent

APP = AppId("demo")
END_THE_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid != pg_backend_pid()"
)


def nothing_said(_table: str, _sent: int, _total: int) -> None:
    """Take no interest."""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """An app on a file."""
    path = tmp_path / "waypost.yaml"
    path.write_text(yaml.safe_dump({"store": "sqlite:///waypost.db", "apps": {"demo": {}}}))
    return load(path, {})


async def filled(open_at: OpenStore, tmp_path: Path) -> None:
    """Three notifications, with a key, a device, an order on record and a reader that read the first row."""
    await (await there(f"sqlite:///{tmp_path / 'waypost.db'}", tmp_path)).close()  # makes the tables of features
    store = await open_at(tmp_path / "waypost.db")
    shown = known(1)
    await accept(store, replace(shown, content=replace(shown.content, tags=("news",))))
    first = await store.journal.read(0, 10)
    await store.journal.advance(READER, first[-1].position)
    await accept(store, known(2), known(3))
    phone = Registration(APP, UserId("u1"), DeviceId("phone"), Platform("android"), "token")
    await store.devices.upsert(phone, WallClock().now(), 10)
    await store.audit.record([Ordered(WallClock().now(), APP, "cli:me", "here", Act.KEY_MADE, "wp_aaaaaaaa")])
    await store.feed.add(
        [NewEntry(APP, shown.user_id, shown.id, 0, first[-1].position * PLACES_A_ROW, WallClock().now())]
    )
    await store.close()


async def there(url: str, run_dir: Path) -> Store:
    """A store as a worker opens it."""
    settings = SqlSettings(url, run_dir=str(run_dir))
    return await open_store(settings, clock=WallClock(), peers=None, telemetry=Silent(), tables=tables())


def rows_of(read: Callable[[str], list[Any]], table: str, columns: str) -> set[tuple[Any, ...]]:
    """Some columns of all rows."""
    return {
        tuple(bytes(each) if isinstance(each, bytes | bytearray) else each for each in row)
        for row in read(f"SELECT {columns} FROM {table}")  # noqa: S608 - names of this file
    }


@pytest.mark.asyncio
async def test_every_row_is_there_and_new_ones_come_behind(
    config: Config, tmp_path: Path, open_at: OpenStore, postgres_url: str
) -> None:
    await filled(open_at, tmp_path)
    with contextlib.closing(connect(tmp_path / "waypost.db")) as here:
        here.execute("UPDATE journal SET position = position + 1000000000000")  # far above a server's transactions
        here.execute("UPDATE reader SET position = position + 1000000000000")
        here.execute("UPDATE feed_entry SET place = place + 1000000000000000000")
        here.execute("UPDATE feed_tag SET place = place + 1000000000000000000")
        unread = here.execute("SELECT moves FROM journal ORDER BY position").fetchall()[1:]
    moved = moving.move_to(config, postgres_url, nothing_said)
    assert (moved.rows["notification"], moved.rows["device"], moved.rows["audit"]) == (3, 1, 1)
    with (
        contextlib.closing(connect(tmp_path / "waypost.db")) as here,
        psycopg.connect(postgres_url, autocommit=True) as server,
    ):
        for table, columns in {
            "notification": "seq, id, user_id, shard, status, due_at",
            "content": "seq, body",
            "device": "user_id, device_id, token, token_hash, active",
            "api_key": "prefix, secret_hash",
            "audit": "seq, act, subject",
        }.items():
            ours = rows_of(lambda said: here.execute(said).fetchall(), table, columns)
            assert ours == rows_of(lambda said: server.execute(said.encode()).fetchall(), table, columns)
    store = await there(postgres_url, tmp_path / "run")
    try:
        rows = await store.journal.read(await store.journal.position(READER), 10)
        (entry,) = (await store.feed.page(FeedQuery(APP, known(1).user_id, tag="news"))).entries
        assert entry.place <= 0
        read = await store.database.read(lambda each: each.execute("SELECT position, moves FROM journal").fetchall())
        assert [moves for position, moves in sorted(read) if position in {row.position for row in rows}] == [
            bytes(moves) for (moves,) in unread
        ]
        await store.journal.advance(READER, rows[-1].position)
        await store.shards.acquire()
        await accept(store, known(4))
        assert len(await store.journal.read(await store.journal.position(READER), 10)) == 1
        assert await store.journal.drop_before(rows[-1].position + 1, 100) == 1 + len(rows)
        await store.audit.record([Ordered(WallClock().now(), APP, "cli:me", "here", Act.KEY_MADE, "wp_bbbbbbbb")])
    finally:
        await store.close()


@pytest.mark.asyncio
async def test_a_move_that_breaks_off_leaves_nothing_and_is_begun_again(
    config: Config, tmp_path: Path, open_at: OpenStore, postgres_url: str
) -> None:
    """The server ends the connection amid the rows, as a restart does."""
    await filled(open_at, tmp_path)
    seen = []

    def cut_off(table: str, _sent: int, _total: int) -> None:
        seen.append(table)
        if table == "notification":
            run_sql(postgres_url, END_THE_OTHERS)

    with pytest.raises(WaypostError):
        moving.move_to(config, postgres_url, cut_off)
    assert "device" in seen
    with psycopg.connect(postgres_url) as server:
        assert server.execute("SELECT count(*) FROM device").fetchone() == (0,)
    assert said(tmp_path / "waypost.yaml", "backup", str(tmp_path / "b.db"))["open"] == 3, "the source is as it was"
    assert moving.move_to(config, postgres_url, nothing_said).rows["notification"] == 3


@pytest.mark.asyncio
async def test_a_database_that_has_rows_or_is_served_is_left_alone(
    config: Config, tmp_path: Path, open_at: OpenStore, postgres_url: str
) -> None:
    await filled(open_at, tmp_path)
    store = await there(postgres_url, tmp_path / "run")
    await store.shards.acquire()
    with pytest.raises(ConfigurationError, match="a waypost serves that database"):
        moving.move_to(config, postgres_url, nothing_said)
    await store.keys.revoke("wp_aaaaaaaa", WallClock().now())
    await store.close()
    run_sql(postgres_url, "DELETE FROM member", "INSERT INTO opt_out VALUES ('demo', 'u', 1)")
    with pytest.raises(ConfigurationError, match="not empty: opt_out has rows"):
        moving.move_to(config, postgres_url, nothing_said)
    stood = "INSERT INTO tail VALUES ('fresh', 'after what is moved')", "INSERT INTO reader VALUES ('due', 99)"
    run_sql(postgres_url, "DELETE FROM opt_out", *stood)
    assert moving.move_to(config, postgres_url, nothing_said).rows["device"] == 1
    with psycopg.connect(postgres_url) as server:
        assert server.execute("SELECT * FROM tail").fetchall() == []
        assert server.execute("SELECT * FROM reader WHERE position > 0").fetchall() == []
    with pytest.raises(StorageBroken, match="was moved"):
        moving.move_to(config, postgres_url, nothing_said)


@pytest.mark.asyncio
async def test_what_cannot_be_moved_or_reached_is_said_in_one_line(
    config: Config, tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hush")
    await filled(open_at, tmp_path)
    for url, why in {
        "sqlite:///other.db": "nothing else does",
        "postgresql://u:hush@127.0.0.1:1/w": "holds a secret",
        "postgresql://u:${ABSENT}@127.0.0.1:1/w": "ABSENT is not set",
        "postgresql://u:${DATABASE_PASSWORD}@127.0.0.1:1/w": "port 1",
    }.items():
        with pytest.raises((ConfigurationError, Unavailable), match=why) as refused:
            moving.move_to(config, url, nothing_said)
        assert "hush" not in str(refused.value)
        assert len(str(refused.value).splitlines()) == 1

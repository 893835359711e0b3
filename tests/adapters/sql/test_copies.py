"""A backup of a store that is in use, and what may be put in the place of which."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.adapters.sql.conftest import OpenStore
from tests.adapters.sql.test_look import SECRET, configured, files_of, opened
from tests.contract.kills import known
from waypost.bootstrap import copies as bootstrap
from waypost.bootstrap.admin import migrate_store
from waypost.cli import waypost
from waypost.domain.errors import WaypostError
from waypost.domain.notification import Guarantee, Notification
from waypost.domain.time import DAY_MS, later
from waypost.ports.work import NewNotification
from waypost.runtime.instance_lock import ServeLock
from waypost.stores.sql.connection import connect, dbapi
from waypost.stores.sql.store import Store


def call(config: Path, *words: str) -> Result:
    """Run a command to its end."""
    return CliRunner().invoke(waypost, [*words, "--config", str(config)])


def said(config: Path, *words: str) -> dict[str, object]:
    """What a command answers, as JSON."""
    done = call(config, *words, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def refused(config: Path, *words: str) -> str:
    """Why a command does nothing, in one line."""
    done = call(config, *words)
    assert done.exit_code == 1, done.output
    why = str(done.exception) if isinstance(done.exception, WaypostError) else done.stderr.strip()
    assert len(why.splitlines()) == 1
    return why


async def accept(store: Store, *notifications: Notification) -> None:
    """Have them accepted."""
    await store.work.accept([NewNotification(each) for each in notifications])


def counted(file: Path) -> int:
    """The notifications in a file, read as it is."""
    with contextlib.closing(dbapi.connect(f"{file.as_uri()}?immutable=1", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM notification").fetchone()[0])


@pytest.mark.asyncio
async def test_a_backup_has_what_is_in_the_log_and_is_one_sound_file_for_its_user(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """A copy of the file held 0 of 606 notifications: the others were in the log."""
    config = configured(tmp_path, url="sqlite:///waypost.db")
    store = await open_at(tmp_path / "waypost.db", checkpoint_bytes=1 << 30)
    await accept(store, *(known(n) for n in range(1, 7)))
    shutil.copy(tmp_path / "waypost.db", tmp_path / "copied.db")
    found = said(config, "backup", str(tmp_path / "backup.db"))
    assert counted(tmp_path / "copied.db") == 0
    assert (found["open"], counted(tmp_path / "backup.db")) == (6, 6)
    assert [name for name in files_of(tmp_path) if "backup.db" in name] == [str(tmp_path / "backup.db")]
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.asyncio
async def test_a_backup_is_of_one_moment_whoever_commits_meanwhile(tmp_path: Path, open_at: OpenStore) -> None:
    """Each commit began the copy anew, and a store that is always busy would never be copied."""
    config = opened(configured(tmp_path, url="sqlite:///waypost.db"))
    store = await open_at(tmp_path / "waypost.db")
    await accept(store, known(1))
    with contextlib.closing(connect(tmp_path / "waypost.db")) as writer:
        writer.execute("INSERT INTO content (seq, body) VALUES (99, zeroblob(50000000))")
        steps = []

        def commit(done: int, _total: int) -> None:
            steps.append(done)
            writer.execute("INSERT INTO notification SELECT * FROM notification WHERE false")
            writer.execute("UPDATE content SET body = zeroblob(4) WHERE seq = 99")
            writer.execute("INSERT INTO opt_out VALUES ('demo', ?, 1)", (str(done),))

        found = bootstrap.back_up(config, tmp_path / "backup.db", commit)
    assert len(steps) > 2
    assert steps == sorted(set(steps)), "begun anew"
    with contextlib.closing(dbapi.connect(str(tmp_path / "backup.db"))) as copy:
        assert copy.execute("SELECT length(body) FROM content WHERE seq = 99").fetchone() == (50_000_000,)
        assert copy.execute("SELECT count(*) FROM opt_out").fetchone() == (0,)
    assert found.open == 1


def test_a_file_that_is_there_is_overwritten_by_force_alone(tmp_path: Path) -> None:
    config = configured(tmp_path, url="sqlite:///waypost.db")
    backup = tmp_path / "backup.db"
    assert "there is no " in refused(config, "backup", str(backup))
    migrate_store(opened(config))
    backup.write_text("mine")
    assert "--force" in refused(config, "backup", str(backup))
    assert backup.read_text() == "mine"
    assert said(config, "backup", str(backup), "--force")["open"] == 0


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.asyncio
async def test_what_was_backed_up_is_restored_and_nothing_of_the_store_it_replaces(
    tmp_path: Path, open_at: OpenStore, is_damaged: bool
) -> None:
    """The log of the old store, left by a kill, would be copied into the restored one and damage it."""
    config, database, backup = configured(tmp_path, url="sqlite:///waypost.db"), tmp_path / "waypost.db", tmp_path / "b"
    store = await open_at(database, checkpoint_bytes=1 << 30)
    await accept(store, known(1), known(2))
    said(config, "backup", str(backup))
    await accept(store, *(known(n) for n in range(3, 40)))
    left = {ending: database.with_name(database.name + ending).read_bytes() for ending in ("", "-wal")}
    await store.close()
    for ending, octets in left.items():
        database.with_name(database.name + ending).write_bytes(octets)
    if is_damaged:
        database.write_bytes(b"no database" * 1000)
    assert "is not empty: --force" in refused(config, "restore", str(backup))
    assert said(config, "restore", str(backup), "--force")["open"] == 2
    again = await open_at(database)
    rows = await again.database.read(lambda read: read.execute("PRAGMA integrity_check").fetchall())
    assert rows == [("ok",)]
    assert (await again.database.read(lambda read: read.execute("SELECT count(*) FROM notification").fetchone())) == (
        2,
    )


def test_nothing_is_restored_while_somebody_serves(tmp_path: Path) -> None:
    config = configured(tmp_path, url="sqlite:///waypost.db")
    migrate_store(opened(config))
    said(config, "backup", str(tmp_path / "backup.db"))
    with ServeLock(tmp_path / "waypost.db.run" / "serve.lock"):
        assert "another waypost serves" in refused(config, "restore", str(tmp_path / "backup.db"), "--force")
    assert said(config, "restore", str(tmp_path / "backup.db"))["open"] == 0, "an empty store needs no force"


def test_what_is_no_backup_of_this_version_is_refused_and_the_store_stays(tmp_path: Path) -> None:
    config, backup = configured(tmp_path, url="sqlite:///waypost.db"), tmp_path / "backup.db"
    migrate_store(opened(config))
    said(config, "backup", str(backup))
    whole, before = backup.read_bytes(), (tmp_path / "waypost.db").read_bytes()
    with contextlib.closing(dbapi.connect(str(backup))) as newer:
        newer.execute("UPDATE schema_revision SET version_num = '9999'")
        newer.commit()
    assert "upgrade Waypost" in refused(config, "restore", str(backup))
    backup.write_bytes(whole[:8192] + b"\xff" * 8192 + whole[16384:])
    assert str(backup) in refused(config, "restore", str(backup))
    backup.write_bytes(b"no database")
    assert "no sound database" in refused(config, "restore", str(backup))
    backup.unlink()
    with contextlib.closing(dbapi.connect(str(backup))) as other:
        other.execute("CREATE TABLE other (n)")
    assert "no database of Waypost" in refused(config, "restore", str(backup))
    backup.write_bytes(whole)
    (tmp_path / "backup.db-wal").write_bytes(b"what was committed last")
    assert "`waypost backup` makes one" in refused(config, "restore", str(backup))
    assert (tmp_path / "waypost.db").read_bytes() == before


@pytest.mark.asyncio
async def test_what_is_at_most_once_and_was_due_ends_and_is_not_sent_again(tmp_path: Path, open_at: OpenStore) -> None:
    config, backup = configured(tmp_path, url="sqlite:///waypost.db"), tmp_path / "backup.db"
    store = await open_at(tmp_path / "waypost.db")
    once = {"guarantee": Guarantee.AT_MOST_ONCE}
    now = store.views._clock.now()
    plan = {"expires_at": later(now, 2 * DAY_MS)}
    due = msgspec.structs.replace(known(1), **once, **plan)
    ahead = msgspec.structs.replace(known(2), **once, **plan, scheduled_at=later(now, DAY_MS))
    usual = msgspec.structs.replace(known(3), **plan)
    await accept(store, due, ahead, usual)
    said(config, "backup", str(backup))
    await store.close()
    assert said(config, "restore", str(backup), "--force")["expired"] == 1
    again = await open_at(tmp_path / "waypost.db")
    ask = "SELECT id FROM notification WHERE expires_at < ?"
    ended = await again.database.read(lambda read: read.execute(ask, (later(now, DAY_MS),)).fetchall())
    assert [bytes(row[0]) for row in ended] == [bytes(due.id)]


@pytest.mark.parametrize(("command", "tool"), [("backup", "pg_dump"), ("restore", "pg_restore")])
def test_postgresql_has_its_own_tools_and_they_are_named_without_the_password(
    tmp_path: Path, command: str, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", SECRET)
    file = tmp_path / "dump"
    for url in ("u:${DATABASE_PASSWORD}@h1:1,h2/base", "u@h1:1,h2/base?password=${DATABASE_PASSWORD}"):
        config = configured(tmp_path, url=f"postgresql://{url}")
        if command == "restore":
            file.touch()
        why = refused(config, command, str(file))
        assert tool in why
        assert "postgresql://u@h1:1,h2/base" in why
        assert str(file) in why
        assert SECRET not in why

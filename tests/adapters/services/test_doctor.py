"""``waypost doctor`` on stores, disks, certificates and services with real faults."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests import disk, later_migration
from tests.adapters.sql.conftest import WallClock
from tests.certificates import Authority
from tests.contract.bench import notification
from tests.journeys.harness import running
from waypost.bootstrap.admin import migrate_store
from waypost.bootstrap.registry import load
from waypost.cli.doctor import doctor
from waypost.cli.keys import make_key
from waypost.domain.time import HOUR_MS, later
from waypost.ports.work import NewNotification
from waypost.stores.sql.connection import connect
from waypost.stores.sql.store import open_store
from waypost.telemetry.sink import Silent

Said = dict[tuple[str, str], dict[str, str]]


def configured(folder: Path, store: str | None = None, **settings: Any) -> Path:
    """Write a configuration on SQLite in *folder*, or on *store*."""
    path = folder / "waypost.yaml"
    kept: Any = f"sqlite:///{folder}/w.db" if store is None else {"url": store, "run_dir": str(folder / "run")}
    plain = {"store": kept, "apps": {"demo": {}}, "workers": 1, "listen": "127.0.0.1:1"}
    path.write_text(yaml.safe_dump(plain | settings))
    return path


def examined(path: Path, *, problems: bool) -> Said:
    """What the command says, by check and subject (the last of each); it ends with 1 where there are problems."""
    done = CliRunner().invoke(doctor, ["--config", str(path), "--offline", "--json"], catch_exceptions=False)
    said = json.loads(done.stdout)
    assert done.exit_code == int(problems) == int(not said["ok"]), done.output
    wrong = [each for each in said["findings"] if each["state"] in ("warning", "problem")]
    assert all(each["do"] for each in wrong), "each says what to do"
    return {(each["check"], each["subject"]): each for each in said["findings"]}


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.engines)])
@pytest.mark.asyncio
async def test_a_store_that_is_well_and_one_whose_work_nobody_takes(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None if engine == "sqlite" else request.getfixturevalue("postgres_url")
    path = configured(tmp_path, url)
    migrate_store(load(path, {}))
    unsafe = engine == "postgres"  # the tests' server runs without fsync
    said = examined_in_a_thread(path, problems=unsafe)
    assert not unsafe or "fsync is off" in said["servers", "postgresql"]["saw"]
    assert {said["store", each]["state"] for each in ("open", "schema", "write", "soundness", "size")} == {"ok"}
    assert said["queue", "oldest"]["state"] == said["queue", "balance"]["state"] == "ok"
    assert (("clock", "database server") in said) is (engine == "postgres")
    settings, clock = load(path, {}).store, WallClock()
    store = await open_store(settings, clock=clock, peers=None, telemetry=Silent())
    try:
        await store.work.accept([NewNotification(notification(later(clock.now(), -HOUR_MS)))])
    finally:
        await store.close()
    late = examined_in_a_thread(path, problems=unsafe)["queue", "oldest"]
    assert late["state"] == "warning" and "waited for 60 minutes" in late["saw"], late


def examined_in_a_thread(path: Path, *, problems: bool) -> Said:
    """The same from a test that has an event loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(examined, path, problems=problems).result()


def test_a_store_that_no_service_has_opened_yet_is_no_fault(tmp_path: Path) -> None:
    """The first key is made before the first start: tables of features are not there then."""
    path = configured(tmp_path)
    asyncio.run(make_key(load(path, {}), "demo", "me"))
    said = examined(path, problems=False)
    assert "tables are made at the next start" in said["store", "schema"]["saw"]
    assert said["queue", "open"]["state"] == "skipped"


def test_a_full_disk_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with disk.small(folder, 8):
        path = configured(tmp_path)
        path.write_text(path.read_text().replace(f"{tmp_path}/w.db", f"{folder}/w.db"))
        migrate_store(load(path, {}))
        assert examined(path, problems=False)["store", "write"]["state"] == "ok"
        disk.fill(folder)
        said = examined(path, problems=True)
        assert said["limits", "disk"]["state"] == said["store", "write"]["state"] == "problem"
        disk.free(folder)


def test_a_certificate_that_ended_or_will_soon(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    for days, state, problems in ((-1, "problem", True), (10, "warning", False), (80, "ok", False)):
        certificate, key = authority.issue("api", days=days)
        tls = {"certificate_file": str(certificate), "key_file": str(key)}
        said = examined(configured(tmp_path, rest={"tls": tls}), problems=problems)
        assert said["credentials", "rest.tls"]["state"] == state, said


def test_an_account_that_cannot_be_read_or_ends_or_was_not_rehearsed(tmp_path: Path) -> None:
    """The end of a key is said in the configuration, and so is when its renewal was rehearsed."""
    today = dt.datetime.now(dt.UTC).date()
    _, key_file = Authority(tmp_path, "authority").issue("apple")
    key = {"key_file": str(key_file), "key_id": "ABCDE12345", "team_id": "FGHIJ67890"}
    apns = key | {"topic": "com.example.demo"}
    ended = {"apns": apns, "expires_on": {"apns": today + dt.timedelta(days=2)}}
    idle = {"apns": apns, "rehearsed_on": {"apns": today - dt.timedelta(days=400)}}
    lost = {"fcm": {"service_account_file": "nowhere.json"}}
    path = configured(tmp_path, apps={"ended": ended, "idle": idle, "lost": lost})
    said = examined(path, problems=True)
    assert said["credentials", "ended/apns"]["state"] == said["credentials", "lost/fcm"]["state"] == "problem"
    assert "ends in 1 days" in said["credentials", "ended/apns"]["saw"]
    assert "cannot read" in said["credentials", "lost/fcm"]["saw"]
    assert "400 days ago" in said["credentials", "idle/apns"]["saw"], "beside that it can be used"
    assert {each["state"] for (check, _), each in said.items() if check == "providers"} == {"skipped"}


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    said = examined(configured(tmp_path, "postgresql://u@127.0.0.1:1/none"), problems=True)
    assert said["store", "open"]["state"] == said["servers", "postgresql"]["state"] == "problem"
    assert "start the database server" in said["store", "open"]["do"]
    assert said["queue", "open"]["state"] == "skipped"


def test_a_schema_that_is_older_and_one_that_is_too_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = configured(tmp_path)
    migrate_store(load(path, {}))
    with monkeypatch.context() as patch:
        later_migration.bring(tmp_path / "later", patch)
        said = examined(path, problems=False)
        assert said["store", "schema"]["state"] == "warning" and "waypost migrate" in said["store", "schema"]["do"]
        assert said["queue", "open"]["state"] == "skipped"
    connection = connect(tmp_path / "w.db")
    connection.execute("UPDATE schema_revision SET version_num = '9999'")
    connection.close()
    said = examined(path, problems=True)
    assert "restore the backup from before the upgrade" in said["store", "open"]["do"]


def test_a_damaged_file(tmp_path: Path) -> None:
    """A page in its middle has other bytes."""
    path = configured(tmp_path)
    migrate_store(load(path, {}))
    with (tmp_path / "w.db").open("r+b") as file:
        file.seek(5 * 4_096)
        file.write(b"\xff" * 4_096)
    said = examined(path, problems=True)
    found = said.get(("store", "soundness")) or said["store", "open"]
    assert found["state"] == "problem" and "docs/backup.md" in found["do"], said


def test_a_file_whose_log_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    """As a crash of the machine leaves it: the log is there, its index is not."""
    path = configured(tmp_path)
    migrate_store(load(path, {}))
    connection = connect(tmp_path / "w.db")
    connection.execute("CREATE TABLE more (n)")
    for suffix in ("", "-wal"):
        shutil.copy(f"{tmp_path}/w.db{suffix}", f"{tmp_path}/copy.db{suffix}")
    connection.close()
    path.write_text(path.read_text().replace("w.db", "copy.db"))
    said = examined(path, problems=False)
    assert said["store", "soundness"]["state"] == "skipped"


def test_without_a_configuration_it_looks_at_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "waypost.yaml"
    path.write_text("apps: {demo: {fmc: {}}}\n")
    said = examined(path, problems=True)
    assert "fmc" in said["configuration", "file"]["saw"]
    assert said["versions", "sqlite"]["state"] == "ok"


@pytest.mark.asyncio
async def test_beside_a_service_it_says_what_that_says(tmp_path: Path) -> None:
    async with running(tmp_path, workers=1) as service:
        there = yaml.safe_load(service.config_path.read_text()) | {"listen": service.url.removeprefix("http://")}
        (tmp_path / "there.yaml").write_text(yaml.safe_dump(there))
        said = examined_in_a_thread(tmp_path / "there.yaml", problems=False)
    (asked,) = [each for (check, subject), each in said.items() if check == "service" and subject.startswith("http")]
    assert asked["state"] == "ok" and asked["saw"].startswith("ready")
    assert said["store", "soundness"]["state"] == "ok"

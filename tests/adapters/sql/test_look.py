"""What ``check-config`` finds out about the store: as much as ``serve`` needs, and nothing is written."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from waypost.bootstrap import opening
from waypost.bootstrap.admin import migrate_store
from waypost.bootstrap.registry import load
from waypost.bootstrap.serving import serve
from waypost.cli.checking import check_config
from waypost.cli.keys import make_key
from waypost.config import Config
from waypost.domain.errors import ConfigurationError, StorageBroken, Unavailable
from waypost.stores.sql import sqlite
from waypost.stores.sql.connection import connect

SECRET = "hush"


def configured(folder: Path, **store: object) -> Path:
    """Write a configuration with no app's credentials; two workers."""
    path = folder / "waypost.yaml"
    path.write_text(yaml.safe_dump({"store": store, "apps": {"demo": {}}, "workers": 2, "listen": "127.0.0.1:0"}))
    return path


def opened(path: Path) -> Config:
    """Load it as a service does that systemd did not start."""
    return load(path, {})


def check(path: Path) -> str:
    """Run the command; its output, or raise what it refuses."""
    done = CliRunner().invoke(check_config, ["--config", str(path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def files_of(folder: Path) -> dict[str, bytes | None]:
    """Everything below *folder*."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_a_check_before_the_first_start_leaves_nothing(tmp_path: Path) -> None:
    """As root it left a store that the service's user could not open."""
    path = configured(tmp_path, url="sqlite:///waypost.db")
    before = files_of(tmp_path)
    assert "SQLite" in check(path)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("in_use", [False, True])
def test_a_check_of_a_store_changes_nothing_and_sees_a_newer_schema(tmp_path: Path, in_use: bool) -> None:
    path = configured(tmp_path, url="sqlite:///waypost.db")
    migrate_store(opened(path))
    with contextlib.ExitStack() as held:
        connection = held.enter_context(contextlib.closing(connect(tmp_path / "waypost.db")))
        connection.execute("UPDATE schema_revision SET version_num = '9999'")
        if not in_use:
            held.close()
        before = {name: said for name, said in files_of(tmp_path).items() if not name.endswith("-shm")}
        with pytest.raises(StorageBroken, match="upgrade Waypost"):
            check(path)
        after = {name: said for name, said in files_of(tmp_path).items() if not name.endswith("-shm")}
        assert after == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "waypost.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageBroken, match="damaged"):
        check(configured(tmp_path, url="sqlite:///waypost.db"))


def test_a_folder_that_cannot_be_made_is_refused_before_the_server_is_asked(tmp_path: Path) -> None:
    """PostgreSQL with a read-only folder passed the check, and did not start."""
    path = configured(tmp_path, url="postgresql://u@127.0.0.1:1/none", run_dir="waypost.yaml/run")
    with pytest.raises(ConfigurationError, match=r"store.run_dir: cannot write into .*waypost.yaml"):
        check(path)


def test_serve_refuses_a_library_that_corrupts_as_the_check_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "SAFE_WITH_MANY_WORKERS", False, raising=False)
    path = configured(tmp_path, url="sqlite:///waypost.db")
    for opens in (lambda: check(path), lambda: serve(opened(path), path, announce=lambda *_: None)):
        with pytest.raises(ConfigurationError, match="can corrupt a log"):
            opens()


@pytest.mark.parametrize(
    ("environ", "run_dir"),
    [
        ({}, "{folder}/waypost.run"),
        ({"RUNTIME_DIRECTORY": "/run/waypost"}, "/run/waypost"),
        (
            {"RUNTIME_DIRECTORY": "/run/waypost", "STATE_DIRECTORY": "/var/lib/waypost:/b"},
            "/var/lib/waypost/waypost.run",
        ),
        ({"STATE_DIRECTORY": "/var/lib/waypost", "WAYPOST_STORE__RUN_DIR": "here"}, "{folder}/here"),
    ],
)
def test_under_systemd_the_shared_files_lie_where_the_service_may_write(
    tmp_path: Path, environ: dict[str, str], run_dir: str
) -> None:
    path = configured(tmp_path, url="postgresql://u@127.0.0.1:1/none")
    assert load(path, environ).store.run_dir == run_dir.format(folder=tmp_path)


def test_a_closed_port_is_named_and_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", SECRET)
    path = configured(tmp_path, url="postgresql://u:${DATABASE_PASSWORD}@127.0.0.1:1/none")
    with pytest.raises(Unavailable, match=r'"127.0.0.1", port 1.*refused') as refused:
        check(path)
    assert SECRET not in str(refused.value)
    assert os.linesep not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "module", "extra"),
    [
        ({"redis": {"url": "redis://127.0.0.1:1"}, "cache": "redis"}, "hiredis", "redis"),
        ({"devices": "cassandra", "cassandra": {"hosts": ["127.0.0.1"], "data_center": "d"}}, "acsylla", "cassandra"),
        ({"feeds": "cassandra", "cassandra": {"hosts": ["127.0.0.1"], "data_center": "d"}}, "acsylla", "cassandra"),
        ({"grpc": {"listen": "127.0.0.1:0"}}, "grpc", "grpc"),
        (
            {"sources": {"orders": {"app": "demo", "kafka": {"bootstrap": "127.0.0.1:1", "topic": "t", "group": "g"}}}},
            "confluent_kafka",
            "kafka",
        ),
    ],
)
def test_a_client_that_is_not_installed_is_found_by_the_check_as_by_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], module: str, extra: str
) -> None:
    """The check passed, and the service did not start."""
    path = tmp_path / "waypost.yaml"
    tree = {"store": "sqlite:///waypost.db", "apps": {"demo": {}}, "listen": "127.0.0.1:0", "workers": 1}
    path.write_text(yaml.safe_dump(tree | settings))
    config = opened(path)
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name == module else object())
    for opens in (lambda: check(path), lambda: serve(config, path, announce=lambda *_: None)):
        with pytest.raises(ConfigurationError, match=rf"not installed: pip install '\.\[{extra}\]'"):
            opens()
    assert not (tmp_path / "waypost.db").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"apps": {"demo": {"defaults": {"channels": ["sms"]}}}},
            r"defaults.channels\[0\]: the app has no sms account; .*: put `sms: \{account_sid: …, auth_",
        ),
        (
            {"apps": {"demo": {"defaults": {"channels_by_type": {"otp": [{"to": "push", "for": "30s"}]}}}}},
            r"apps.demo.defaults.channels_by_type.otp\[0\].for: nothing comes after it",
        ),
        ({"receipts": {"secret_file": "none.key"}}, "receipts.secret_file: cannot be read"),
    ],
)
def test_what_every_submission_would_meet_is_found_by_the_check(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    """The check passed, and each submission was refused, or no worker began."""
    path = configured(tmp_path, url="sqlite:///waypost.db")
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change))
    with pytest.raises(ConfigurationError, match=why):
        check(path)


@pytest.mark.parametrize("is_there", [False, True])
def test_root_makes_nothing_in_the_store_of_another_user(
    tmp_path: Path, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that root made before the first start left a store that the service could not open."""
    config = opened(configured(tmp_path, url="sqlite:///waypost.db"))
    if is_there:
        migrate_store(config)
    kept = tmp_path / "waypost.db" if is_there else tmp_path
    if os.geteuid() == 0:
        os.chown(kept, 12_345, 12_345)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    before = files_of(tmp_path)
    for act in (lambda: opening.look(config), lambda: asyncio.run(make_key(config, "demo", "backend"))):
        with pytest.raises(ConfigurationError, match=r"belongs to .*, not to root: run this as that user"):
            act()
    assert files_of(tmp_path) == before

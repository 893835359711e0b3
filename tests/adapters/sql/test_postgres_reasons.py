"""A PostgreSQL that cannot be used: the check and every command that opens it give its own reason, in one line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from waypost.bootstrap.admin import migrate_store
from waypost.bootstrap.registry import load
from waypost.bootstrap.serving import serve
from waypost.cli import waypost
from waypost.domain.errors import WaypostError

ROLE = "poor"
CASES = {
    "a wrong password": ("{role}:${{WRONG}}@{host}:{port}/opened", 'password authentication failed for user "poor"'),
    "no such role": ("nobody@{host}:{port}/opened", 'role "nobody" does not exist'),
    "no such database": ("{role}:${{RIGHT}}@{host}:{port}/absent", 'database "absent" does not exist'),
    "may not connect": ("{role}:${{RIGHT}}@{host}:{port}/shut", 'permission denied for database "shut"'),
    "may not make tables": ("{role}:${{RIGHT}}@{host}:{port}/opened", "permission denied for schema public"),
    "owns no tables": (
        "{role}:${{RIGHT}}@{host}:{port}/others",
        "permission denied for table",
    ),
    "a closed port": ("{role}@{host}:1/opened", "Connection refused"),
    "no TLS": ("{role}@{host}:{port}/opened?sslmode=require", "server does not support SSL"),
}


@pytest.fixture
def strict(postgres_alone: Postgres, tmp_path: Path) -> Iterator[Postgres]:
    """A server that asks the role for its password, and lets it do little."""
    url, others = postgres_alone.url, beside(postgres_alone.url, "others")
    clients = postgres_alone.nodes[0].folder / "data" / "pg_hba.conf"
    before = clients.read_text()
    run_sql(url, f"CREATE ROLE {ROLE} LOGIN PASSWORD 'right'", *(f"CREATE DATABASE {name}" for name in DATABASES))
    run_sql(url, "REVOKE CONNECT ON DATABASE shut FROM public")
    (tmp_path / "others.yaml").write_text(yaml.safe_dump({"store": others, "apps": {"demo": {}}}))
    migrate_store(load(tmp_path / "others.yaml", {}))
    clients.write_text(f"host all {ROLE} samehost scram-sha-256\n{before}")
    run_sql(url, "SELECT pg_reload_conf()")
    yield postgres_alone
    clients.write_text(before)
    run_sql(url, "SELECT pg_reload_conf()", *(f"DROP DATABASE {name} WITH (FORCE)" for name in DATABASES))
    run_sql(url, f"DROP ROLE {ROLE}")


DATABASES = ("opened", "shut", "others")


def refusals(path: Path) -> Iterator[str]:
    """What the check says, and whoever opens the store."""
    for words in (["check-config"], ["migrate"], ["keys", "list"]):
        done = CliRunner().invoke(waypost, [*words, "--config", str(path)])
        assert isinstance(done.exception, WaypostError), (words, done.output, done.exception)
        yield str(done.exception)
    with pytest.raises(WaypostError) as refused:
        serve(load(path, {"WRONG": "hush", "RIGHT": "right"}), path, announce=lambda *_: None)
    yield str(refused.value)


@pytest.mark.engines
def test_each_reason_is_one_line_with_host_and_port_for_all_who_open_it(
    strict: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two workers `serve` began them again and again; what a role may not do was a page of Python."""
    monkeypatch.setenv("WRONG", "hush")
    monkeypatch.setenv("RIGHT", "right")
    host, _, port = strict.url.rpartition("@")[2].partition("/")[0].partition(":")
    for name, (target, why) in CASES.items():
        url = "postgresql://" + target.format(role=ROLE, host=host, port=port)
        path = tmp_path / "waypost.yaml"
        path.write_text(yaml.safe_dump({"store": url, "apps": {"demo": {}}, "workers": 2, "listen": f"{host}:0"}))
        for said in refusals(path):
            assert re.search(why, said), (name, said)
            assert f'"{host}", port {1 if name == "a closed port" else port}' in said, name
            assert len(said.splitlines()) == 1, name
            assert "hush" not in said
    others = beside(strict.url, "others")
    run_sql(others, f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {ROLE}")
    path.write_text(path.read_text().replace("/opened?sslmode=require", "/others").replace("poor@", "poor:${RIGHT}@"))
    done = CliRunner().invoke(waypost, ["check-config", "--config", str(path)])
    assert "must be owner of table notification" in str(done.exception), "it could make no month later"
    run_sql(others, f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {ROLE}")


@pytest.mark.parametrize("words", [["serve"], ["check-config"], ["backup", "b.db"], ["keys", "list"], ["migrate"]])
def test_what_the_system_refuses_is_one_line(tmp_path: Path, words: list[str]) -> None:
    """A configuration that is a folder, say: no page of Python, whatever the command."""
    (tmp_path / "waypost.yaml").mkdir()
    said = [sys.executable, "-m", "waypost.cli", *words]
    done = subprocess.run(said, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("words", [["backup", "absent/b.db"], ["backup", "file/b.db"]])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "waypost.yaml").write_text("apps: {demo: {}}")
    (tmp_path / "file").touch()
    migrate_store(load(tmp_path / "waypost.yaml", {}))
    said = [sys.executable, "-m", "waypost.cli", *words]
    done = subprocess.run(said, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "b.db" in done.stderr

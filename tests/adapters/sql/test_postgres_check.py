"""What ``check-config --connect`` finds out about a PostgreSQL, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest

from scripts.services.postgres import Postgres
from tests.engines import run_sql
from waypost.bootstrap.reach import reach
from waypost.bootstrap.registry import load
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.stores.sql.postgres.check import CONNECTIONS, PostgresFindings, look

SAFE = PostgresFindings("15.6", 15_00_06, True, True, "on", 97, True)
SETTINGS = ("fsync", "full_page_writes", "synchronous_commit")


@pytest.mark.parametrize(
    ("fields", "workers", "word"),
    [
        ({}, 13, None),
        ({"version": "14.2", "number": 14_00_02}, 1, "14.2 is older than 15"),
        ({"fsync": False}, 1, "fsync is off"),
        ({"full_page_writes": False}, 1, "full_page_writes is off"),
        ({"keeps_sessions": False}, 1, "a pooler in transaction mode"),
        ({}, 14, "97 connections are too few: 14 workers need 98"),
    ],
)
def test_what_loses_work_is_a_problem(fields: dict[str, object], workers: int, word: str | None) -> None:
    problems = list(msgspec.structs.replace(SAFE, **fields).problems(workers))
    assert [word in each for each in problems if word] == [True] * (word is not None)
    assert bool(problems) is (word is not None)


@pytest.mark.parametrize("default", ["off", "local", "remote_write"])
def test_a_default_that_is_not_kept_to_is_said(default: str) -> None:
    (note,) = msgspec.structs.replace(SAFE, synchronous_commit=default).notes()
    assert note == f"synchronous_commit is {default} by default: turned on for what is answered"


@pytest.fixture
def postgres_unsafe(postgres_alone: Postgres) -> Iterator[Postgres]:
    """All that a running server can be told."""
    off = (f"ALTER SYSTEM SET {name} = off" for name in SETTINGS)
    run_sql(postgres_alone.url, *off, "SELECT pg_reload_conf()")
    yield postgres_alone
    run_sql(postgres_alone.url, *(f"ALTER SYSTEM RESET {name}" for name in SETTINGS), "SELECT pg_reload_conf()")


@pytest.mark.engines
@pytest.mark.asyncio
async def test_a_server_says_what_is_unsafe_about_it(postgres_unsafe: Postgres, tmp_path: Path) -> None:
    """Each by its name, and the check fails."""
    path = tmp_path / "waypost.yaml"
    path.write_text(f"apps: {{demo: {{}}}}\nworkers: 64\nstore: {postgres_unsafe.url}\n")
    found = await asyncio.to_thread(_when_off, postgres_unsafe.url)
    (server,) = await reach(load(path, {}))
    assert server.problem is not None
    words = ("fsync is off", "full_page_writes is off", f"64 workers need {64 * CONNECTIONS}")
    assert [word in server.problem for word in words] == [True] * len(words)
    assert "pooler" not in server.problem and found.keeps_sessions
    assert server.what.startswith(f"PostgreSQL {found.version}") and "synchronous_commit is off" in server.what


@pytest.mark.engines
def test_a_database_that_allows_few_connections_says_so(postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    run_sql(postgres_url, f"ALTER DATABASE {name} CONNECTION LIMIT 13")
    assert not any("connections" in problem for problem in look(postgres_url).problems(1))
    assert "13 connections are too few: 2 workers need 14" in look(postgres_url).problems(2)


def test_nobody_there_is_said_as_such() -> None:
    with pytest.raises(Unavailable) as refused:
        look("postgresql://nobody@127.0.0.1:1/none")
    assert refused.value.code is ErrorCode.STORAGE_AWAY


def _when_off(url: str) -> PostgresFindings:
    """The settings are read again by each process of the server in its own time."""
    with psycopg.connect(url, autocommit=True) as connection:
        while (found := look(url)).fsync or found.full_page_writes or found.synchronous_commit != "off":
            connection.execute("SELECT pg_sleep(0.05)")
    return found

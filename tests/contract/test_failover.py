"""The primary is killed and its standby promoted: what a writer is told of its last commit, who connects to whom."""

from __future__ import annotations

import msgspec
import psycopg
import pytest

from scripts.services.postgres import PostgresPair
from tests.contract.clock import START
from tests.contract.sql import settings_of
from tests.engines import run_sql
from waypost.domain.errors import ConfigurationError
from waypost.stores.sql.database import prepare
from waypost.stores.sql.engine import InDoubt
from waypost.stores.sql.postgres.check import look
from waypost.stores.sql.postgres.connection import _Bounded, connect, of_primary
from waypost.stores.sql.postgres.writer import PostgresWriter
from waypost.stores.sql.settings import Durability

pytestmark = pytest.mark.engines

ROW = "INSERT INTO reader (name, position) VALUES (?, ?)"
FOUND = "SELECT name FROM reader ORDER BY name"


def test_whoever_connects_gets_the_server_that_takes_writes(postgres_pair: PostgresPair) -> None:
    """Of several hosts, standby first; who reads as well as who writes, asked for in the URL or not."""
    primary, standby = postgres_pair.ports
    for asks in ("", "?target_session_attrs=read-write", "?target_session_attrs=primary&connect_timeout=2"):
        url = f"postgresql://postgres@127.0.0.1:{standby},127.0.0.1:{primary}/postgres{asks}"
        for read_only in (False, True):
            connection = connect(url, read_only=read_only)
            assert connection.raw.info.port == primary
            assert connection.execute("SHOW transaction_read_only").fetchone() == ("on" if read_only else "off",)
            connection.close()


def test_a_standby_that_nobody_waits_for_is_warned_of(postgres_pair: PostgresPair) -> None:
    """What was answered in the moments before a failover would be lost; asked of the one that takes writes."""
    warning = "1 standby(s), and synchronous_standby_names is empty"
    assert warning in "".join(look(postgres_pair.url).notes())
    postgres_pair.synchronous()
    assert warning not in "".join(look(postgres_pair.url).notes())


def test_a_commit_in_doubt_is_found_on_the_server_that_was_promoted(postgres_pair: PostgresPair) -> None:
    """One that the standby has, and one that it never got, whose number there is another session's by then."""
    settings = msgspec.structs.replace(settings_of(postgres_pair.url), durability=Durability.POWER)
    prepare(settings, START)
    postgres_pair.synchronous()
    kept, lost = PostgresWriter(settings), PostgresWriter(settings)
    in_doubt_of(kept, "kept")
    postgres_pair.fall_behind()
    in_doubt_of(lost, "lost")
    postgres_pair.kill()
    postgres_pair.promote()
    with psycopg.connect(postgres_pair.url, autocommit=True) as promoted:
        for _ in range(20):
            promoted.execute("SELECT pg_current_xact_id()")
    for writer, expected in ((kept, True), (lost, False)):
        with writer.turn(0):
            assert writer.was_committed(1) is expected
            assert writer.connection.execute(FOUND).fetchall() == [("kept",)]
        writer.close()


def test_nothing_is_answered_that_no_standby_has(postgres_pair: PostgresPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one is away: the commit stays in doubt, and nothing comes after it, until somebody ends the waiting."""
    settings = msgspec.structs.replace(settings_of(postgres_pair.url), durability=Durability.POWER, lock_timeout_s=0.1)
    prepare(settings, START)
    postgres_pair.synchronous()
    postgres_pair.kill(2)
    monkeypatch.setattr(_Bounded, "answer_timeout_s", 0.5)
    writer = PostgresWriter(settings)
    with writer.turn(0):
        writer.begin(durable=True, ordered=False)
        writer.connection.execute(ROW, ("waits", 1))
        with pytest.raises(InDoubt):
            writer.commit()
    with writer.turn(0):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            writer.was_committed(1)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            writer.begin(durable=True, ordered=False)
    run_sql(postgres_pair.url_of(1), "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
    monkeypatch.undo()
    settled = PostgresWriter(msgspec.structs.replace(settings, lock_timeout_s=3.0))
    settled._nonce = writer._nonce
    with settled.turn(0):
        assert settled.was_committed(1) is True
        assert settled.connection.execute(FOUND).fetchall() == [("waits",)]
    for each in (writer, settled):
        each.close()


def in_doubt_of(writer: PostgresWriter, name: str) -> None:
    """Write a row, and lose the answer to COMMIT."""
    with writer.turn(0):
        writer.begin(durable=True, ordered=False)
        writer.connection.execute(ROW, (name, 1))
        ask = writer.connection.execute

        def answer_lost(sql: str, bound: tuple[object, ...] = ()) -> object:
            answer = ask(sql, bound)
            if sql == "COMMIT":
                raise psycopg.OperationalError("the connection is lost")
            return answer

        writer.connection.execute = answer_lost  # type: ignore[method-assign, assignment]  # in this very moment
        with pytest.raises(InDoubt) as doubt:
            writer.commit()
        assert doubt.value.batch == 1


def test_a_url_that_nobody_can_read_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match="store"):
        of_primary("postgresql://h1/d?targget=read-write")

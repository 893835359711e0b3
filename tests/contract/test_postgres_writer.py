"""How one process writes to PostgreSQL: its turn, what is durable, commits in doubt, and when a store is away."""

from __future__ import annotations

import asyncio

import msgspec
import psycopg
import pytest

from tests.contract.bench import APP
from tests.contract.sql import SqlUnderTest, settings_of, trace
from tests.contract.test_on_postgres import asked
from tests.engines import run_sql
from tests.journeys.harness import until
from waypost.domain.errors import Unavailable
from waypost.ports.views import HistoryQuery
from waypost.stores.sql.engine import InDoubt
from waypost.stores.sql.postgres.writer import PostgresWriter
from waypost.stores.sql.settings import Durability
from waypost.stores.sql.state import StoreState

pytestmark = pytest.mark.engines


def test_who_waits_in_vain_for_the_turn_may_begin_again(emptied_postgres: str) -> None:
    """The transaction that had begun by then is given up: the next one is not inside of it."""
    settings = msgspec.structs.replace(settings_of(emptied_postgres), lock_timeout_s=0.1)
    first, second = PostgresWriter(settings), PostgresWriter(settings)
    with first.turn(0), second.turn(0):
        first.begin(durable=True, ordered=True)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.begin(durable=True, ordered=True)
        first.rollback()
        second.begin(durable=True, ordered=True)
        second.commit()
    first.close()
    second.close()


@pytest.mark.asyncio
async def test_a_store_is_away_for_as_long_as_nobody_can_read_from_it(postgres_url: str) -> None:
    """Writers have their connections; it recovers by itself once readers get one, too."""
    owners = SqlUnderTest(postgres_url)
    await owners.open()  # makes the tables of features, which a role that only reads and writes may not
    await owners.close()
    store = SqlUnderTest(postgres_url.replace("//postgres@", "//reading@"))
    made = "CREATE ROLE reading LOGIN CONNECTION LIMIT -1 IN ROLE pg_read_all_data, pg_write_all_data"
    run_sql(postgres_url, "DROP ROLE IF EXISTS reading", made)
    await store.open()
    opened = store._opened.database
    try:
        run_sql(postgres_url, "ALTER ROLE reading CONNECTION LIMIT 1")
        with pytest.raises(Unavailable):
            await store.views.history(HistoryQuery(APP))
        assert opened.state is StoreState.AWAY
        with pytest.raises((psycopg.OperationalError, psycopg.InternalError)):  # the latter where the store looks, too
            await asyncio.to_thread(opened._writer.is_well)
        assert opened.state is StoreState.AWAY
        run_sql(postgres_url, "ALTER ROLE reading CONNECTION LIMIT -1")

        async def recovered() -> bool:
            return opened.state is StoreState.OK

        await until(recovered, "it is back")
        assert await store.views.history(HistoryQuery(APP)) == []
    finally:
        await store.close()


@pytest.mark.parametrize("durable", [True, False])
def test_a_commit_whose_connection_is_lost_can_be_asked_for(durable: bool, emptied_postgres: str) -> None:
    writer = PostgresWriter(settings_of(emptied_postgres))
    assert writer.is_well()
    writer.begin(durable=durable, ordered=True)
    writer.connection.execute("INSERT INTO reader (name, position) VALUES (?, ?)", ("r", 1))
    pid = writer.connection.raw.info.backend_pid
    ask = writer.connection.execute

    def lost(sql: str, bound: tuple[object, ...] = ()) -> object:
        if sql == "COMMIT":
            asked(emptied_postgres, f"SELECT pg_terminate_backend({pid}, 5000)")
        return ask(sql, bound)

    def answer_lost(sql: str, bound: tuple[object, ...] = ()) -> object:
        answer = ask(sql, bound)
        if sql == "COMMIT":
            raise psycopg.OperationalError("the connection is lost")
        return answer

    writer.connection.execute = lost  # type: ignore[method-assign, assignment]  # the server goes in this very moment
    with pytest.raises(InDoubt) as doubt:
        writer.commit()
    with writer.turn(1.0):
        assert writer.was_committed(doubt.value.batch) is False
        writer.begin(durable=durable, ordered=False)
        writer.connection.execute("INSERT INTO reader (name, position) VALUES (?, ?)", ("r", 1))
        ask = writer.connection.execute
        writer.connection.execute = answer_lost  # type: ignore[method-assign, assignment]  # as above, a moment later
        with pytest.raises(InDoubt) as doubt:
            writer.commit()
    with writer.turn(1.0):
        assert writer.was_committed(doubt.value.batch) is True
    writer.close()


def test_a_commit_in_doubt_is_not_decided_while_the_server_still_works_on_it(emptied_postgres: str) -> None:
    """It waits for a standby, say, and its client has given up; what comes next waits for its end."""
    settings = msgspec.structs.replace(settings_of(emptied_postgres), lock_timeout_s=0.1)
    writer = PostgresWriter(settings)
    with writer.turn(0):
        writer.begin(durable=True, ordered=False)
        left = writer.connection
        writer._connection = None
    with writer.turn(0), pytest.raises(psycopg.errors.LockNotAvailable):
        writer.was_committed(writer._batch)
    left.execute("COMMIT")
    with writer.turn(0):
        assert writer.was_committed(writer._batch) is True
    left.close()
    writer.close()


def test_a_batch_costs_two_round_trips_beside_its_own(emptied_postgres: str) -> None:
    """One begins and notes it, one commits."""
    writer = PostgresWriter(settings_of(emptied_postgres))
    sent: list[str] = []
    with writer.turn(0):
        trace(writer.connection.raw, sent.append)
        writer.begin(durable=True, ordered=True)
        writer.commit()
    assert [each.partition(";")[0] for each in sent] == ["BEGIN", "COMMIT"]
    writer.close()


@pytest.mark.parametrize(
    ("default", "durable", "used"),
    [
        ("off", True, "on"),
        ("local", True, "on"),
        ("remote_write", True, "on"),
        ("on", True, "on"),
        ("remote_apply", True, "remote_apply"),
        ("remote_apply", False, "off"),
    ],
)
def test_what_is_answered_is_at_least_as_durable_as_on(
    default: str, durable: bool, used: str, postgres_url: str
) -> None:
    """Whatever the server's default (PostgreSQL, "synchronous_commit")."""
    run_sql(postgres_url, f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET synchronous_commit = {default}")
    writer = PostgresWriter(msgspec.structs.replace(settings_of(postgres_url), durability=Durability.POWER))
    with writer.turn(0):
        writer.begin(durable=durable, ordered=False)
        assert writer.connection.execute("SHOW synchronous_commit").fetchone() == (used,)
        writer.rollback()
    writer.close()

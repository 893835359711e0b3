"""A running installation gets a later migration: it is made once, and stops nobody; older numbers are refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from tests.contract.bench import APP, Bench
from tests.contract.clock import START
from tests.contract.sql import SqlUnderTest, settings_of
from tests.journeys.harness import until
from tests.later_migration import bring
from waypost.domain.errors import StorageBroken, Unavailable
from waypost.ports.views import HistoryQuery
from waypost.stores.sql.connection import connect
from waypost.stores.sql.database import prepare
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.migrations import BEFORE_RELEASE, NOTED_IN, latest
from waypost.stores.sql.postgres.connection import connect as connect_postgres
from waypost.stores.sql.postgres.engine import MIGRATION_LOCK, PostgresEngine


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engines)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own: what changes its schema must not reach others."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    database = f"sqlite:///{tmp_path / 'waypost.db'}"
    prepare(settings_of(database), START)
    return database


@pytest_asyncio.fixture
async def bench(url: str) -> AsyncIterator[Bench]:
    """A worker of the version before."""
    under_test = SqlUnderTest(url)
    await under_test.open()
    yield Bench(under_test, (await under_test.open_workers(1))[0])
    await under_test.close()


@pytest.fixture
def later(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The revision of a version that is installed beside the one which has made the database."""
    assert url
    return bring(tmp_path / "later", monkeypatch)


@contextlib.contextmanager
def beside(url: str) -> Iterator[Connection]:
    """A connection that is not the store's."""
    file = url.removeprefix("sqlite:///")
    connection: Connection = connect_postgres(url) if file == url else connect(Path(file))
    with contextlib.closing(connection):
        yield connection


@pytest.mark.asyncio
async def test_a_migration_is_made_once_although_several_start_at_once_and_intake_goes_on(
    bench: Bench, url: str, later: str
) -> None:
    """Those who wait for their turn keep no transaction open, for which an index made concurrently would wait."""
    before = f"{int(later) - 1:04}"
    made = await bench.accepted()
    starting = [asyncio.to_thread(prepare, settings_of(url), START) for _ in range(4)]
    prepared, meanwhile = await asyncio.gather(asyncio.gather(*starting), bench.accepted(user="bob"))
    assert sorted(str(found) for found, _ in prepared) == [before, *[later] * 3]
    assert {after for _, after in prepared} == {later}
    after = await bench.accepted(user="carol")  # the version before goes on beside it
    listed = await bench.store.views.history(HistoryQuery(APP))
    assert [each.notification.id for each in listed] == [after.id, meanwhile.id, made.id]


@pytest.mark.engines
@pytest.mark.asyncio
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_migration_that_was_cut_off_is_finished_by_whoever_starts_next(url: str, later: str) -> None:
    """An index made concurrently waits for a snapshot that was taken before; its process ends meanwhile."""
    making = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%' AND datname = current_database()"
    valid = "SELECT indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname LIKE 'notification%_later'"
    with psycopg.connect(url) as reader, beside(url) as connection:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ  # which keeps its snapshot
        reader.execute("SELECT count(*) FROM notification")
        migrating = asyncio.create_task(asyncio.to_thread(prepare, settings_of(url), START))

        async def its_connection() -> list[tuple[object, ...]]:
            waits = connection.execute(f"{making} AND wait_event_type = 'Lock'")
            return waits.fetchall()

        await until(its_connection, "it waits for the reader", deadline_s=30)
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({making}) AS its")  # noqa: S608 - ours
        with pytest.raises(Unavailable):
            await migrating
    with beside(url) as connection:
        assert connection.execute(valid).fetchall() == [(False,)]
        assert prepare(settings_of(url), START) == (f"{int(later) - 1:04}", later)
        assert set(connection.execute(valid).fetchall()) == {(True,)}


@pytest.mark.engines
@pytest.mark.asyncio
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_migration_that_would_have_to_wait_gives_up_and_intake_goes_on(bench: Bench, url: str) -> None:
    """Somebody else's long read has the table; who comes after a statement that waits for its lock waits, too."""
    engine = PostgresEngine(settings_of(url))
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM notification")

        def migrate() -> None:
            with engine._connect() as connection, pytest.raises(psycopg.errors.LockNotAvailable):
                connection.execute("ALTER TABLE notification ADD COLUMN later bigint")

        migrating = asyncio.create_task(asyncio.to_thread(migrate))
        made = [await bench.accepted(user=f"user-{n}") for n in range(3)]
        await migrating
        made.append(await bench.accepted(user="user-4"))
    assert await bench.leasable() == [each.id for each in made]


@pytest.mark.engines
@pytest.mark.parametrize("ahead", [0, 1])
def test_whoever_finds_a_schema_that_it_knows_waits_for_no_migration(ahead: int, postgres_url: str) -> None:
    """A worker of the version before that is started again while the next one makes an index for an hour, say."""
    found = f"{int(latest()) + ahead:04}"
    with beside(postgres_url) as migrating:
        migrating.execute(f"SELECT pg_advisory_lock({MIGRATION_LOCK})")
        migrating.execute(f"UPDATE {NOTED_IN} SET version_num = '{found}'")  # noqa: S608 - ours
        assert prepare(settings_of(postgres_url), START) == (found, found)


@pytest.mark.parametrize("revision", ["0001", "0014"])
def test_a_database_of_before_the_first_release_is_refused_and_left_as_it_is(url: str, revision: str) -> None:
    """Its numbers say something else; one of them is that of today."""
    with beside(url) as connection:
        connection.execute(f"ALTER TABLE {NOTED_IN} RENAME TO {BEFORE_RELEASE}")
        connection.execute(f"UPDATE {BEFORE_RELEASE} SET version_num = '{revision}'")  # noqa: S608 - names of ours
        for _ in range(2):
            with pytest.raises(StorageBroken, match=rf"{revision} .*0\.1\.0.* use an empty database"):
                prepare(settings_of(url), START)


@pytest.mark.engines
def test_on_postgres_text_is_compared_byte_by_byte(emptied_postgres: str) -> None:
    """As Python and SQLite do it, whatever the language of the server; an index serves only who compares as it does."""
    of_language = (
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'"
    )
    with beside(emptied_postgres) as connection:
        assert connection.execute(of_language).fetchall() == []

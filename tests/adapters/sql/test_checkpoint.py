"""Checkpoints: who reads the file for long is never waited for, and what was written meanwhile is copied afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from waypost.stores.sql.checkpoint import AGAIN_AFTER_S, CUT_EVERY_S, Ahead, Checkpoint
from waypost.stores.sql.connection import SqliteConnection, connect, dbapi
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.sqlite import SqliteEngine

PAGE_BYTES = 4096
LIMIT_PAGES = 8
FOR_EVER_S = 1_000.0
"""Longer than any test may take."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def writer(file: Path) -> Iterator[SqliteConnection]:
    """Waits for ever, where it waits at all."""
    connection = connect(file, busy_timeout_s=FOR_EVER_S)
    connection.execute("CREATE TABLE blobs (content BLOB)")
    yield connection
    connection.close()


@pytest.fixture
def reader(file: Path, writer: SqliteConnection) -> Iterator[SqliteConnection]:
    connection = connect(file, read_only=True)
    yield connection
    connection.close()


def write(writer: SqliteConnection, checkpoint: Checkpoint, commits: int) -> None:
    """Commit as a writer does, each time some pages."""
    for _ in range(commits):
        writer.execute("INSERT INTO blobs VALUES (zeroblob(?))", (2 * PAGE_BYTES,))
        checkpoint.run_if_due()


def test_a_long_reader_is_neither_waited_for_nor_asked_at_each_commit(
    file: Path, writer: SqliteConnection, reader: SqliteConnection
) -> None:
    """The log grows far past the length at which it is cut; when the reader is gone all is copied, and it is cut."""
    checkpoint = Checkpoint(writer, LIMIT_PAGES * PAGE_BYTES)
    said = heard(writer)
    write(writer, checkpoint, 2)
    reader.execute("BEGIN")
    ((before,),) = reader.execute("SELECT count(*) FROM blobs").fetchall()
    write(writer, checkpoint, 200)
    log = file.with_name("a.db-wal")
    pages = log.stat().st_size // PAGE_BYTES
    assert 1 <= sum("PASSIVE" in each for each in said) <= pages // LIMIT_PAGES + 1
    assert not any("TRUNCATE" in each for each in said)
    assert reader.execute("SELECT count(*) FROM blobs").fetchall() == [(before,)]
    reader.execute("COMMIT")
    write(writer, checkpoint, LIMIT_PAGES)
    assert log.stat().st_size // PAGE_BYTES < LIMIT_PAGES * 4
    assert writer.execute("PRAGMA busy_timeout").fetchall() == [(int(FOR_EVER_S * 1_000),)]


def test_while_somebody_is_hurried_less_is_copied_at_a_time(writer: SqliteConnection) -> None:
    """Whoever wants to write waits for it."""
    checkpoint = Checkpoint(writer, 1_000 * PAGE_BYTES)
    said: list[str] = []
    for _ in range(300):
        writer.execute("INSERT INTO blobs VALUES (zeroblob(?))", (PAGE_BYTES,))
    writer.set_trace_callback(said.append)
    checkpoint.run_if_due()
    assert not any("PASSIVE" in each for each in said)
    checkpoint.run_if_due(hurried=True)
    assert any("PASSIVE" in each for each in said)


def test_one_who_reads_at_the_moment_of_the_cut_is_not_waited_for(
    file: Path, writer: SqliteConnection, reader: SqliteConnection
) -> None:
    """All is copied, so that the reader stands at the end of the log: only the file cannot be cut."""
    checkpoint = Checkpoint(writer, LIMIT_PAGES * PAGE_BYTES)
    for _ in range(200):
        writer.execute("INSERT INTO blobs VALUES (zeroblob(?))", (2 * PAGE_BYTES,))
    begin_to_read(reader)
    checkpoint.run_if_due()
    assert file.with_name("a.db-wal").stat().st_size > 200 * PAGE_BYTES
    assert writer.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()[2] > 200
    reader.execute("COMMIT")


def test_a_short_log_is_cut_in_time_and_whoever_reads_it_puts_that_off(
    file: Path, writer: SqliteConnection, reader: SqliteConnection
) -> None:
    """It would else keep what the database has deleted until as much has been written."""
    now_s = 0.0
    checkpoint = Checkpoint(writer, 1_000 * LIMIT_PAGES * PAGE_BYTES, monotonic_s=lambda: now_s)
    log = file.with_name("a.db-wal")
    writer.execute("INSERT INTO blobs VALUES (?)", (b"secret of her",))
    write(writer, checkpoint, 1)
    assert b"secret of her" in log.read_bytes()
    begin_to_read(reader)
    now_s = CUT_EVERY_S
    checkpoint.run_if_due()
    assert log.stat().st_size
    reader.execute("COMMIT")
    checkpoint.run_if_due()
    assert log.stat().st_size, "not asked at each commit"
    now_s += AGAIN_AFTER_S
    checkpoint.run_if_due()
    assert log.stat().st_size == 0
    write(writer, checkpoint, 1)
    assert log.stat().st_size
    writer.execute("DELETE FROM blobs WHERE content = ?", (b"secret of her",))
    now_s += CUT_EVERY_S
    checkpoint.run_if_due()
    assert b"secret of her" not in file.read_bytes() + log.read_bytes()


@pytest.fixture
def ahead(file: Path, writer: SqliteConnection) -> Iterator[Ahead]:
    thread = Ahead(partial(connect, file))
    yield thread
    thread.close()


def test_all_that_is_copied_ahead_needs_no_lock(writer: SqliteConnection, ahead: Ahead) -> None:
    """The next write begins the log anew."""
    checkpoint = Checkpoint(writer, LIMIT_PAGES * PAGE_BYTES, ahead)
    said = heard(writer)
    for _ in range(20):
        write(writer, checkpoint, 1)
        wait_for(ahead)
        assert log_of(writer)[0] <= 2 * LIMIT_PAGES
    assert not any("PASSIVE" in each for each in said), "not by who writes"


def test_what_cannot_be_copied_ahead_is_left_to_who_writes_after_some_tries(
    writer: SqliteConnection, reader: SqliteConnection, ahead: Ahead
) -> None:
    """Somebody reads, so that something is left."""
    checkpoint = Checkpoint(writer, LIMIT_PAGES * PAGE_BYTES, ahead)
    said = heard(writer)
    begin_to_read(reader)
    writer.execute("INSERT INTO blobs VALUES (zeroblob(?))", (2 * LIMIT_PAGES * PAGE_BYTES,))
    for _ in range(10):
        checkpoint.run_if_due()
        wait_for(ahead)
    logged, copied = log_of(writer)
    assert copied < logged
    assert sum("PASSIVE" in each for each in said) == 1, "and then not before as much more is written"
    reader.execute("COMMIT")
    for _ in range(LIMIT_PAGES):
        write(writer, checkpoint, 1)
        wait_for(ahead)
    logged, copied = log_of(writer)
    assert logged < 2 * LIMIT_PAGES


@pytest.mark.parametrize(("urgent", "longest"), [(False, 4), (True, 8)])
def test_while_somebody_is_hurried_the_rest_is_left_until_the_log_is_long(
    writer: SqliteConnection, reader: SqliteConnection, ahead: Ahead, urgent: bool, longest: int
) -> None:
    """Twice as long for who is urgent: others may have done it by then."""
    checkpoint = Checkpoint(writer, LIMIT_PAGES * PAGE_BYTES, ahead)
    said = heard(writer)
    begin_to_read(reader)
    logged = 0
    for _ in range(200):
        writer.execute("INSERT INTO blobs VALUES (zeroblob(?))", (PAGE_BYTES,))
        checkpoint.run_if_due(hurried=True, urgent=urgent)
        wait_for(ahead)
        if any("PASSIVE" in each for each in said):
            break
        logged, _ = log_of(writer)
    assert (longest - 1) * LIMIT_PAGES < logged < (longest + 2) * LIMIT_PAGES
    reader.execute("COMMIT")


def test_what_stands_in_the_way_ahead_is_met_under_the_lock(file: Path, writer: SqliteConnection) -> None:
    """There it is told to who writes; the thread that copies ahead outlives it."""

    def is_broken() -> SqliteConnection:
        raise dbapi.OperationalError("disk I/O error")

    ahead = Ahead(is_broken)
    checkpoint = Checkpoint(writer, LIMIT_PAGES * PAGE_BYTES, ahead)
    write(writer, checkpoint, LIMIT_PAGES)
    for _ in range(5):
        wait_for(ahead)
        write(writer, checkpoint, 1)
        if (log := log_of(writer))[1]:
            break
    logged, copied = log
    assert copied == logged > 0
    ahead.close()


def heard(connection: SqliteConnection) -> list[str]:
    """Return the list of the statements that run from now on."""
    said: list[str] = []
    connection.set_trace_callback(said.append)
    return said


def begin_to_read(reader: SqliteConnection) -> None:
    """Begin a transaction that reads the log as it is now."""
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM blobs").fetchall()


def wait_for(ahead: Ahead) -> None:
    """Wait until what is begun is copied."""
    if ahead._begun is not None:
        ahead._begun.result()


def log_of(connection: SqliteConnection) -> tuple[int, int]:
    """Return how many pages are in the log, and how many of them are copied."""
    _, logged, copied = connection.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()
    return logged, copied


@pytest.mark.parametrize(("urgent", "longest"), [(False, 2), (True, 10)])
def test_a_writer_keeps_the_log_short_also_where_all_is_urgent(tmp_path: Path, urgent: bool, longest: int) -> None:
    """Nobody else writes; what is copied beside it has the time that it needs."""
    settings = SqlSettings(url=f"sqlite:///{tmp_path}/b.db", checkpoint_bytes=LIMIT_PAGES * PAGE_BYTES)
    writer = SqliteEngine(settings).open_writer()
    reached = 0
    with writer.turn(FOR_EVER_S):
        writer.connection.execute("CREATE TABLE blobs (content BLOB)")
    for _ in range(300):
        with writer.turn(FOR_EVER_S, urgent=lambda: urgent):
            writer.connection.execute("INSERT INTO blobs VALUES (zeroblob(?))", (PAGE_BYTES,))
        assert writer._ahead is not None
        wait_for(writer._ahead)
        reached = max(reached, log_of(writer.connection)[0])
    assert reached < longest * LIMIT_PAGES
    writer.close()

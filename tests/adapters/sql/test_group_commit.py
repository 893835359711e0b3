"""Group commit: operations share a transaction and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore
from tests.shows import shows
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.stores.sql.connection import connect
from waypost.stores.sql.engine import InDoubt
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.sqlite import SqliteWriter
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.store import Store
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.stores.sql.write_lock import WriteLock

pytestmark = pytest.mark.asyncio

_WRITE = "INSERT INTO reader (name, position) VALUES (?, ?)"


def _insert(transaction: Transaction, ops: Sequence[tuple[str | None, int]]) -> list[str | None]:
    transaction.connection.executemany(_WRITE, ops)
    return [name for name, _ in ops]


INSERT: OperationKind[tuple[str | None, int], str | None] = OperationKind("insert", _insert, durable=True)
INSERT_PATIENTLY: OperationKind[tuple[str | None, int], str | None] = OperationKind(
    "insert patiently", _insert, False, patient=True
)


async def _names(store: Store) -> list[str]:
    rows = await store.database.read(lambda connection: connection.execute("SELECT name FROM reader").fetchall())
    return sorted(row[0] for row in rows)


async def test_one_bad_operation_does_not_fail_its_neighbours(open_at: OpenStore, tmp_path: Path) -> None:
    store = await open_at(tmp_path / "a.db")
    submit = store.database.commits.submit
    futures = [submit(INSERT, (name, 1)) for name in ("a", "b", None, "c")]
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert [result for result in results if isinstance(result, str)] == ["a", "b", "c"]
    assert "NOT NULL" in str(results[2])
    assert await _names(store) == ["a", "b", "c"]


async def test_nobody_is_answered_before_the_commit(
    open_at: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the writer told the loop until then has been heard when it commits."""
    store = await open_at(tmp_path / "a.db")
    loop = asyncio.get_running_loop()
    futures: list[asyncio.Future[str | None]] = []
    answered: list[bool] = []
    commit = SqliteWriter.commit

    async def look() -> None:
        answered.append(futures[0].done())

    def watched(writer: SqliteWriter) -> None:
        asyncio.run_coroutine_threadsafe(look(), loop).result()
        commit(writer)

    monkeypatch.setattr(SqliteWriter, "commit", watched)
    futures.append(store.database.commits.submit(INSERT, ("a", 1)))
    assert await futures[0] == "a"
    assert answered == [False]


@pytest.mark.parametrize(
    ("lost", "was_committed"), [(OSError(5, "failed"), False), (InDoubt(1), False), (InDoubt(1), True)]
)
async def test_an_outcome_outlives_a_commit_that_fails_or_is_lost(
    open_at: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: Exception, was_committed: bool
) -> None:
    """It is written with the next one, unless it was written by this one."""
    store = await open_at(tmp_path / "a.db")
    commit = SqliteWriter.commit
    failures = [lost]

    def failing(writer: SqliteWriter) -> None:
        if not failures:
            commit(writer)
            return
        (commit if was_committed else SqliteWriter.rollback)(writer)
        raise failures.pop()

    monkeypatch.setattr(SqliteWriter, "commit", failing)
    monkeypatch.setattr(SqliteWriter, "was_committed", lambda writer, transaction: was_committed)
    async with asyncio.timeout(30):
        assert await store.database.commits.submit(INSERT_PATIENTLY, ("a", 1)) == "a"
    assert await _names(store) == ["a"] and not failures


async def test_what_is_queued_together_is_one_commit(open_at: OpenStore, tmp_path: Path) -> None:
    """Seen from outside: while the lock is taken everything queues, and then is visible together or not at all."""
    store = await open_at(tmp_path / "a.db")
    seen: list[int] = []

    def count(transaction: Transaction, ops: Sequence[None]) -> list[int]:
        seen.append(len(ops))
        return [len(ops)] * len(ops)

    kind: OperationKind[None, int] = OperationKind("count", count, durable=False)
    lock = WriteLock(run_dir_of_store(store.database.settings))
    with lock.hold(1):
        futures = [store.database.commits.submit(kind, None) for _ in range(50)]
    lock.close()
    await asyncio.gather(*futures)
    assert sum(seen) == 50
    assert seen[-1] == max(seen) >= 49, "at most the first went alone"


async def test_what_is_accepted_goes_first_and_takes_turns_with_the_rest(open_at: OpenStore, tmp_path: Path) -> None:
    """A caller waits for the commit under way and its own; who accepts without a pause keeps no outcome out."""
    store = await open_at(tmp_path / "a.db", commit_rows=1)
    order: list[str] = []

    def note(transaction: Transaction, ops: Sequence[str]) -> Sequence[str]:
        order.append(" ".join(ops))
        return ops

    settle: OperationKind[str, str] = OperationKind("settle", note, durable=False, patient=True)
    accept: OperationKind[str, str] = OperationKind("accept", note, durable=True, overtakes=True)
    lock = WriteLock(run_dir_of_store(store.database.settings))
    with lock.hold(1):
        ops = [(settle, "outcome 1"), (settle, "outcome 2"), (accept, "batch 1"), (accept, "batch 2")]
        futures = [store.database.commits.submit(kind, op, rows=4) for kind, op in ops]
    lock.close()
    await asyncio.gather(*futures)
    assert order == ["batch 1", "outcome 1", "batch 2", "outcome 2"]


@shows("S3-104")
async def test_a_lock_held_for_too_long_refuses_accepts_and_keeps_outcomes(open_at: OpenStore, tmp_path: Path) -> None:
    store = await open_at(tmp_path / "a.db", lock_timeout_s=0.05)
    commits = store.database.commits
    lock = WriteLock(run_dir_of_store(store.database.settings))
    with lock.hold(1):
        outcome = commits.submit(INSERT_PATIENTLY, ("outcome", 1))
        with pytest.raises(Unavailable) as refused:
            await commits.submit(INSERT, ("accept", 1))
        assert refused.value.code is ErrorCode.STORAGE_BUSY
        assert not outcome.done()
        assert commits.held == 1
    lock.close()
    assert await outcome == "outcome"
    assert await _names(store) == ["outcome"]
    assert commits.state is StoreState.OK


async def test_a_foreign_writer_is_waited_for(open_at: OpenStore, tmp_path: Path) -> None:
    """Somebody's shell with an open transaction holds SQLite's lock and not ours."""
    store = await open_at(tmp_path / "a.db", lock_timeout_s=0.05)
    foreign = connect(tmp_path / "a.db")
    foreign.execute("BEGIN IMMEDIATE")
    outcome = store.database.commits.submit(INSERT_PATIENTLY, ("outcome", 1))
    with pytest.raises(Unavailable):
        await store.database.commits.submit(INSERT, ("accept", 1))
    foreign.execute("ROLLBACK")
    foreign.close()
    assert await outcome == "outcome"


async def test_a_lock_file_that_fails_refuses_in_time_and_is_tried_again(open_at: OpenStore, tmp_path: Path) -> None:
    """Neither a request that hangs nor a thread that spins."""
    store = await open_at(tmp_path / "a.db", lock_timeout_s=0.05)
    commits = store.database.commits
    writer = commits._writer
    assert isinstance(writer, SqliteWriter)
    sound = writer.lock
    failing = WriteLock(run_dir_of_store(store.database.settings))
    failing.close()
    writer.lock = failing
    outcome = commits.submit(INSERT_PATIENTLY, ("outcome", 1))
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable):
            await commits.submit(INSERT, ("accept", 1))
        writer.lock = sound
        assert await outcome == "outcome"


async def test_closing_writes_what_is_queued_and_refuses_what_comes_later(open_at: OpenStore, tmp_path: Path) -> None:
    store = await open_at(tmp_path / "a.db")
    queued = store.database.commits.submit(INSERT, ("last", 1))
    await store.close()
    assert await queued == "last"
    with pytest.raises(Unavailable) as refused:
        store.database.commits.submit(INSERT, ("late", 1))
    assert refused.value.code is ErrorCode.SHUTTING_DOWN
    assert await _names(await open_at(tmp_path / "a.db")) == ["last"]

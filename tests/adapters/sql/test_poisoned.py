"""A row that cannot be read: what it belongs to ends or is passed over, those beside it do not notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pysqlite3 import dbapi2

from tests.adapters.sql.conftest import WallClock, settings_of
from tests.contract.bench import APP, notification
from tests.contract.bulk_bench import job, taken
from tests.contract.clock import START
from tests.unit.adapters.noted import Noted
from waypost.domain.bulk import FAILURES_LIMIT, BulkJob, JobId, JobOrder, JobState, Recipient
from waypost.domain.ids import NotificationId, UserId, format_id
from waypost.domain.notification import Lane
from waypost.domain.time import later
from waypost.pipeline.expand import Failures, Paces, expand
from waypost.ports.bulk import JobCreated
from waypost.ports.work import NewNotification
from waypost.stores.sql.store import Store, open_store
from waypost.telemetry import Event

pytestmark = pytest.mark.asyncio


async def _opened(tmp_path: Path, noted: Noted) -> Store:
    store = await open_store(settings_of(tmp_path / "a.db"), clock=WallClock(), peers=None, telemetry=noted)
    await store.shards.acquire()
    return store


async def _listed(store: Store, n: int, users: list[str]) -> BulkJob:
    made = await store.bulk.create(job(n, registry=None), None, b"")
    assert isinstance(made, JobCreated)
    await store.bulk.add(APP, made.record.job.id, [Recipient(UserId(user), {"name": user}) for user in users])
    await store.bulk.order(APP, made.record.job.id, JobOrder.START, START)
    return made.record.job


def _spoil(tmp_path: Path, statement: str, *bound: object) -> None:
    connection = dbapi2.connect(tmp_path / "a.db")
    connection.execute(statement, bound)
    connection.commit()
    connection.close()


async def _state(store: Store, job_id: JobId) -> tuple[JobState, str | None]:
    found = await store.bulk_views.show(APP, job_id)
    assert found is not None
    return found.state, found.failure


async def test_a_piece_that_cannot_be_read_stops_its_own_job_alone(tmp_path: Path) -> None:
    """Everybody of the other job and the lane's other work are leased; the job is failed and says why, and goes on
    once it is mended: nobody is left out."""
    noted = Noted()
    store = await _opened(tmp_path, noted)
    bad, good = [await _listed(store, n, [f"u{n}{each}" for each in range(4)]) for n in (1, 2)]
    for each in (bad, good):
        await store.bulk.enqueue(APP, each.id, 100, 2)
    spoilt = "UPDATE bulk_recipient SET variables = ? WHERE user_id = ?"
    _spoil(tmp_path, spoilt, b"\xc1\xff", "u10")
    alone = notification(START, lane=Lane.BULK)
    await store.work.accept([NewNotification(alone)])
    lease = await store.work.lease(Lane.BULK, 100, later(START, 1_000))
    assert {item.notification.user_id for item in lease.items} == {"u20", "u21", "u22", "u23", alone.user_id}
    assert await _state(store, good.id) == (JobState.RUNNING, None)
    assert await _state(store, bad.id) == (JobState.FAILED, "DecodeError")
    named = {"app": APP, "job": format_id(NotificationId(bad.id)), "error": "DecodeError"}
    assert noted.fields_of(Event.BULK_FAILED) == [named]
    _spoil(tmp_path, spoilt, b"\x81\xa4name\xa1x", "u10")
    await store.bulk.order(APP, bad.id, JobOrder.RESUME, START)
    rest = await store.work.lease(Lane.BULK, 100, later(START, 1_000))
    assert [item.notification.user_id for item in rest.items] == ["u10", "u11", "u12", "u13"]
    await store.work.settle(rest, [taken(item, START) for item in rest.items])
    await store.close()


async def test_a_job_that_cannot_be_read_is_failed_and_the_others_are_walked(tmp_path: Path) -> None:
    """As if it were any other fault of its walk."""
    store = await _opened(tmp_path, Noted())
    bad, good = [await _listed(store, n, [f"u{n}{each}" for each in range(4)]) for n in (1, 2)]
    _spoil(tmp_path, "UPDATE bulk_job SET job = ? WHERE id = ?", b"\xc1\xff", bad.id)
    failures = Failures()
    rounds = [await expand(store.bulk, Paces(), failures, START) for _ in range(FAILURES_LIMIT)]
    assert rounds[0].recipients == 4
    assert [each.id for each in rounds[-1].failed] == [bad.id]
    assert [each.id for each in await store.bulk.running()] == [good.id]
    await store.close()


async def test_a_row_of_the_journal_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    """It is told of, and those behind it are read."""
    noted = Noted()
    store = await _opened(tmp_path, noted)
    for user in ("ann", "bob", "cid"):
        await store.work.accept([NewNotification(notification(START, user=user))])
    rows = await store.journal.read(0, 10)
    assert len(rows) == 3
    _spoil(tmp_path, "UPDATE journal SET moves = ? WHERE position = ?", b"\xc1\xff", rows[1].position)
    read = await store.journal.read(0, 10)
    assert [row.moves for row in read] == [rows[0].moves, (), rows[2].moves]
    (failed,) = noted.fields_of(Event.STAGE_FAILED)
    assert (failed["stage"], failed["position"]) == ("report", rows[1].position)
    await store.close()

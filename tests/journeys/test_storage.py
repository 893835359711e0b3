"""The store in trouble: intake refuses rather than lies, outcomes are kept, and it goes on by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests import disk
from tests.journeys.balance import OPEN, balance, final_stories, listed
from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience, Ledger, Load
from tests.survival import Survived
from tests.tables import AddRow

DISK_MIB, RESERVE_MIB, LOG_MIB = 48, 4, 16
SMALL_STORE = {"reserve_bytes": RESERVE_MIB << 20, "checkpoint_bytes": LOG_MIB << 20}
"""The write-ahead log is never copied, so that every write needs new space."""
LATENCY_MS = 3000
"""The providers' answers come when the disk is full already."""
SHORT_LATENCY_MS = 1000
"""They come while intake waits for a lock, which it does for 2 s."""
MANY = 50
"""As many as may be on their way at once to providers that are so slow: none is answered before all are."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with disk.small(folder, DISK_MIB):
        yield folder


@pytest.mark.survives("the disk full", on="embedded", so="intake 503, outcomes kept, recovery by itself")
@pytest.mark.asyncio
async def test_a_full_disk_refuses_new_work_and_keeps_every_outcome(
    small_disk: Path, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Outcomes go into the reserve while intake answers 503 storage_full; with space it goes on without a restart."""
    store = {"url": f"sqlite:///{small_disk}/waypost.db", **SMALL_STORE}
    async with running(tmp_path, workers=1, store=store) as service:
        load = await _in_flight(service, rng)
        in_flight = Ledger(dict(load.ledger.entries))
        disk.fill(small_disk)
        refused = await until(lambda: _refused(service, load), "intake says that the disk is full")
        assert refused == "storage_full"
        ready, _ = await service.ask("GET", "/health/ready")
        await final_stories(service, in_flight)
        assert await _refused(service, load) == "storage_full", "the disk is full no more"
        await service.lab.heal()
        disk.free(small_disk)
        await until(lambda: _is_accepting(service, load), "intake accepts again")
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        assert ready == 503
        survived(**result.row(), refused_with=refused)


@pytest.mark.survives(
    "the disk full and its reserve used up", on="embedded", so="outcomes held, nothing more sent, recovery by itself"
)
@pytest.mark.asyncio
async def test_with_the_reserve_used_up_outcomes_are_held_and_nothing_more_is_sent(
    small_disk: Path, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """What falls due meanwhile waits; when there is space the held outcomes are written, without a second copy."""
    store = {"url": f"sqlite:///{small_disk}/waypost.db", **SMALL_STORE}
    async with running(tmp_path, workers=1, store=store) as service:
        load = await _in_flight(service, rng)
        in_flight = Ledger(dict(load.ledger.entries))
        soon = (datetime.now(UTC) + timedelta(seconds=LATENCY_MS / 1000 + 1)).isoformat()
        user = load.users[0]
        late = await load.submit(load.compose(user_id=user, scheduled_at=soon, guarantee="at_least_once"))
        disk.fill(small_disk)
        refused = await until(lambda: _refused(service, load), "intake says that the disk is full")
        disk.fill(small_disk)  # the reserve was given up, and is taken as well
        await until(lambda: _arrived(service, in_flight), "the providers have answered what was in flight")
        await until(lambda: _is_past(late.body["scheduled_at"]), "more falls due")
        disk.fill(small_disk)
        status, _ = await service.ask("GET", f"/v1/notifications/{late.id}")
        assert status == 200, "reads go on"
        details = await listed(service)
        assert any(details[id_]["status"] in OPEN for id_ in in_flight.entries), "the disk was not full"
        assert not await service.lab.arrivals(late.id), "it sends what it could not write down"
        await service.lab.heal()
        disk.free(small_disk)
        await until(lambda: _is_accepting(service, load), "intake accepts again")
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        survived(**result.row(), refused_with=refused)


@pytest.mark.survives(
    "the database locked by somebody else", on="embedded", so="intake 503, outcomes wait, recovery by itself"
)
@pytest.mark.asyncio
async def test_a_database_locked_by_somebody_else_is_waited_for(
    tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Intake answers 503 storage_busy, outcomes wait, and all goes on when the lock is gone."""
    async with running(tmp_path, workers=2) as service:
        load = await _in_flight(service, rng, SHORT_LATENCY_MS)
        in_flight = Ledger(dict(load.ledger.entries))
        with contextlib.closing(sqlite3.connect(service.store_path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = await until(lambda: _refused(service, load), "intake says that the store is busy")
            await until(lambda: _arrived(service, in_flight), "the providers have answered what was in flight")
            other.execute("ROLLBACK")
        await service.lab.heal()
        assert refused == "storage_busy"
        await until(lambda: _is_accepting(service, load), "intake accepts again")
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        survived(**result.row(), refused_with=refused)


@pytest.mark.asyncio
async def test_a_damaged_database_is_said_to_be_damaged(tmp_path: Path, rng: random.Random, table: AddRow) -> None:
    """Intake and readiness say so, the process lives; a start on it ends with one clear line."""
    async with running(tmp_path, workers=1) as service:
        audience = Audience(service)
        await audience.register(4)
        load = Load(service, audience, rng)
        await load.run(4, limit=200)
        await balance(service, load.ledger)
        await service.ask("GET", "/health/ready")
        _damage(service.store_path)
        refused = await until(lambda: _refused(service, load), "intake says that the database is damaged")
        assert refused == "storage_broken"
        ready, said = await service.ask("GET", "/health/ready")
        assert ready == 503
        assert said["checks"]["store"] != "ok"
        alive, _ = await service.ask("GET", "/health/live")
        assert alive == 200
        service.end()
        _damage(service.store_path)
        with pytest.raises(AssertionError, match="storage_broken: the database is damaged"):
            await service.start()
        table("the store", trouble="damaged", refused_with=refused)


async def _in_flight(service: Service, rng: random.Random, latency_ms: int = LATENCY_MS) -> Load:
    """Accepted and with the providers, which have not answered yet."""
    audience = Audience(service)
    await audience.register(8)
    load = Load(service, audience, rng)
    await service.lab.script({"do": {"latency_ms": latency_ms}})
    bodies = [load.compose(scheduled_at=None, guarantee="at_least_once") for _ in range(MANY)]
    entries = await asyncio.gather(*(load.submit(body) for body in bodies))
    devices = sum(len(entry.tokens) for entry in entries)

    async def all_met() -> bool:
        return sum(await service.lab.met()) >= devices

    await until(all_met, "everything is with the providers")
    return load


async def _refused(service: Service, load: Load) -> str | None:
    """The code with which the next notification is refused; one that is accepted is kept in the ledger."""
    body = load.compose(scheduled_at=None)
    status, answer = await service.ask("POST", "/v1/notifications", body, once=True)
    if status == 202:
        load.ledger.note(answer, body, load.tokens_of(body["user_id"]))
        return None
    assert status == 503, answer
    return str(answer["code"])


async def _is_accepting(service: Service, load: Load) -> bool:
    return await _refused(service, load) is None


async def _arrived(service: Service, ledger: Ledger) -> bool:
    copies = await service.lab.copies()
    return all(len(copies.get(id_, ())) == len(entry.tokens) for id_, entry in ledger.entries.items())


async def _is_past(moment: str) -> bool:
    return datetime.now(UTC) > datetime.fromisoformat(moment)


def _damage(database: Path) -> None:
    """Overwrite the file and its log with noise."""
    for path in (database, database.with_name(database.name + "-wal")):
        if path.exists():
            with path.open("r+b") as file:
                file.write(os.urandom(path.stat().st_size))

"""An upgrade under load, over a migration: nothing that the version before accepted is lost or sent twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.faults.versions import ROOT, as_of, installed, with_a_later_migration, with_one_more
from tests.journeys.balance import balance
from tests.journeys.harness import Json, Service, running, until
from tests.journeys.load import Audience, Entry, Ledger, Load
from tests.journeys.processes import environment_of_a_service
from tests.migrations_in_git import since_when_migrations_are_these
from tests.survival import Survived
from waypost.stores.sql.migrations import NOTED_IN, latest

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(900)]

DRAINED_S = 120.0
"""For what a machine that stands still at times has in flight when it is told to end."""


class Versions(NamedTuple):
    """Interpreters."""

    this: str
    later: str
    """Of a version with a migration more."""
    latest: str
    """Of one with two."""


@pytest.fixture(scope="module")
def versions() -> Iterator[Versions]:
    """This version and those that have migrations more, as installed from their wheels."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        this = installed(ROOT, folder / "this")
        later = installed(with_a_later_migration(folder / "tree"), folder / "later")
        yield Versions(this, later, with_one_more(folder / "later", folder / "latest"))


@pytest.mark.survives("rolling upgrade over a migration", on="postgres", so="both versions work at once, no loss")
async def test_two_versions_share_a_store_while_one_takes_over_from_the_other(
    versions: Versions, postgres: Postgres, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """The old one alone, the new one joins and migrates, both, the new one alone; callers never stop."""
    run_sql(postgres.url, "DROP DATABASE IF EXISTS upgraded WITH (FORCE)", "CREATE DATABASE upgraded")
    url = beside(postgres.url, "upgraded")
    shared: Json = {"workers": 1, "drain_timeout_s": DRAINED_S}
    async with running(tmp_path, python=versions.this, **shared, store=_store(url, tmp_path / "run")) as this:
        audience = Audience(this)
        await audience.register(20)
        at_this, calling = _called(this, audience, rng)
        await at_this.grown(40)
        later = this.beside("later", **shared, store=_store(url, tmp_path / "later" / "run"))
        later.python = versions.later
        try:
            assert _revision(url) == latest()
            await later.start()
            assert _revision(url) > latest()
            at_later, calling_later = _called(later, audience, rng)
            await asyncio.gather(at_this.grown(60), at_later.grown(60))
            both = len(at_this.ledger.entries)
            await _are_known(at_later, at_this)
            await _are_known(at_this, at_later)
            os.kill(this.pid, signal.SIGTERM)
            this.url = later.url  # as whoever balances the load does with what gets no answer
            assert await this.ended() == 0
            await asyncio.gather(at_this.grown(30), at_later.grown(30))
            for load in (at_this, at_later):
                load.stop()
            await asyncio.gather(calling, calling_later)
            assert both > 0 and not [*this.log("stage.failed"), *later.log("stage.failed")]
            result = await balance(later, Ledger(at_this.ledger.entries | at_later.ledger.entries))
            assert result.duplicates == 0
            survived(**result.row(), by_the_version_before=both)
        finally:
            later.end()


@pytest.mark.survives("a restart with a newer version, over a migration", on="sqlite", so="a short pause, no loss")
async def test_a_newer_version_goes_on_where_the_one_before_was_stopped(
    versions: Versions, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """A file is served by one ``waypost serve``: callers come again until the other has started."""
    async with running(tmp_path, python=versions.this, workers=2, drain_timeout_s=DRAINED_S) as service:
        audience = Audience(service)
        await audience.register(20)
        load, calling = _called(service, audience, rng)
        await load.grown(60)
        os.kill(service.pid, signal.SIGTERM)
        assert await service.ended() == 0
        by_before = len(load.ledger.entries)
        service.python = versions.later
        await service.start()
        await load.grown(60)
        load.stop()
        await calling
        result = await balance(service, load.ledger)
        assert result.duplicates == 0 and not service.log("stage.failed")
        survived(**result.row(), by_the_version_before=by_before)


@pytest.mark.survives("a way back after an upgrade", on="sqlite", so="one version works on, two need the backup")
async def test_one_version_back_works_on_and_two_are_refused_until_the_backup_is_restored(
    versions: Versions, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """With open work, some of which is sent by each version that runs; what a restore forgets is sent again."""
    async with running(tmp_path, python=versions.this, workers=1) as service:
        kept = await _open_work(service, rng)
        await _goes_on_as(service, versions.later, kept[:5])
        await _goes_on_as(service, versions.this, kept[5:10])  # one back: its schema is ahead, and it lives with that
        await _told(service, "backup", str(tmp_path / "before.db"))
        await _goes_on_as(service, versions.latest, kept[10:15])
        await _stopped(service)

        service.python = versions.this  # two back
        status, said = await _ran(service, "serve")
        assert status == 1
        assert "upgrade Waypost" in said
        status, said = await _ran(service, "doctor", "--offline")
        assert status == 1
        assert "restore the backup from before the upgrade" in said
        await _told(service, "restore", "--force", str(tmp_path / "before.db"))
        await service.start()
        await _sent_now(service, kept[10:])
        copies = await service.lab.copies()
        twice = {each.id for each in kept if max(copies[each.id].values()) > 1}
        assert twice == {each.id for each in kept[10:15]}, "sent after the backup, so sent again"
        assert all(len(copies[each.id]) == len(each.tokens) for each in kept)
        survived(accepted=len(kept), sent=len(kept), lost=0, twice=len(twice))


@pytest.fixture(scope="module")
def oldest() -> Iterator[str]:
    """The interpreter of the oldest version whose migrations are today's, as installed from its wheel."""
    commit = since_when_migrations_are_these(ROOT)
    if commit is None:
        pytest.skip("no commit has today's migrations: they have just been changed, or this is no clone")
    with tempfile.TemporaryDirectory() as made:
        yield installed(as_of(commit, Path(made) / "tree"), Path(made) / "oldest")


@pytest.mark.survives("an upgrade from the oldest version with this schema", on="sqlite", so="both go on, sent once")
async def test_a_store_that_the_oldest_version_with_this_schema_made_goes_on_in_both(
    oldest: str, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Until there is a release that is the first commit that has today's migrations; features have added tables since.

    Each of the two sends some of what is open, in turns, and the older one meets what the newer one has written.
    """
    async with running(tmp_path, python=oldest, workers=1) as service:
        kept, this = await _open_work(service, rng), sys.executable
        await _sent_now(service, kept[:5])
        await _goes_on_as(service, this, kept[5:10])
        await _goes_on_as(service, oldest, kept[10:15])
        await _goes_on_as(service, this, kept[15:])
        copies = await service.lab.copies()
        assert all(max(copies[each.id].values()) == 1 and len(copies[each.id]) == len(each.tokens) for each in kept)
        survived(accepted=len(kept), sent=len(kept), lost=0, twice=0)


async def _open_work(service: Service, rng: random.Random) -> Sequence[Entry]:
    """Notifications that wait for their time."""
    audience = Audience(service)
    await audience.register(5)
    load = Load(service, audience, rng)
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    plain = {"urgency": "normal", "kind": "visible", "title": "News", "guarantee": "at_least_once"}
    return await load.submit_together(
        [load.compose(**plain, user_id=load.users[n % 5], scheduled_at=soon) for n in range(20)]
    )


async def _goes_on_as(service: Service, python: str, entries: Sequence[Entry]) -> None:
    """Another version takes over, and sends some of what is open."""
    await _stopped(service)
    service.python = python
    await service.start()
    await _sent_now(service, entries)


async def _stopped(service: Service) -> None:
    os.kill(service.pid, signal.SIGTERM)
    assert await service.ended() == 0


async def _sent_now(service: Service, entries: Sequence[Entry]) -> None:
    """What waits for its time is given one that is over."""
    for entry in entries:
        now = {"scheduled_at": datetime.now(UTC).isoformat()}
        status, answer = await service.ask("PATCH", f"/v1/notifications/{entry.id}", now)
        assert status == 200, answer

    async def are_sent() -> bool:
        return all([await service.is_sent(entry.id) for entry in entries])

    await until(are_sent, "all of them are sent")


async def _told(service: Service, *command: str) -> None:
    status, said = await _ran(service, *command)
    assert status == 0, said


async def _ran(service: Service, command: str, *options: str) -> tuple[int, str]:
    """A command of the version that is installed now: its status, and all that it says."""
    call = [service.python, "-m", "waypost.cli", command, "--config", str(service.config_path), *options]
    done = await asyncio.to_thread(
        subprocess.run, call, env=environment_of_a_service(None), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def _store(url: str, run_dir: Path) -> Json:
    return {"url": url, "run_dir": str(run_dir)}


def _revision(url: str) -> str:
    with psycopg.connect(url) as connection:
        ((revision,),) = connection.execute(f"SELECT version_num FROM {NOTED_IN}".encode()).fetchall()  # noqa: S608 - ours
        return str(revision)


def _called(service: Service, audience: Audience, rng: random.Random) -> tuple[Load, asyncio.Task[None]]:
    load = Load(service, audience, rng)
    return load, asyncio.create_task(load.run(4, limit=1_000_000, pause_s=0.03))


async def _are_known(load: Load, said_to: Load) -> None:
    """What was accepted there with a key is known here."""
    for entry in said_to.keyed(5):
        assert (await load.submit(entry.body)).id == entry.id

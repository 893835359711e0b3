"""An upgrade under load, over a migration: nothing that the version before accepted is lost or sent twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.faults.versions import ROOT, installed, with_a_later_migration
from tests.journeys.balance import balance
from tests.journeys.harness import Json, Service, running
from tests.journeys.load import Audience, Ledger, Load
from tests.survival import Survived
from waypost.stores.sql.migrations import NOTED_IN, latest

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(900)]

DRAINED_S = 120.0
"""For what a machine that stands still at times has in flight when it is told to end."""


class Versions(NamedTuple):
    """Interpreters."""

    this: str
    later: str


@pytest.fixture(scope="module")
def versions() -> Iterator[Versions]:
    """This version and one that has a migration more, as installed from their wheels."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        yield Versions(
            installed(ROOT, folder / "this"), installed(with_a_later_migration(folder / "tree"), folder / "later")
        )


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

"""An upgrade under load, over the newest migration: nothing that the version before accepted is lost or sent twice."""

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
from scripts.services.service import Missing
from tests.engines import beside, run_sql
from tests.faults.versions import ROOT, before_newest_migration, checked_out, installed
from tests.journeys.balance import balance
from tests.journeys.harness import Json, Service, running
from tests.journeys.load import Audience, Ledger, Load
from tests.survival import Survived
from waypost.stores.sql.migrations import latest

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(900)]

DRAINED_S = 120.0
"""For what a machine that stands still at times has in flight when it is told to end."""


class Versions(NamedTuple):
    """Interpreters."""

    before: str
    this: str


@pytest.fixture(scope="module")
def versions() -> Iterator[Versions]:
    """The version before the newest migration and this one, as installed from their wheels."""
    try:
        commit = before_newest_migration()
    except Missing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        yield Versions(
            installed(checked_out(commit, folder / "tree"), folder / "before"), installed(ROOT, folder / "this")
        )


@pytest.mark.survives("rolling upgrade over a migration", on="postgres", so="both versions work at once, no loss")
async def test_two_versions_share_a_store_while_one_takes_over_from_the_other(
    versions: Versions, postgres: Postgres, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """The old one alone, the new one joins and migrates, both, the new one alone; callers never stop."""
    run_sql(postgres.url, "DROP DATABASE IF EXISTS upgraded WITH (FORCE)", "CREATE DATABASE upgraded")
    url = beside(postgres.url, "upgraded")
    shared: Json = {"workers": 1, "drain_timeout_s": DRAINED_S}
    async with running(tmp_path, python=versions.before, **shared, store=_store(url, tmp_path / "run")) as before:
        audience = Audience(before)
        await audience.register(20)
        at_before, calling = _called(before, audience, rng)
        await at_before.grown(40)
        this = before.beside("this", **shared, store=_store(url, tmp_path / "this" / "run"))
        this.python = versions.this
        try:
            assert _revision(url) < latest(), "the version before has another schema"
            await this.start()
            assert _revision(url) == latest()
            at_this, calling_this = _called(this, audience, rng)
            await asyncio.gather(at_before.grown(60), at_this.grown(60))
            both = len(at_before.ledger.entries)
            await _are_known(at_this, at_before)
            await _are_known(at_before, at_this)
            os.kill(before.pid, signal.SIGTERM)
            before.url = this.url  # as whoever balances the load does with what gets no answer
            assert await before.ended() == 0
            await asyncio.gather(at_before.grown(30), at_this.grown(30))
            for load in (at_before, at_this):
                load.stop()
            await asyncio.gather(calling, calling_this)
            assert both > 0 and not [*before.log("stage.failed"), *this.log("stage.failed")]
            result = await balance(this, Ledger(at_before.ledger.entries | at_this.ledger.entries))
            assert result.duplicates == 0
            survived(**result.row(), by_the_version_before=both)
        finally:
            this.end()


@pytest.mark.survives("a restart with a newer version, over a migration", on="sqlite", so="a short pause, no loss")
async def test_a_newer_version_goes_on_where_the_one_before_was_stopped(
    versions: Versions, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """A file is served by one ``waypost serve``: callers come again until the other has started."""
    async with running(tmp_path, python=versions.before, workers=2, drain_timeout_s=DRAINED_S) as service:
        audience = Audience(service)
        await audience.register(20)
        load, calling = _called(service, audience, rng)
        await load.grown(60)
        os.kill(service.pid, signal.SIGTERM)
        assert await service.ended() == 0
        by_before = len(load.ledger.entries)
        service.python = versions.this
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
        ((revision,),) = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return str(revision)


def _called(service: Service, audience: Audience, rng: random.Random) -> tuple[Load, asyncio.Task[None]]:
    load = Load(service, audience, rng)
    return load, asyncio.create_task(load.run(4, limit=1_000_000, pause_s=0.03))


async def _are_known(load: Load, said_to: Load) -> None:
    """What was accepted there with a key is known here."""
    for entry in said_to.keyed(5):
        assert (await load.submit(entry.body)).id == entry.id

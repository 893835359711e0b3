"""The primary of PostgreSQL is killed under load, and its standby promoted: what is lost, and what is sent twice."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import psycopg
import pytest

from scripts.services.postgres import PostgresPair
from tests.engines import run_sql
from tests.journeys.balance import OPEN, balance, listed
from tests.journeys.harness import Json, Kill, Service, running, until
from tests.journeys.load import Audience, Ledger, Load
from tests.shows import shows
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600), pytest.mark.engines]

DATABASE = "failover"


class Keyed(Load):
    """Every notification has an idempotency key: what is refused while its commit is in doubt is said again."""

    def compose(self, **fields: object) -> Json:
        """See Load."""
        body = super().compose(**fields)
        return body | {"idempotency_key": f"{self._series}-{self._count}"}


def settings_of(pair: PostgresPair, folder: Path) -> Json:
    """Two workers whose URL names both servers."""
    run_sql(pair.url_of(1), f"CREATE DATABASE {DATABASE}")
    store = {"url": pair.url_to(DATABASE), "run_dir": str(folder / "run")}
    return {"workers": 2, "store": store}


async def failed_over(pair: PostgresPair, service: Service, load: Load) -> tuple[Kill, float]:
    """Kill the primary, promote the standby, and let callers go on; and the seconds until one was served again."""
    before = time.time()
    await asyncio.to_thread(pair.kill)
    await asyncio.to_thread(pair.promote)

    async def is_ready() -> bool:
        return (await service.ask("GET", "/health/ready"))[0] == 200

    await until(is_ready, "it is ready again")
    await load.grown(1)
    away_s = round(time.time() - before, 1)
    await load.grown(60)
    return Kill(before, time.time()), away_s


@shows("S3-128")
@pytest.mark.survives("PostgreSQL failed over, synchronous standby", on="postgres", so="no loss, nothing stuck")
@pytest.mark.parametrize(
    "always", [{"guarantee": None}, pytest.param({}, marks=pytest.mark.long)], ids=["at least once", "as asked for"]
)
async def test_a_failover_to_a_synchronous_standby_loses_nothing(
    always: dict[str, None],
    postgres_pair: PostgresPair,
    tmp_path: Path,
    rng: random.Random,
    survived: Survived,
) -> None:
    """Callers go on; what is sent at most once is sent at most once, and may end `unknown` after half a minute."""
    postgres_pair.synchronous()
    async with running(tmp_path, **settings_of(postgres_pair, tmp_path)) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Keyed(service, audience, rng, **always)
        callers = asyncio.create_task(load.run(6, pause_s=0.02))
        await load.grown(100)
        kill, away_s = await failed_over(postgres_pair, service, load)
        load.stop()
        await callers
        result = await balance(service, load.ledger, kills=[kill])
        assert service.log("stage.failed") == []
        survived(**result.row(), away_s=away_s)


@pytest.mark.long
@pytest.mark.survives("PostgreSQL failed over, standby behind", on="postgres", so="the last moments lost, none stuck")
async def test_a_failover_to_a_standby_that_is_behind_loses_what_came_after_and_leaves_nothing_open(
    postgres_pair: PostgresPair, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """What was accepted before is delivered, once more where that was forgotten; nothing that there is stays open."""
    async with running(tmp_path, **settings_of(postgres_pair, tmp_path)) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Keyed(service, audience, rng, guarantee=None)
        callers = asyncio.create_task(load.run(6, pause_s=0.02))
        await load.grown(100)
        await replayed(postgres_pair)
        kept = dict(load.ledger.entries)
        await asyncio.to_thread(postgres_pair.fall_behind)
        await load.grown(60)
        behind = len(load.ledger.entries)
        _, away_s = await failed_over(postgres_pair, service, load)
        load.stop()
        await callers
        lost = await nothing_stays_open(service, load.ledger)
        assert not lost & kept.keys(), "the standby had it"
        copies = await service.lab.copies()
        unsent = {one: entry for one, entry in load.ledger.entries.items() if one not in copies and one not in lost}
        assert not unsent, "it reads sent and never was"
        twice = sum(n - 1 for tokens in copies.values() for n in tokens.values())
        freed = sum(each["count"] for each in service.log("leases.let_go"))
        row = {"accepted": len(load.ledger.entries), "lost": len(lost), "twice": twice}
        survived(**row, away_s=away_s, accepted_while_behind=behind - len(kept), leases_let_go=freed)


async def replayed(pair: PostgresPair) -> None:
    """Return once the standby has all that was written until now."""

    def wait() -> None:
        with psycopg.connect(pair.url_of(1), autocommit=True) as primary:
            sent = primary.execute("SELECT pg_current_wal_lsn()").fetchone()
            assert sent is not None
            while not primary.execute("SELECT 1 FROM pg_stat_replication WHERE flush_lsn >= %s", sent).fetchone():
                primary.execute("SELECT pg_sleep(0.01)")

    await asyncio.to_thread(wait)


async def nothing_stays_open(service: Service, ledger: Ledger) -> set[str]:
    """Wait until all that the service lists is final; what of the ledger it does not know."""

    async def settled() -> dict[str, Json]:
        details = await listed(service)
        return {} if any(each["status"] in OPEN for each in details.values()) else details

    details = await until(settled, "nothing is open")
    return set(ledger.entries.keys() - details.keys())

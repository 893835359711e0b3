"""Two machines on one PostgreSQL, of which one stands still in the middle of accepting: the other goes on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from pathlib import Path

import aiohttp
import psycopg
import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.journeys.harness import Service, running, until

_OPEN = """\
SELECT pid FROM pg_stat_activity
WHERE datname = 'frozen' AND application_name = 'waypost' AND state = 'idle in transaction' AND backend_xid IS NOT NULL
"""


@pytest.mark.long  # make test shows it without a second machine: contract/test_postgres_intake.py
@pytest.mark.timeout(300)
@pytest.mark.asyncio
async def test_a_machine_that_stands_still_amid_an_accept_stops_nobody(
    postgres_alone: Postgres, tmp_path: Path
) -> None:
    """SIGSTOP between two statements of its transaction; the other accepts while that is still open."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS frozen WITH (FORCE)", "CREATE DATABASE frozen")
    url = beside(postgres_alone.url, "frozen")

    def store(name: str) -> dict[str, str]:
        return {"url": url, "run_dir": str(tmp_path / name)}

    said = itertools.count()
    async with running(tmp_path, workers=1, roles=["api"], store=store("run")) as well:
        other = well.beside("other", workers=1, roles=["api"], store=store("run-other"))
        await other.start()
        calling = [asyncio.create_task(_call(other, n)) for n in range(4)]

        async def answered_meanwhile() -> bool:
            (pid,) = other.worker_pids()
            os.kill(pid, signal.SIGSTOP)
            try:
                held = await asyncio.to_thread(_asked, url)
                if not held:
                    return False  # it was between two transactions
                answers = [await well.ask("POST", "/v1/notifications", _said(f"well-{next(said)}")) for _ in range(5)]
                assert [status for status, _ in answers] == [202] * 5, answers
                return held <= await asyncio.to_thread(_asked, url)
            finally:
                os.kill(pid, signal.SIGCONT)

        try:
            await until(answered_meanwhile, "answers while the transaction of the other is open")
        finally:
            for task in calling:
                task.cancel()
            await asyncio.gather(*calling, return_exceptions=True)
            other.end()


async def _call(service: Service, n: int) -> None:
    count = 0
    while True:
        count += 1
        with contextlib.suppress(aiohttp.ClientError):
            await service.ask("POST", "/v1/notifications", _said(f"other-{n}-{count}"))


def _said(user: str) -> dict[str, str]:
    return {"user_id": user, "title": user, "idempotency_key": user}


def _asked(url: str) -> set[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {row[0] for row in connection.execute(_OPEN.encode()).fetchall()}

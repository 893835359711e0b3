"""The drop-in as processes, on a database and a stream prepared as their owner would have them, with kills between."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from scripts.services.postgres import Postgres
from scripts.services.redis import Redis
from tests.adapters.stream.owner import GROUP, LOG, STREAM, TOKENS, Owner, until
from tests.engines import beside, run_sql
from tests.journeys.lab import Lab
from tests.shows import shows
from tests.tables import AddRow
from waypost.config.drop_in import REQUIRED

pytestmark = pytest.mark.asyncio

JOBS = 160
SOME_FAIL = {"where": "fcm", "match": {"probability": 0.05}, "do": {"answer": {"status": 503, "reason": "UNAVAILABLE"}}}


class Process:
    """One ``waypost serve --profile notifications-service``."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._log = folder / "drop-in.log"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
        with self._log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "waypost.cli", "serve", "--profile", "notifications-service"],
                env=kept | environment,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def kill(self) -> None:
        """``kill -9``, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    async def stop(self) -> tuple[int, bytes]:
        """SIGTERM; the exit status, and what it wrote to standard output."""
        self._process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> tuple[int, bytes]:
        """As above, once it has ended by itself."""
        said, _ = await asyncio.to_thread(self._process.communicate)
        return self._process.returncode, said


def lines(folder: Path) -> list[dict[str, Any]]:
    """The log of all processes: each line is an object of JSON, but for a last one that was cut off by a kill."""
    return [json.loads(line) for line in (folder / "drop-in.log").read_text().splitlines()]


@pytest.fixture
def owner(postgres_alone: Postgres, redis_alone: Redis) -> Iterator[Owner]:
    """Their servers, which this test may harm; their tables and their group are there, and rows of the time before."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS owners WITH (FORCE)", "CREATE DATABASE owners")
    redis_alone.ask(redis_alone.node(1), "FLUSHALL")
    owner = Owner(beside(postgres_alone.url, "owners"), redis_alone.url)
    owner.sql(TOKENS)
    owner.sql(LOG)
    owner.redis.xgroup_create(STREAM, GROUP, 0, mkstream=True)
    yield owner
    owner.close()


@shows("S0-27", "S0-31", "S0-33")
@pytest.mark.timeout(600)
async def test_every_entry_ends_once_whatever_is_killed(
    owner: Owner, postgres_alone: Postgres, redis_alone: Redis, tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """Requirements S0-27, S0-31 and S0-33: processes killed, Redis restarted, PostgreSQL killed, while jobs come in.

    Each job has one row with its right end, every entry is acknowledged, dead tokens are gone, no table has changed.
    """
    async with aiohttp.ClientSession() as session:
        lab = Lab(tmp_path / "lab", session)
        await lab.start()
        processes: list[Process] = []
        try:
            users = {f"user-{n}": [owner.device(f"user-{n}") for _ in range(n % 3)] for n in range(12)}
            dead = {tokens[0] for tokens in users.values() if len(tokens) == 2 and rng.random() < 0.5}
            for token in dead:
                await lab.ask("POST", f"/tokens/{token}/kill", {})
            await lab.script(SOME_FAIL)
            before = owner.definitions()
            environment = environment_of(owner, lab)
            processes += [Process(tmp_path, environment) for _ in range(2)]
            told: dict[int, str] = {}
            await _tell(owner, told, users, rng)
            processes[0].kill()
            processes[0] = Process(tmp_path, environment)
            await _tell(owner, told, users, rng)
            redis_alone.stop()
            redis_alone.start()
            await _tell(owner, told, users, rng)
            postgres_alone.kill()
            add_jobs(owner, told, users, rng)
            await until(lambda: '"event":"store.away"' in (tmp_path / "drop-in.log").read_text())  # then less is read
            postgres_alone.start()
            processes[1].kill()
            await _ended(owner, told)
            exits = [await processes[0].stop()]
            assert exits == [(0, b"")]
            assert owner.definitions() == before
            assert owner.tokens().isdisjoint(dead)
            copies = await copies_of(session, lab)
            _compare(owner, told, users, dead, copies)
            extra = sum(n - 1 for n in copies.values())
            faults = "two of three processes killed, Redis restarted, PostgreSQL killed, 5 % of 503"
            table("the drop-in under load", faults=faults, jobs=len(told), messages=len(copies), copies=extra)
        finally:
            for process in processes:
                process.kill()
            lab.end()
    events = Counter(line["event"] for line in lines(tmp_path))
    assert events["notifications.max_retries"] == 0
    assert {line["service"] for line in lines(tmp_path)} == {"notifications-service"}


@shows("S0-28")
@pytest.mark.parametrize("missing", REQUIRED)
async def test_a_variable_that_is_missing_is_named_in_the_log(tmp_path: Path, missing: str) -> None:
    """Requirement S0-28."""
    given = {
        "REDIS_URL": "redis://x",
        "DATABASE_URL": "postgres://x",
        "GOOGLE_APPLICATION_CREDENTIALS": "x",
        missing: "",
    }
    process = Process(tmp_path, given)
    assert await process.ended() == (1, b"")
    (line,) = lines(tmp_path)
    assert (line["event"], line["why"]) == ("process.refused", f"{missing}: must be set")


def environment_of(owner: Owner, lab: Lab) -> dict[str, str]:
    return {
        "REDIS_URL": owner.redis_url,
        "DATABASE_URL": owner.postgres_url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(lab.directory / "fcm.json"),
        "FCM_ENDPOINT": lab.urls["fcm"],
        "FCM_CA_FILE": str(lab.directory / "ca.pem"),
        "AUTOCLAIM_MIN_IDLE_MS": "3000",
        "MAX_DELIVERY_COUNT": "50",
    }


async def _tell(owner: Owner, told: dict[int, str], users: dict[str, list[str]], rng: random.Random) -> None:
    """Some more jobs, until some of them are read."""
    add_jobs(owner, told, users, rng)
    await until(lambda: owner.unread() < JOBS // 4)


def add_jobs(owner: Owner, told: dict[int, str], users: dict[str, list[str]], rng: random.Random) -> None:
    """Some more jobs, in both forms."""
    for _ in range(JOBS // 4):
        number, user = len(told), rng.choice(list(users))
        job = {"userId": user, "title": "Hello", "channel": "orders"}
        if number % 2:
            owner.add(**job, data={"number": number})
        else:
            owner.add_payload(**job, data={"number": number})
        told[number] = user


async def _ended(owner: Owner, told: dict[int, str]) -> None:
    await until(lambda: owner.unread() == 0 and owner.pending() == {}, 300)
    assert len(owner.log()) == len(told)


async def copies_of(session: aiohttp.ClientSession, lab: Lab) -> Counter[tuple[int, str]]:
    """How often each job was taken for each token."""
    async with session.get(lab.urls["admin"] + "/received?gateway=fcm&limit=100000") as answer:
        received = (await answer.json())["received"]
    taken = [each for each in received if each["accepted"]]
    return Counter((int(each["payload"]["message"]["data"]["number"]), each["token"]) for each in taken)


def _compare(
    owner: Owner, told: dict[int, str], users: dict[str, list[str]], dead: set[str], copies: Counter[tuple[int, str]]
) -> None:
    """One row a job; what it says is what the lab took; everybody got everything."""
    rows = {row["payload"]["number"]: row["status"] for row in owner.log()}
    assert set(rows) == set(told)
    expected = {(number, token) for number, user in told.items() for token in users[user] if token not in dead}
    assert set(copies) == expected
    for number, user in told.items():
        alive = [token for token in users[user] if token not in dead]
        ends = {"sent", "partial"} if alive else {"no_tokens", "failed"}
        assert rows[number] in (ends if dead & set(users[user]) else {"sent" if alive else "no_tokens"})

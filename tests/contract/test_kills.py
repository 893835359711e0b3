"""Kill points (the table of the design): after a kill between any two steps, all is found as if it had been planned."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from tests.contract import victim
from tests.contract.balanced import check_balance
from tests.contract.bench import Bench
from tests.contract.kills import Scenario
from tests.contract.rollup_scenarios import ROLLING_UP
from tests.contract.scenarios import SCENARIOS
from tests.contract.schedule_scenarios import SCHEDULED
from tests.contract.stores import LEASE_MS, MemoryUnderTest
from tests.contract.victim import Place
from tests.engines import run_sql
from tests.shows import shows
from tests.tables import AddRow
from waypost.ports.work import Work

TABLE = "killed between every two steps"
MOST_STEPS = 200
PATIENCE_S = 120
ON_POSTGRES = ("accept", "settle part", pytest.param("fallback", marks=pytest.mark.long))


ON_SQL = SCENARIOS | ROLLING_UP | SCHEDULED
"""With what only stores on SQL do."""


@pytest.fixture(scope="module")
def victims() -> ForkServerContext:
    """Fresh processes that start fast: forked by a server that has opened nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.contract.victim"])
    return context


@shows("S1-143", "S2-06", "S2-21", "S3-29", "S4-16", "S4-36")
@pytest.mark.parametrize("name", ON_SQL)
def test_sqlite_killed_before_every_statement(
    name: str, tmp_path: Path, empty_database: Path, victims: ForkServerContext, table: AddRow
) -> None:
    """SIGKILL before each statement, before COMMIT, and after COMMIT before the answer."""
    prepared = _prepared(ON_SQL[name], tmp_path, empty_database)
    found: list[str] = []
    steps: list[str] = []
    for n in range(1, MOST_STEPS):
        folder = tmp_path / str(n)
        folder.mkdir()
        database = Path(shutil.copy(prepared, folder / "waypost.db"))
        place = Place(f"sqlite:///{database}")
        killed_before = _play(victims, place, name, n)
        found.append(asyncio.run(_find(ON_SQL[name], place)))
        shutil.rmtree(folder)
        if killed_before is None:
            break
        steps.append(killed_before)
    assert "COMMIT" in steps, "the last statement of a transaction is a step too"
    assert victim.ANSWER in steps
    assert steps[-1] == victim.ANSWER, "walked to the end"
    table(TABLE, engine="sqlite", row=ON_SQL[name].row, kills=len(steps), found=" | ".join(dict.fromkeys(found)))


@shows("S4-07", "S4-16")
@pytest.mark.engines
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("accept", "postgres"),
        ("settle part", "postgres"),
        pytest.param("roll up", "postgres", marks=pytest.mark.long),
        pytest.param("whole life", "postgres", marks=pytest.mark.long),
        pytest.param("hand over", "handed over", marks=pytest.mark.long),
        pytest.param("whole life", "handed over", marks=pytest.mark.long),
    ],
)
def test_postgres_killed_before_every_statement(
    name: str,
    engine: str,
    postgres_database: str,
    empty_postgres: Callable[[], None],
    victims: ForkServerContext,
    table: AddRow,
) -> None:
    """The same, of what differs there: how it begins, writes, commits and leases; the rest is the same code."""
    place = Place(postgres_database, engine == "handed over")
    _killed_on_postgres(engine, name, victims, table, place, empty_postgres)


def _killed_on_postgres(
    engine: str,
    name: str,
    victims: ForkServerContext,
    table: AddRow,
    place: Place,
    empty: Callable[[], None],
) -> None:
    found: list[str] = []
    steps: list[str] = []
    for n in range(1, MOST_STEPS):
        empty()
        asyncio.run(_prepare(ON_SQL[name], place))
        killed_before = _play(victims, place, name, n)
        run_sql(place.url, "DELETE FROM member")  # its time is over
        found.append(asyncio.run(_find(ON_SQL[name], place)))
        if killed_before is None:
            break
        steps.append(killed_before)
    assert "COMMIT" in steps, "the last statement of a transaction is a step too"
    assert steps[-1] == victim.ANSWER, "walked to the end"
    table(TABLE, engine=engine, row=ON_SQL[name].row, kills=len(steps), found=" | ".join(dict.fromkeys(found)))


def _prepared(scenario: Scenario, tmp_path: Path, empty_database: Path) -> Path:
    prepared = Path(shutil.copy(empty_database, tmp_path / "prepared.db"))
    asyncio.run(_prepare(scenario, Place(f"sqlite:///{prepared}")))
    return prepared


async def _prepare(scenario: Scenario, place: Place) -> None:
    store = place.under_test()
    await store.open()
    await scenario.prepare(Bench(store, (await store.open_workers(1))[0]))
    await store.close()


def _play(victims: ForkServerContext, place: Place, name: str, n: int) -> str | None:
    """Play it in a process of its own; the statement it was killed before, None if it came to the end."""
    hears, says = victims.Pipe(duplex=False)
    process = victims.Process(target=victim.play, args=(place, name, n, says))
    process.start()
    says.close()
    process.join(PATIENCE_S)
    if process.is_alive():
        process.kill()
        process.join()
        pytest.fail(f"the victim hung on its way to step {n}")
    if process.exitcode == 0:
        return None
    assert process.exitcode == -signal.SIGKILL
    said: str = hears.recv()
    return said


async def _find(scenario: Scenario, place: Place) -> str:
    store = place.under_test()
    await store.open()
    try:
        bench = Bench(store, (await store.open_workers(1))[0])
        found = await scenario.find(bench)
        await check_balance(store)
        return found
    finally:
        await store.close()


class _Killed(Exception):
    """The worker is gone."""


class _Mortal:
    """A worker that is gone before its *n*-th call."""

    def __init__(self, worker: Work, n: int) -> None:
        self._worker = worker
        self._left = n

    def __getattr__(self, name: str) -> Any:
        self._left -= 1
        if self._left <= 0:
            raise _Killed
        return getattr(self._worker, name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_memory_gone_between_every_two_calls(name: str, table: AddRow) -> None:
    """A call of the memory adapter is one step of the loop: between two calls is all there is."""
    found: list[str] = []
    for n in range(1, MOST_STEPS):
        outcome, went_through = asyncio.run(_gone_before(SCENARIOS[name], n))
        found.append(outcome)
        if went_through:
            break
    assert len(found) >= 2
    table(TABLE, engine="memory", row=SCENARIOS[name].row, kills=len(found), found=" | ".join(dict.fromkeys(found)))


async def _gone_before(scenario: Scenario, n: int) -> tuple[str, bool]:
    store = MemoryUnderTest()
    (worker,) = await store.open_workers(1)
    await scenario.prepare(Bench(store, worker))
    store.clock.advance(LEASE_MS)
    mortal = Bench(store, worker)
    await scenario.begin(mortal)
    mortal.worker = _Mortal(worker, n)
    try:
        await scenario.play(mortal)
    except _Killed:
        went_through = False
    else:
        went_through = True
    successor = await Bench(store, worker).crash()
    return await scenario.find(successor), went_through

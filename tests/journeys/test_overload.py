"""A provider that is slower than we are: what it holds is not sent again, and its time is used."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crowded import is_crowded
from tests.hurry import IMPATIENT, IMPATIENT_S
from tests.journeys.harness import Service, running
from tests.journeys.load import Load
from tests.journeys.overload import Run, audience_of, overloaded
from tests.shows import shows
from tests.survival import Survived
from tests.tables import AddRow

SLOW = {"apns": 200.0, "fcm": 200.0}
"""A second. Each of two workers may have more requests in flight than a provider answers before they are given up."""
FULL_SPEED = {"apns": 4400.0, "fcm": 1000.0}
"""A second: about what a machine can send, and much less."""
MANY = 20_000
TWICE = 0.001
"""So many devices in one may get a notification twice."""
IDLE = 0.2
"""A provider must be kept busy: 1 / (1 - this), and what is sent twice, bounds the time taken by the ideal time."""
BRIEFLY_IDLE = 0.4
"""In a run of some seconds: a pause of a loaded machine weighs more."""


@pytest.mark.parametrize(
    "stop_s",
    [pytest.param(0.0, id="goes on", marks=pytest.mark.long), pytest.param(1.5 * IMPATIENT_S, id="stops once")],
)
@pytest.mark.asyncio
async def test_what_a_slow_provider_holds_is_not_sent_again(
    tmp_path: Path, rng: random.Random, table: AddRow, stop_s: float
) -> None:
    """The time in its queue would be several times as long as an answer is waited for; once it also stands still."""
    async with running(tmp_path, workers=2, sitecustomize=IMPATIENT) as service:
        run = await overloaded(service, await _callers(service, rng), SLOW, 1_500, stop_s=stop_s)
    table("overload", provider="stops once" if stop_s else "goes on", **run.row())
    _each_once(run)
    if not is_crowded():
        _kept_busy(run, BRIEFLY_IDLE)


@shows("S1-131")
@pytest.mark.survives("a provider of 200 a second", on="embedded", so="20,000 once each, its time used, none lost")
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_twenty_thousand_wait_for_a_slow_provider(tmp_path: Path, rng: random.Random, survived: Survived) -> None:
    """With the time that an answer really has, which is a tenth of what the work takes."""
    async with running(tmp_path, workers=2) as service:
        run = await overloaded(service, await _callers(service, rng), SLOW, MANY, deadline_s=600)
    survived(**run.row())
    _each_once(run)
    _kept_busy(run)


@pytest.mark.survives("a provider of 200 a second, stopped for 15 s", on="embedded", so="20,000 once each, none lost")
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_twenty_thousand_outlast_a_stop_of_a_slow_provider(
    tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """It stands still in the middle of the work, for longer than an answer is waited for."""
    async with running(tmp_path, workers=2) as service:
        run = await overloaded(service, await _callers(service, rng), SLOW, MANY, stop_s=15, deadline_s=600)
    survived(**run.row())
    _each_once(run)
    _kept_busy(run)


@pytest.mark.survives(
    "20,000 at full speed", on="embedded", so="each provider at its pace, once each, no breaker opens"
)
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_full_speed_makes_no_copies_and_opens_no_breaker(
    tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Both providers at once for each user, one of them four times as fast as the other."""
    async with running(tmp_path, workers=2) as service:
        run = await overloaded(service, await _callers(service, rng), FULL_SPEED, MANY)
    survived(**run.row())
    _each_once(run)
    assert run.idle_share("fcm") < IDLE, run
    assert not run.opened, run


@pytest.mark.survives("20,000 at full speed, providers stopped for 12 s", on="embedded", so="once each, none lost")
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_a_stop_at_full_speed_makes_no_copies(tmp_path: Path, rng: random.Random, survived: Survived) -> None:
    """As on a machine that stands still for longer than an answer is waited for: much is in flight just then."""
    async with running(tmp_path, workers=2) as service:
        run = await overloaded(service, await _callers(service, rng), FULL_SPEED, MANY, stop_s=12)
    survived(**run.row())
    _each_once(run)


async def _callers(service: Service, rng: random.Random) -> Load:
    """Of users with a device at each of both providers."""
    return Load(service, await audience_of(service, "ios", "android"), rng)


def _each_once(run: Run) -> None:
    assert run.statuses == {"sent": run.accepted}
    assert all(run.twice[gateway] <= TWICE * run.accepted for gateway in run.queues), run


def _kept_busy(run: Run, idle: float = IDLE) -> None:
    assert all(run.idle_share(gateway) < idle for gateway in run.queues), run

"""A day of requests said again, late and out of order, through processes that are killed: each thing reaches each
device once, and each request is told which one it was."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.journeys.balance import balance
from tests.journeys.harness import Json, Kill, Service, running, until
from tests.journeys.load import Audience, Ledger
from tests.journeys.said_again import (
    A_DAY_ONCE,
    CALLERS,
    DAY_S,
    MINUTE_S,
    MOMENTS_MIN,
    OTP_S,
    Expected,
    Keys,
    Said,
    day,
)
from tests.journeys.said_again_callers import Answer, Callers, calling
from tests.shows import shows
from tests.survival import Survived
from waypost.bootstrap.registry import load
from waypost.cli.keys import make_key

THINGS = 300
KILLS = 4
PLATFORMS = (("ios",), ("web",), ("ios", "web"))
"""Not Android: the age of its access tokens is measured by a clock that nobody moves."""
MARGIN_S = 180
"""How long a moment may take on a slow machine."""
CLOCK = """
import time
from pathlib import Path

real, real_ns, file = time.time, time.time_ns, Path({file!r})
time.time = lambda: real() + float(file.read_text())
time.time_ns = lambda: real_ns() + int(float(file.read_text()) * 1e9)
"""


class Clock:
    """The wall clock of all processes of a run, the lab's too."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ahead_s"
        self._began_s = time.time()
        self._ahead_s = 0.0
        self.step(0)

    @property
    def hook(self) -> str:
        """What Python runs as an interpreter starts."""
        return CLOCK.format(file=str(self._file))

    def step(self, at_s: float) -> None:
        """Now it is *at_s* seconds after the beginning, for everybody at once."""
        self._ahead_s = self._began_s + at_s - time.time()
        apart = self._file.with_suffix(".new")
        apart.write_text(repr(self._ahead_s))
        os.replace(apart, self._file)

    def shifted(self, kill: Kill) -> Kill:
        """*kill* by this clock."""
        return Kill(kill.before + self._ahead_s, kill.after + self._ahead_s)


@shows("S1-137")
@pytest.mark.survives(
    "workers killed in a day of repeats", on="embedded", so="each thing once at each device, each answer right"
)
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_a_day_of_repeats_reaches_each_device_once(
    tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Any worker takes any request, by REST, in batches and by gRPC."""
    clock = Clock(tmp_path)
    settings: Json = {"workers": 3, "grpc": {"listen": "127.0.0.1:0"}, "app": A_DAY_ONCE}
    opened = running(tmp_path, sitecustomize=clock.hook, in_lab=True, **settings)
    async with opened as service:
        survived(**await a_day(service, [service], clock, rng))


async def a_day(
    service: Service,
    doors: Sequence[Service],
    clock: Clock,
    rng: random.Random,
    before_each: Callable[[int], None] = lambda place: None,
) -> dict[str, object]:
    """Say all of it, compare every answer, then everything that the lab saw; what that came to.

    *before_each* is told the number of a moment that begins.
    """
    audience = Audience(service)
    await audience.register(12, PLATFORMS)
    requests = day(rng, sorted(audience.tokens), THINGS)
    known = Keys()
    expected = [known.expected(n, said) for n, said in enumerate(requests)]
    async with calling(doors, await keys_of(service), rng) as callers:
        ledger, kills = await said_whole(service, audience, clock, callers, requests, expected, before_each)
    result = await balance(service, ledger, kills=kills)
    told = Counter(answer.kind for answer in callers.answers.values())
    return {**result.row(), "said": len(requests), **told, "kills": len(kills)}


async def said_whole(
    service: Service,
    audience: Audience,
    clock: Clock,
    callers: Callers,
    requests: Sequence[Said],
    expected: Sequence[Expected],
    before_each: Callable[[int], None],
) -> tuple[Ledger, list[Kill]]:
    """One moment after the other, with kills in some of them; what was promised, and who died when."""
    ledger = Ledger()
    kills: list[Kill] = []
    moments = [list(group) for _, group in itertools.groupby(enumerate(requests), lambda each: each[1].at_s)]
    deadly = set(callers.rng.sample(range(len(moments)), KILLS))
    for place, moment in enumerate(moments):
        before_each(place)
        clock.step(moment[0][1].at_s)
        saying = asyncio.create_task(callers.say(moment))
        if place in deadly:
            await callers.heard(len(callers.answers) + len(moment) // 3)
            kills.append(clock.shifted(await kill_one(callers)))
        await saying
        for n, _ in moment:
            if callers.answers[n].kind in ("new", "repeat"):
                body = requests[expected[n].first].body
                ledger.note({"id": callers.answers[n].id}, body, audience.tokens[body["user_id"]])
        compare(requests, expected, callers.answers, moment, is_whole=place not in deadly)
        await until(lambda: is_quiet(service), "nothing is open")
    return ledger, kills


async def keys_of(service: Service) -> dict[str, str]:
    """An API key for each caller."""
    config = load(service.directory / "key.yaml", {})
    return {name: (await make_key(config, "demo", name))[0] for name in CALLERS}


async def kill_one(callers: Callers) -> Kill:
    """``kill -9`` of one worker of one service."""
    service = callers.rng.choice(callers.services)
    return await service.kill(callers.rng.choice(service.worker_pids()))


async def is_quiet(service: Service) -> bool:
    """Whether everything that was accepted is final."""
    status, page = await service.ask("GET", "/v1/notifications?status=pending&status=processing&limit=1")
    return status == 200 and not page["items"]


def compare(
    requests: Sequence[Said],
    expected: Sequence[Expected],
    answers: dict[int, Answer],
    moment: Sequence[tuple[int, Said]],
    *,
    is_whole: bool,
) -> None:
    """Every answer of one moment; where it *is_whole*, nobody died with the first answer to something."""
    ids = {expected[n].first: answers[n].id for n in answers if answers[n].kind in ("new", "repeat")}
    assert len(set(ids.values())) == len(ids), "two things have one id"
    news: Counter[int] = Counter()
    for n, said in moment:
        wanted, answer = expected[n], answers[n]
        first = requests[wanted.first]
        if said.door == "forget":
            assert answer == Answer("forgotten", forgotten=wanted.forgotten), said
        elif wanted.is_conflict:
            assert answer == Answer("conflict", ids[wanted.first]), (said, first)
        else:
            assert answer.id == ids[wanted.first], (said, first)
            assert answer.kind == "repeat" or first.at_s == said.at_s, f"accepted again: {said}, first {first}"
            news[wanted.first] += answer.kind == "new"
    said_new = {wanted.first for wanted in (expected[n] for n, said in moment if said.door != "forget")}
    fresh = {first for first in said_new if requests[first].at_s == moment[0][1].at_s}
    assert all(news[first] == 1 or (news[first] == 0 and not is_whole) for first in fresh)


def test_no_two_moments_lie_so_that_a_slow_machine_decides() -> None:
    """Neither inside nor outside a window by less than a moment may take."""
    spans = [(two - one) * MINUTE_S for one, two in itertools.combinations(MOMENTS_MIN, 2)]
    near = [(span, end) for span in spans for end in (OTP_S, 2 * OTP_S, DAY_S) if abs(span - end) < MARGIN_S]
    assert near == []

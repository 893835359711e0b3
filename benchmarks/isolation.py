"""How much later critical notifications reach the gateway while something else goes on, against when nothing does."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from benchmarks import bulk
from benchmarks.end_to_end import USERS
from benchmarks.programs import in_rust
from waypost.bench.latency import Latency, latency
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running

VIPS = 500
PER_S = 20
"""Critical notifications, each alone and on time."""
SECONDS = float(os.environ.get("SECONDS", "10"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
WITH_CRITICAL_WORKER = os.environ.get("CRITICAL_WORKER", "1") == "1"
OTHER_APP = "noisy"
ORDINARY_PER_S = 30
"""Silent notifications of a usual day; ten times as many is the flood."""

FLOOD_PER_S = 1_500
"""Of the other app: more than all together can deliver, little enough to be worked off between two rounds."""

Noise = Callable[[BenchStack], AbstractContextManager[None]]


def run() -> list[Row]:
    """Quiet and disturbed in turn on one stack; medians of the rounds. The black hole is last: its deliveries wait."""
    asked = os.environ.get("NOISE", "bulk,flood,silent,hole").split(",")
    disturbances: tuple[tuple[str, Noise, Noise], ...] = tuple(_NOISES[each] for each in asked)
    numbers = itertools.count(10**9, 1000)
    apps = (APP, OTHER_APP)
    with running(in_rust(), 2, USERS, vips=VIPS, apps=apps, critical_worker=WITH_CRITICAL_WORKER) as stack:
        _critical(stack, next(numbers))
        return [each for name, *around in disturbances for each in _disturbed(stack, numbers, name, *around)]


def _disturbed(stack: BenchStack, numbers: Iterator[int], name: str, usual: Noise, noise: Noise) -> list[Row]:
    quiet: list[Latency] = []
    loud: list[Latency] = []
    for _ in range(ROUNDS):
        for seen, around in ((quiet, usual), (loud, noise)):
            with around(stack):
                seen.append(_critical(stack, next(numbers)))
            _calm(stack)
    rows = []
    for part, way in (("p50_ms", "to the gateway"), ("p99_ms", "to the gateway"), ("answered_p99_ms", "to the answer")):
        before, after = (statistics.median(getattr(each, part) for each in runs) for runs in (quiet, loud))
        what = f"critical, {part[-6:-3]} {way}: {name}"
        rows.append(row("isolation", what, after, "ms", f"quiet {before:.1f}", after / before))
    return rows


def _critical(stack: BenchStack, first: int) -> Latency:
    every = int(PER_S * SECONDS)  # each user of these has one device, which takes everything
    fields = '"urgency":"critical"'
    return latency(stack, first, rate=PER_S, seconds=SECONDS, least=every, users=VIPS, prefix="vip-", fields=fields)


def _calm(stack: BenchStack) -> None:
    """Until the gateway has had nothing for a second."""
    seen = -1
    while seen != (seen := stack.gateway.total("accepted", "dead", "throttled")):
        time.sleep(1)


def _nothing(_: BenchStack) -> AbstractContextManager[None]:
    return nullcontext()


@contextmanager
def _black_hole(stack: BenchStack) -> Iterator[None]:
    stack.gateway.set_latency(fcm="never")
    with _load(stack, stack.key, rate=ORDINARY_PER_S * 10, batch=10):
        yield
    stack.gateway.set_latency(fcm=0)


@contextmanager
def _flood(stack: BenchStack) -> Iterator[None]:
    with _load(stack, stack.keys[OTHER_APP], rate=FLOOD_PER_S, batch=100):
        yield


@contextmanager
def _silent(stack: BenchStack, times: int) -> Iterator[None]:
    silent = '"kind":"silent"'
    with _load(stack, stack.key, rate=ORDINARY_PER_S * times, batch=1, connections=16, fields=silent):
        yield


@contextmanager
def _load(stack: BenchStack, key: str, **wishes: object) -> Iterator[None]:
    """As long as the block; the gateway keeps no marks of it."""
    first = time.time_ns() // 1000 * 1000
    load = stack.load(key, users=USERS, first=first, seconds=600, **wishes)
    time.sleep(1)
    try:
        yield
    finally:
        load.stop()


_NOISES: dict[str, tuple[str, Noise, Noise]] = {
    "bulk": ("bulk requests to all in the registry", _nothing, bulk.going_on),
    "flood": ("another app floods", _nothing, _flood),
    "silent": ("ten times the silent traffic", partial(_silent, times=1), partial(_silent, times=10)),
    "hole": ("FCM a black hole", _nothing, _black_hole),
}

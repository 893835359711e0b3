"""Simulate seeds on all cores, name those that break a promise, and sum up what was lived through."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tests.simulation.paces import hurry
from tests.simulation.plants import PLANTS
from tests.simulation.world import World

CHUNK: Final = 100
"""Seeds that one process lives through: what dead workers had in hand stays in its memory to the end."""
PROGRESS_S: Final = 15.0
SHOWN: Final = 20
"""Failing seeds that are named."""


class Lived(Struct):
    """The result of some seeds."""

    seeds: int = 0
    broken: dict[int, list[str]] = msgspec.field(default_factory=dict)
    """The promises that each failing seed broke."""
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    digests: list[str] = msgspec.field(default_factory=list)

    def add(self, other: Lived) -> None:
        """Add what another process lived through."""
        self.seeds += other.seeds
        self.broken |= other.broken
        self.counts = dict(Counter(self.counts) + Counter(other.counts))
        self.digests += other.digests


def live(seeds: Sequence[int], *, stops: bool = False) -> Lived:
    """Simulate *seeds* in this process, which must end after it without closing anything; *stops* at a broken one."""
    gc.disable()
    hurry()
    lived, kept = Lived(), list[World]()
    for seed in seeds:
        world = World(seed)
        kept.append(world)
        world.run()
        lived.add(Lived(1, {seed: world.broken} if world.broken else {}, dict(world.sum()), [world.digest()]))
        if stops and world.broken:
            break
    return lived


def forked(seeds: Sequence[int], plant: str | None = None) -> tuple[int, int]:
    """Simulate *seeds* in a process of its own; return its id and where its result is read."""
    reads, writes = os.pipe()
    child = os.fork()
    if child:
        os.close(writes)
        return child, reads
    try:
        os.close(reads)
        if plant is not None:
            PLANTS[plant]()
        with os.fdopen(writes, "wb") as out:
            out.write(msgspec.msgpack.encode(live(seeds, stops=plant is not None)))
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(0)  # without closing what dead workers left open: that would go on with their work


def collected(child: int, reads: int) -> Lived:
    """Read what a process lived through, to its end."""
    with os.fdopen(reads, "rb") as said:
        result = said.read()
    os.waitpid(child, 0)
    return msgspec.msgpack.decode(result, type=Lived)


def lived_through(seeds: range, jobs: int) -> Iterator[Lived]:
    """Yield the results of chunks of *seeds*, *jobs* at a time, in order."""
    running: list[tuple[int, int]] = []
    for start in range(seeds.start, seeds.stop, CHUNK):
        if len(running) == jobs:
            yield collected(*running.pop(0))
        running.append(forked(range(start, min(start + CHUNK, seeds.stop))))
    for each in running:
        yield collected(*each)


def main() -> int:
    """Simulate what was asked for; return 1 where a promise was broken, or a planted fault was not found."""
    asked = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    asked.add_argument("--seed", type=int, help="live through this one alone, and say all that it breaks")
    asked.add_argument("--seeds", default="100000", metavar="N or A:B", help="how many, or from A up to B")
    asked.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    asked.add_argument("--digests", action="store_true", help="print what each seed came to, to compare runs")
    asked.add_argument("--plants", action="store_true", help="plant each known fault, and say which seed finds it")
    given = asked.parse_args()
    seeds = _range(given.seeds) if given.seed is None else range(given.seed, given.seed + 1)
    return _planted(seeds, given.jobs) if given.plants else _simulated(seeds, given.jobs, digests=given.digests)


def _range(text: str) -> range:
    first, colon, last = text.partition(":")
    return range(int(first), int(last)) if colon else range(int(text))


def _simulated(seeds: range, jobs: int, *, digests: bool) -> int:
    began_s = told_s = time.monotonic()
    lived = Lived()
    for chunk in lived_through(seeds, jobs):
        for seed, broken in chunk.broken.items():
            if len(lived.broken) < SHOWN:
                print(f"seed {seed}: {broken[0]}", *broken[1 : (len(seeds) == 1 and 50) or 4], sep="\n    ")
                print(f"    again: make simulate SEED={seed}", flush=True)
        lived.add(chunk)
        if time.monotonic() - told_s > PROGRESS_S:
            told_s = time.monotonic()
            rate = lived.seeds / (told_s - began_s)
            left_s = (len(seeds) - lived.seeds) / rate
            print(
                f"{lived.seeds:,} seeds, {len(lived.broken)} broken, {rate:.0f} a second, {left_s:.0f} s left",
                flush=True,
            )
    if digests:
        print("\n".join(lived.digests))
    took_s = time.monotonic() - began_s
    said = ", ".join(f"{n:,} {name}" for name, n in sorted(lived.counts.items(), key=lambda each: -each[1]))
    rate = lived.seeds / took_s
    print(f"{lived.seeds:,} seeds in {took_s:.0f} s ({rate:.0f} a second): {len(lived.broken)} broken; {said}")
    return 1 if lived.broken else 0


def _planted(seeds: range, jobs: int) -> int:
    """Plant one fault after the other, and print the number of the seed that finds it."""
    missed = 0
    names = list(PLANTS)
    for start in range(0, len(names), jobs):
        running = [(name, forked(seeds, name)) for name in names[start : start + jobs]]
        for name, process in running:
            lived = collected(*process)
            missed += not lived.broken
            found = next((f"by seed {n}: {broken[0]}" for n, broken in lived.broken.items()), "by none")
            print(f"{name:28} found after {lived.seeds:4} seeds, {found}", flush=True)
    print(f"{len(names)} faults planted, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

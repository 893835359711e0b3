"""The register of gateways in a real Redis: who is told of what, and what becomes of the entries of the dead."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from scripts.services.redis import Redis
from tests.adapters.redis.noted import Noted
from tests.shows import shows
from tests.unit.entrypoints.live_bench import ANN, Bench, Wire, entries_in, said
from waypost.entrypoints.live.addressed import Addressed
from waypost.entrypoints.live.hub import Hub
from waypost.entrypoints.live.outward import Broadcast
from waypost.ports.feed import Mark
from waypost.ports.peers import Answerer
from waypost.runtime.peers import NoPeers
from waypost.stores.redis.gateways import RedisGateways
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Event

pytestmark = pytest.mark.asyncio

ENTRY = "waypost:live:demo:ann"
LEASE_S = 0.6
DEADLINE_S = 30


class End(NoPeers):
    """One process's end of what reaches everybody."""

    def __init__(self, others: list[End]) -> None:
        self._others = others
        self._answers: dict[str, Answerer] = {}
        self.told = 0
        others.append(self)

    def on(self, topic: str, answer: Answerer) -> None:
        """See Peers."""
        self._answers[topic] = answer

    def tell(self, topic: str, body: bytes = b"") -> None:
        """See Peers."""
        self.told += 1
        for each in self._others:
            if each is not self:
                each._answers[topic](body)


class Machines:
    """Hubs of several processes over one feed, one Redis, and peers."""

    def __init__(self, server: Redis, wire: SinglePrimary, noted: Noted) -> None:
        self._settings = RedisSettings(url=server.url, timeout_s=5)
        self._wire = wire
        self._noted = noted
        self.ends: list[End] = []
        self.gateways: list[RedisGateways] = []
        self.bench = Bench()
        self.hubs: list[Hub] = []

    async def another(self) -> Hub:
        """Start another process."""
        self.gateways.append(RedisGateways(self._wire, self._settings, self._noted, LEASE_S))
        hub = self.bench.another(Addressed(self.gateways[-1], Broadcast(End(self.ends))))
        await hub.start()
        self.hubs.append(hub)
        return hub

    async def letters(self, n: int) -> int:
        """The number of messages to a process, without the one that opened its mailbox."""
        (count,) = await self._wire.execute([("XLEN", f"waypost:gateway:{self.gateways[n]._id}")])
        return int(count) - 1

    async def join(self, n: int) -> Wire:
        """Connect ann to a process."""
        self.bench.hub = self.hubs[n]
        wire = self.bench.join()
        await until(lambda: bool(said(wire.written)))
        return wire


@asynccontextmanager
async def machines(server: Redis, wire: SinglePrimary, noted: Noted, count: int) -> AsyncIterator[Machines]:
    """So many processes."""
    made = Machines(server, wire, noted)
    for _ in range(count):
        await made.another()
    yield made
    for hub in made.hubs:
        await hub.stop()


async def until(is_so: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until something is so that gives no other sign."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)  # Redis is asked from outside, by polls


def has(wire: Wire, known: list[str]) -> Callable[[], bool]:
    """Whether a client was told so many entries."""
    return lambda: len(entries_in(said(wire.written))) >= len(known)


@shows("S2-12", "S2-13")
async def test_only_the_process_that_holds_a_user_is_told_of_what_comes(
    server: Redis, wire: SinglePrimary, noted: Noted
) -> None:
    async with machines(server, wire, noted, 3) as on:
        (before,) = await wire.execute([("SMEMBERS", ENTRY)])
        ann = await on.join(1)
        (during,) = await wire.execute([("SMEMBERS", ENTRY)])
        assert (before, during) == ([], [str(on.gateways[1]._id).encode()])
        on.bench.hub = on.hubs[0]
        known = await on.bench.bring(2)
        await on.bench.mark(Mark.READ, known[0])
        await until(lambda: said(ann.written)[-1]["type"] == "marked")
        assert entries_in(said(ann.written)) == known
        assert [await on.letters(n) for n in range(3)] == [0, 2, 0]
        assert [each.told for each in on.ends] == [0, 0, 0]
        ann.close()

        async def is_gone() -> bool:
            return await wire.execute([("EXISTS", ENTRY)]) == [0]

        await until(is_gone)
        await on.bench.bring()
        assert [await on.letters(n) for n in range(3)] == [0, 2, 0]
    assert await wire.execute([("KEYS", "waypost:gateway:*")]) == [[]], "who ends leaves nothing"


HOLDER = """
import asyncio, sys
from waypost.stores.redis.gateways import RedisGateways
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

async def main():
    settings = RedisSettings(url=sys.argv[1], timeout_s=5)
    wire = SinglePrimary(settings, Silent())
    await wire.start()
    gateways = RedisGateways(wire, settings, Silent(), float(sys.argv[2]))
    await gateways.start(lambda body: print(len(body), flush=True), lambda: None)
    await gateways.hold([("demo", "ann")])
    print(gateways._id, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@shows("S2-12")
async def test_a_process_that_is_killed_leaves_no_ghost(server: Redis, wire: SinglePrimary, noted: Noted) -> None:
    """It is told of while it lives; killed with signal 9, its mailbox ends, and with the next event its entry."""
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, server.url, str(LEASE_S), stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    mailbox = f"waypost:gateway:{(await holder.stdout.readline()).decode().strip()}"
    async with machines(server, wire, noted, 1) as on:
        on.bench.hub = on.hubs[0]
        await on.bench.bring()
        assert int(await holder.stdout.readline()) > 0
        os.kill(holder.pid, signal.SIGKILL)
        await holder.wait()

        async def is_dead() -> bool:
            return await wire.execute([("EXISTS", mailbox)]) == [0]

        await until(is_dead)
        ann = await on.join(0)
        assert len((await wire.execute([("SMEMBERS", ENTRY)]))[0]) == 2
        known = await on.bench.bring()
        await until(has(ann, known))
        assert await wire.execute([("SMEMBERS", ENTRY)]) == [[str(on.gateways[0]._id).encode()]]
        assert await wire.execute([("EXISTS", mailbox)]) == [0], "nobody else makes it again"


async def test_a_process_whose_entries_were_lost_says_them_again_and_reads_what_it_missed(
    server: Redis, wire: SinglePrimary, noted: Noted
) -> None:
    async with machines(server, wire, noted, 2) as on:
        ann = await on.join(1)
        await wire.execute([("FLUSHALL",)])
        on.bench.hub = on.hubs[0]
        known = await on.bench.bring()
        await until(has(ann, known))
        known += await on.bench.bring()
        await until(has(ann, known))
        assert entries_in(said(ann.written)) == known
        assert await wire.execute([("SMEMBERS", ENTRY)]) == [[str(on.gateways[1]._id).encode()]]


async def test_while_redis_is_away_everybody_is_told_and_nothing_is_told_twice(
    server: Redis, wire: SinglePrimary, noted: Noted
) -> None:
    async with machines(server, wire, noted, 2) as on:
        ann = await on.join(1)
        on.bench.hub = on.hubs[0]
        known = await on.bench.bring()
        await until(has(ann, known))
        server.stop()
        await noted.saw(Event.REDIS_AWAY)
        known += await on.bench.bring(2)
        await until(has(ann, known))
        assert on.ends[0].told == 1
        server.start()
        await noted.saw(Event.REDIS_BACK)
        known += await on.bench.bring()
        await until(has(ann, known))
        assert entries_in(said(ann.written)) == known


async def test_what_reaches_nobody_while_redis_comes_back_is_read(
    server: Redis, wire: SinglePrimary, noted: Noted
) -> None:
    """A broadcast is lost, then Redis tells of a later entry: it follows none that this process has heard of."""
    async with machines(server, wire, noted, 2) as on:
        ann = await on.join(1)
        on.bench.hub = on.hubs[0]
        known = await on.bench.bring()
        await until(has(ann, known))
        lost = on.ends.pop()
        server.stop()
        await noted.saw(Event.REDIS_AWAY)
        known += await on.bench.bring()
        on.ends.append(lost)
        server.start()
        await noted.saw(Event.REDIS_BACK)
        known += await on.bench.bring()
        await until(has(ann, known))
        assert entries_in(said(ann.written)) == known
        assert ANN in on.hubs[1]._readers

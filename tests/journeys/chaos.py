"""A plan of faults drawn from a seed, for a service of real processes under load: one after the other."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests import disk
from tests.journeys.availability import Callers
from tests.journeys.harness import Kill, Service, until
from tests.journeys.processes import state_of
from tests.proxy import Proxy

HOUR_S = 3_600
REST = (15, 60)
"""How many notifications are accepted between two faults, at least and at most."""

Fault = Callable[[], Awaitable[None]]


@dataclass
class Plan:
    """The faults that a service meets, and when each began and was over."""

    service: Service
    callers: Callers
    rng: random.Random
    providers: list[Proxy] = field(default_factory=list)
    """The networks to providers."""
    database: Proxy | None = None
    """The network to PostgreSQL."""
    disk: Path | None = None
    """The file system of its store, which is small."""
    clock: Path | None = None
    """The file that says by how many seconds its clock is off."""
    met: list[tuple[str, Kill]] = field(default_factory=list)
    """What happened, and from when to when."""

    @property
    def kills(self) -> list[Kill]:
        """When something went wrong, which is what may explain a second copy."""
        return [kill for _, kill in self.met]

    def during(self, began: float, ended: float) -> str:
        """Name what went wrong in that time."""
        names = [name for name, kill in self.met if kill.before <= ended and began <= kill.after]
        return ", ".join(names) or "nothing"

    async def run(self, seconds: float) -> None:
        """Let every kind of fault happen, in an order of chance, again and again until *seconds* are over."""
        ends_s = time.monotonic() + seconds
        kinds = self._kinds()
        while True:
            for name in self.rng.sample(sorted(kinds), len(kinds)):
                await self.callers.grown(self.rng.randint(*REST))
                began = time.time()
                await kinds[name]()
                self.met.append((name, Kill(began, time.time())))
            if time.monotonic() > ends_s:
                return

    def _kinds(self) -> dict[str, Fault]:
        kinds: dict[str, Fault] = {
            "worker killed": self._kill_worker,
            "supervisor killed": self._kill_supervisor,
            "worker frozen": self._freeze,
            "worker frozen until it was killed": self._freeze_for_good,
            "provider cut off": self._cut_provider,
            "providers frozen": self._freeze_providers,
        }
        if self.database is not None:
            kinds["database cut off"] = self._cut_database
        if self.disk is not None:
            kinds["disk full"] = self._fill_disk
        if self.clock is not None:
            kinds["clock stepped"] = self._step_clock
        return kinds

    async def _for_a_while(self, least_s: float, most_s: float) -> None:
        await asyncio.sleep(self.rng.uniform(least_s, most_s))  # the fault lasts so long

    async def _kill_worker(self) -> None:
        await self.service.kill(self.rng.choice(self.service.worker_pids()))

    async def _kill_supervisor(self) -> None:
        await self.service.kill(self.service.pid)
        await self.service.start()

    async def _freeze(self) -> None:
        pid = self.rng.choice(self.service.worker_pids())
        os.kill(pid, signal.SIGSTOP)
        await self._for_a_while(0.5, 4.0)
        os.kill(pid, signal.SIGCONT)

    async def _freeze_for_good(self) -> None:
        pid = self.rng.choice(self.service.worker_pids())
        os.kill(pid, signal.SIGSTOP)

        async def is_gone() -> bool:
            return state_of(pid) in "XZ"

        await until(is_gone, "the frozen worker is killed")

    async def _cut_provider(self) -> None:
        await self._spoil(self.rng.choice(self.providers), 1.0, 6.0)

    async def _cut_database(self) -> None:
        assert self.database is not None
        await self._spoil(self.database, 0.5, 4.0)

    async def _spoil(self, network: Proxy, least_s: float, most_s: float) -> None:
        """Reset what is connected, or let nothing pass, or refuse whoever comes."""
        match self.rng.choice(("reset", "silent", "refusing")):
            case "reset":
                network.cut()
            case "silent":
                with network.stalled():
                    await self._for_a_while(least_s, most_s)
            case _:
                async with network.refusing():
                    await self._for_a_while(least_s, most_s)

    async def _freeze_providers(self) -> None:
        os.kill(self.service.lab.pid, signal.SIGSTOP)
        await self._for_a_while(0.5, 4.0)
        os.kill(self.service.lab.pid, signal.SIGCONT)

    async def _fill_disk(self) -> None:
        assert self.disk is not None
        await asyncio.to_thread(disk.fill, self.disk)
        await self._for_a_while(1.0, 4.0)
        await asyncio.to_thread(disk.free, self.disk)

    async def _step_clock(self) -> None:
        """Step it by an hour and back; nobody is killed near that, since whose copy came when is told by that clock."""
        assert self.clock is not None
        self.clock.write_text(str(self.rng.choice((-HOUR_S, HOUR_S))))
        await self._for_a_while(1.0, 3.0)
        self.clock.write_text("0")

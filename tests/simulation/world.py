"""A simulation: one store, several workers, callers, devices and providers, and what goes wrong, all from a seed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any, Final

from tests.contract.clock import START
from tests.memory.devices import MemoryDevices
from tests.simulation.audit import AuditedStore, settle_accounts
from tests.simulation.callers import USERS, bulk, caller, device
from tests.simulation.lab import Lab
from tests.simulation.loop import SimulatedLoop
from tests.simulation.paces import LEASE_S
from tests.simulation.process import APP, CHANNELS, DRAIN_S, Process
from tests.simulation.referee import Referee
from tests.simulation.slots import MemorySlots
from waypost.domain.bulk import ENDED, JobState
from waypost.domain.delivery import Delivery
from waypost.domain.device import Registration
from waypost.domain.ids import DeviceId, NotificationId, UserId, format_id
from waypost.domain.time import Instant
from waypost.pipeline.report import READER
from waypost.ports.journal import JournalRow
from waypost.runtime.shares import TOPIC as SHARDS_TOPIC

END_S: Final = 400.0
SLACK_S: Final = 25.0
"""The seconds after the last end of a time to live by which everything is over: a lease and an intent may still run."""
AT_REST: Final = ENDED | {JobState.PAUSED}
"""What becomes of bulk jobs: an order to pause may come late, after the one to resume."""
QUIET_S: Final = 5.0
"""The seconds for which nothing may happen any more before the end."""


class SimulatedClock:
    """See Clock: the loop's time."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now(self) -> Instant:
        """See Clock."""
        return Instant(START + int(self._loop.now_s * 1000))

    def monotonic(self) -> float:
        """See Clock."""
        return self._loop.now_s


class World:
    """Everything that is simulated."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        random.seed(seed)  # the runtime draws some jitter from there
        self.loop = SimulatedLoop(self.chance)
        self.loop.on_step = self._storm
        self.clock = SimulatedClock(self.loop)
        self.lab = Lab(self.chance)
        self.store = AuditedStore(self.clock, self.fail, self.lab.new_round)
        self.slots = MemorySlots()
        self.roles: dict[str, tuple[Process, float]] = {}
        self.lives: list[Process] = []
        self.referee = Referee(self)
        self.keys: dict[str, NotificationId] = {}
        self.answered: set[NotificationId] = set()
        self.told_moves: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self._storm_s = self.chance.choice((0.0, 6.0, 12.0, 20.0))
        self._gap = self.chance.choice((80, 300, 1_000))
        self._next_fault = self.chance.randint(1, self._gap)
        self._is_over = False
        self._context = copy_context()
        self._devices: list[asyncio.Task[None]] = []

    @property
    def is_stormy(self) -> bool:
        """Whether things go wrong."""
        return self.loop.now_s < self._storm_s

    def fail(self, what: str) -> None:
        """Note a broken promise."""
        self.broken.append(f"at {self.loop.now_s:.3f} s: {what}")

    def sum(self) -> Counter[str]:
        """Sum up what was lived through."""
        return self.counts + Counter({"notifications": len(self.store.rows), "steps": self.loop.steps})

    def digest(self) -> str:
        """Return what tells this run from any other: equal seeds come to the same."""
        return f"{self.loop.steps} {self.loop.now_s:.6f} {self.store.digest.hexdigest()}"

    def alive(self) -> list[Process]:
        """List the processes that live, frozen ones too."""
        return [each for each in self.lives if not each.is_dead and not each.has_ended]

    def run(self) -> None:
        """Live through the seed."""
        if not self.loop.run(self._main(), END_S) and not self.broken:
            self.fail("it never ended")
        for surprise in self.loop.surprises:
            self.fail(surprise)

    async def _main(self) -> None:
        chance = self.chance
        await self._register()
        for channel in CHANNELS.values():
            self._change_weather(channel)
        for slot in range(chance.choice((1, 2, 2, 3))):
            self._spawn(slot)
        callers = [asyncio.create_task(caller(self, number)) for number in range(chance.randint(1, 4))]
        if chance.random() < 0.2:
            callers.append(asyncio.create_task(bulk(self)))
        for task in callers:
            await task
        quiet_s = 0.0
        while quiet_s < QUIET_S:
            if self.broken or self.loop.now_s > self._deadline_s():
                return self._say_stuck()
            await asyncio.sleep(1.0)
            quiet_s = quiet_s + 1.0 if self._is_settled() else 0.0
        await self._end()

    async def _register(self) -> None:
        devices = MemoryDevices(self.store)
        for user in USERS[:-1]:
            for platform in CHANNELS:
                if self.chance.random() < 0.8:
                    token = f"token-{user}-{platform}"
                    one = Registration(APP, UserId(user), DeviceId(f"{user}-{platform}"), platform, token)
                    await devices.upsert(one, self.clock.now(), cap=10)

    def _is_settled(self) -> bool:
        if self.is_stormy or any(each.is_frozen for each in self.alive()):
            return False
        if self.store.open or any(job.state not in AT_REST for job in self.store.jobs.values()):
            return False
        if len(self.told_moves) < self.store.moved or self.store.positions.get(READER, 0) < max(
            self.told_moves, default=0
        ):
            return False
        return all(task.done() for task in self._devices)

    def _deadline_s(self) -> float:
        last = max((row.notification.expires_at for row in self.store.rows.values()), default=START)
        return max((last - START) / 1000, self._storm_s, 60.0) + LEASE_S + SLACK_S

    def _say_stuck(self) -> None:
        if self.broken:
            return
        for row in self.store.open.values():
            receipts = [(n, str(each.status), each.due_at, each.parked) for n, each in row.receipts.items()]
            self.fail(f"{format_id(row.notification.id)[-6:]} is stuck: due {row.due_at}, {receipts}")
        if not self.store.open:
            self.fail("it does not come to rest, and nothing is open")

    async def _end(self) -> None:
        """Stop all workers, which drain, and look at what is left."""
        self._is_over = True
        for process in self.alive():
            process.told_to_stop.set()
        until_s = self.loop.now_s + DRAIN_S + 10.0
        while self.alive():
            if self.loop.now_s > until_s:
                return self.fail("a worker does not drain")
            await asyncio.sleep(0.5)
        settle_accounts(self)

    def _spawn(self, slot: int) -> None:
        """Start a process in *slot*; the dead one there is buried first, and the others hear of it."""
        if self._is_over:
            return
        self.slots.bury(slot)
        process = Process(self, slot)
        self.lives.append(process)
        for other in self.alive():
            other.hear(SHARDS_TOPIC, b"")
        self.loop.create_task(process.live(), context=process.context)

    def _later(self, after_s: float, act: Any, *given: Any) -> None:
        self.loop.call_later(after_s, act, *given, context=self._context)

    def _change_weather(self, channel: Any) -> None:
        self.lab.change(channel, calm=not self.is_stormy)
        if self.is_stormy:
            self._later(0.5 + self.chance.random() * 6, self._change_weather, channel)

    def _storm(self) -> None:
        """Let something go wrong where the plan says so; called between any two steps."""
        if self.loop.steps < self._next_fault or not self.is_stormy:
            return
        self._next_fault = self.loop.steps + 1 + int(self.chance.expovariate(1 / self._gap))
        standing = [each for each in self.alive() if not each.is_frozen]
        if not standing:
            return
        process = self.chance.choice(standing)
        for_s = self.chance.choice((0.3, 1.0, 5.0, 20.0)) * (0.5 + self.chance.random())
        kind = self.chance.choice(("kill", "kill", "freeze", "freeze", "cut", "stop", "away"))
        self.counts[kind] += 1
        match kind:
            case "kill":
                self.kill(process)
            case "freeze":
                process.is_frozen = True
                process.disturbed.append((self.loop.now_s, self.loop.now_s + for_s))
                self._later(for_s, self.loop.thaw, process)
            case "cut":
                process.cut_off(for_s)
            case "stop":
                process.told_to_stop.set()
            case _:
                for each in standing:
                    each.cut_off(for_s)

    def kill(self, process: Process) -> None:
        """End a process between two steps; another one takes its slot after a while."""
        self.counts["killed"] += 1
        process.is_dead = True
        self._later(0.1 + self.chance.random() * 2, self._spawn, process.slot)

    def ended(self, process: Process) -> None:
        """Replace a process that has drained."""
        self._later(0.1 + self.chance.random(), self._spawn, process.slot)

    async def told(self, rows: Sequence[JournalRow]) -> None:
        """Take what a reader of the journal is told."""
        self.told_moves |= {row.position for row in rows}

    def taken(self, delivery: Delivery) -> None:
        """Let the device of what a provider took report, as some do."""
        if self.chance.random() < 0.4:
            report = device(self, delivery.id, delivery.n)
            self._devices.append(self.loop.create_task(report, context=self._context.copy()))

"""A process of the simulation: the real worker, intake and duties on ports that are reached as the seed has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from tests.memory.bulk import MemoryBulk, MemoryBulkViews
from tests.memory.dedup import MemoryDedup
from tests.memory.devices import MemoryDevices
from tests.memory.erasures import MemoryErasures
from tests.memory.journal import MemoryJournal
from tests.memory.retention import MemoryRetention
from tests.memory.templates import MemoryTemplates
from tests.memory.work import MemoryWork
from tests.simulation.lab import SimulatedSender
from tests.simulation.loop import Owner
from tests.simulation.paces import BREAKER, RETRY, TIMER
from tests.simulation.ports import reached
from tests.simulation.slots import MemoryOwnership, MemoryPeers
from waypost.domain.backlog import Backlog
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.device import PHONE, Platform
from waypost.domain.ids import AppId, NotificationId, next_ids
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.submission import Defaults
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.intake import Intake
from waypost.pipeline.tail import Reader
from waypost.pipeline.template_choice import StoredTemplates
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.duties import DutyContext
from waypost.runtime.gates import Gates
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.settler import Settler
from waypost.runtime.worker import Worker, WorkerIdentity
from waypost.runtime.worker_slots import WorkerSlots
from waypost.telemetry import Event, Silent

if TYPE_CHECKING:
    from tests.simulation.world import World

APP: Final = AppId("demo")
CHANNELS: Final = {Platform("ios"): Channel("apns"), Platform("android"): Channel("fcm"), PHONE: Channel("sms")}
FAMILIES: Final = {Channel("apns"): "push", Channel("fcm"): "push", Channel("sms"): "sms"}
CREDENTIALS: Final = {channel: CredentialId(APP, channel) for channel in FAMILIES}
DEFAULTS: Final = {APP: Defaults(ttl_s=20)}
BY_CHANNEL: Final = {APP: {channel: (name,) for channel, name in CREDENTIALS.items()}}
ROUTING: Final = RoutingTable(CHANNELS, BY_CHANNEL, RULES, (), FAMILIES)
DRAIN_S: Final = 6.0
HELD_LIMIT: Final = 50


class Process(Owner):
    """One life of the worker in a slot, from its start to its end or death."""

    def __init__(self, world: World, slot: int) -> None:
        super().__init__(f"w{slot}.{len(world.lives)}")
        self.world = world
        self.slot = slot
        self.told_to_stop = asyncio.Event()
        self.has_ended = False
        self.cut_until_s = 0.0
        self.disturbed: list[tuple[float, float]] = []
        """From when to when it stood still or was cut off."""
        self.peers = MemoryPeers(world, self)
        self._floor = 0
        self.context.run(self._build)

    @property
    def now_s(self) -> float:
        """The time, s."""
        return self.world.loop.now_s

    @property
    def is_cut(self) -> bool:
        """Whether it does not reach the store."""
        return self.now_s < self.cut_until_s

    def cut_off(self, for_s: float) -> None:
        """Keep it from the store for a while."""
        self.cut_until_s = self.now_s + for_s
        self.disturbed.append((self.now_s, self.cut_until_s))

    def was_disturbed(self, since_s: float, for_s: float = 0.0) -> bool:
        """Tell whether it stood still or was cut off for so long since then, all such times together."""
        now_s = self.now_s
        spans = [min(until_s, now_s) - max(from_s, since_s) for from_s, until_s in self.disturbed]
        lost_s = sum(span_s for span_s in spans if span_s > 0)
        return lost_s > for_s

    def hear(self, topic: str, body: bytes) -> None:
        """Get a message of another worker."""
        listener = self.peers.listeners.get(topic)
        if listener is not None:
            self.world.loop.call_later(self.world.chance.random() / 10, listener, body, context=self.context)

    def next(self, count: int) -> list[NotificationId]:
        """See Ids."""
        now = self.world.clock.now()
        ids, self._floor = next_ids(now, count, self.world.chance.randbytes(10), self._floor)
        return ids

    def _build(self) -> None:
        """Put the parts together as the composition root does."""
        world, store, clock = self.world, self.world.store, self.world.clock
        telemetry = Watch(world)
        self.work = reached(MemoryWork(store, clock), self)
        devices = reached(MemoryDevices(store), self)
        senders = {name: SimulatedSender(name, self) for name in CREDENTIALS.values()}
        gates = Gates({name: each.capabilities for name, each in senders.items()}, {}, BREAKER, telemetry)
        slots = cast("WorkerSlots", world.slots)
        context = DeliveryContext(
            work=self.work,
            devices=devices,
            senders=senders,
            routing=ROUTING,
            rules={APP: RETRY},
            gates=gates,
            settler=Settler(self.work, telemetry, HELD_LIMIT, gates.parked),
            poison=PoisonWatch(slots, self.slot),
            clock=clock,
            jitter=world.chance.random,
            telemetry=telemetry,
            timer=TIMER,
        )
        dedup = reached(MemoryDedup(store, clock), self)
        duties = DutyContext(
            work=self.work,
            devices=devices,
            journal=reached(MemoryJournal(store), self),
            dedup=dedup,
            retention=reached(MemoryRetention(store, clock), self),
            bulk=reached(MemoryBulk(store), self),
            erasures=reached(MemoryErasures(store), self),
            keep_days=30,
            readers=(Reader("told", world.told),),
        )
        place = WorkerIdentity(self.slot, slots, self.peers, MemoryOwnership(world, self), self._fault)
        self.worker = Worker(context, place, duties, Backlog(1_000, is_shared=False))
        self.intake = Intake(
            work=self.work,
            dedup=dedup,
            clock=clock,
            ids=self,
            telemetry=telemetry,
            defaults=DEFAULTS,
            direct=DirectDevices(devices, {}),
            templates=StoredTemplates(MemoryTemplates()),
            backlog=lambda: self.worker.backlog,
            announce=self.worker.wake,
        )

        views = reached(MemoryBulkViews(store), self)
        self.bulk = BulkIntake(duties.bulk, views, clock, self, MemoryTemplates(), DEFAULTS)

    def _fault(self) -> str | None:
        return "away" if self.is_cut else None

    async def live(self) -> None:
        """Run the worker until it is told to stop; what ends it otherwise is a surprise."""
        try:
            await self.worker.run(Door(), self.told_to_stop, lambda: None, DRAIN_S)
        except Exception as error:  # noqa: BLE001 - whatever ends a worker is what is looked for
            self.world.fail(f"{self.name} ended by {type(error).__name__}: {error}")
        self.has_ended = True
        self.world.ended(self)


class Door:
    """See Lifecycle: callers need none."""

    async def start(self) -> None:
        """See Lifecycle."""

    async def stop(self) -> None:
        """See Lifecycle."""


class Watch(Silent):
    """Telemetry that takes a failed stage for what it is: a fault of ours."""

    def __init__(self, world: World) -> None:
        self._world = world

    def event(self, event: Event, /, **fields: object) -> None:
        """Note failures of stages."""
        if event is Event.STAGE_FAILED:
            self._world.fail(f"a stage failed: {fields}")

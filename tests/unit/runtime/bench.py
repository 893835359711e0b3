"""A worker's lanes on the memory store, with senders that answer as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.contract.clock import StoppedClock
from tests.memory.devices import MemoryDevices
from tests.memory.journal import MemoryJournal
from tests.memory.store import MemoryStore
from tests.memory.views import MemoryViews
from tests.memory.work import MemoryWork
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform, Registration
from waypost.domain.fallback import Fallbacks
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.notification import Guarantee, Lane, Notification
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.recipient import FactsReader
from waypost.domain.retry import RetryRules
from waypost.domain.routing import Renderer, RoutingTable, Rule
from waypost.domain.rules import RULES
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS, Instant, later
from waypost.ports.sender import Capabilities, Health, Rendered, Report, Sender
from waypost.ports.views import NotificationDetail
from waypost.ports.work import NewNotification, Work
from waypost.runtime.clock import RandomIds
from waypost.runtime.delivery_context import Claims, DeliveryContext
from waypost.runtime.gates import Gates
from waypost.runtime.lane import LaneLoop
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.rates import RateGate
from waypost.runtime.settler import Settler
from waypost.runtime.worker_slots import WorkerSlots
from waypost.telemetry import Silent, Telemetry
from waypost.telemetry.tracing import Tracing

APP = AppId("demo")
APNS = CredentialId(AppId("demo"), Channel("apns"))
FCM = CredentialId(AppId("demo"), Channel("fcm"))
HELLO = Content(title="hello")
PLATFORMS = {Channel("apns"): Platform("ios"), Channel("fcm"): Platform("android")}


class ScriptedSender:
    """Answers each delivery with what *answer* says, on the next turn of the loop; None is no answer yet."""

    def __init__(self, channel: Channel, name: str = "") -> None:
        self.credential = CredentialId(AppId("demo"), channel, name)
        self.capabilities = Capabilities(channel, 10_000, 1_000, 4096)
        self.answer: Callable[[Delivery], Outcome | None] = lambda delivery: Taken("id")
        self.sent: list[Delivery] = []
        self.open: list[tuple[Delivery, Report]] = []
        self.on_send: Callable[[Delivery], None] = lambda delivery: None

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Note the batch and answer it."""
        for delivery in batch:
            self.on_send(delivery)
            self.sent.append(delivery)
            outcome = self.answer(delivery)
            if outcome is None:
                self.open.append((delivery, report))
            else:
                asyncio.get_running_loop().call_soon(report, delivery, outcome)

    def finish(self, outcome: Outcome) -> None:
        """Answer everything that waits."""
        waiting, self.open = self.open, []
        for delivery, report in waiting:
            report(delivery, outcome)

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self, timeout_s: float) -> None:
        """Nothing to stop."""

    def render(self, delivery: Delivery) -> Rendered:
        """Nothing to show."""
        return Rendered({}, b"", 0, 4096)

    def health(self) -> Health:
        """Always well."""
        return Health(ok=True)


class LaneBench:
    """One lane at work."""

    def __init__(self, board_path: Path, work_of: Callable[[Work], Work] = lambda work: work) -> None:
        self.clock = StoppedClock()
        self.store = MemoryStore()
        self.work = work_of(MemoryWork(self.store, self.clock))
        self.views = MemoryViews(self.store, self.clock)
        self.journal = MemoryJournal(self.store)
        self.devices = MemoryDevices(self.store)
        self.worker_slots = WorkerSlots(board_path)
        self.apns, self.fcm = ScriptedSender(Channel("apns")), ScriptedSender(Channel("fcm"))
        self.rules = BreakerRules(failures_to_open=3, ramp_start=2)
        self.ids = RandomIds(self.clock)
        self.budgets: dict[Lane, int] = {}
        self.rates: dict[CredentialId, RateGate] = {}
        self.routing_rules: Sequence[Rule] = RULES
        self.renderers: Sequence[Renderer] = ()
        self.facts: FactsReader | None = None
        self.claims: Claims | None = None
        self.telemetry: Telemetry = Silent()
        self.tracing: Tracing | None = None
        self.others: Sequence[Sender] = ()
        """Senders of further credentials."""
        self.fallbacks = Fallbacks()
        self.families: Mapping[Channel, str] | None = None
        """The family of each channel; None where all are of apps."""

    def context(self) -> DeliveryContext:
        """What the lane works with, as the composition root puts it together."""
        senders: dict[CredentialId, Sender] = {
            sender.credential: sender for sender in (self.apns, self.fcm, *self.others)
        }
        capabilities = {name: each.capabilities for name, each in senders.items()}
        gates = Gates(capabilities, self.budgets, self.rules, self.telemetry, self.rates, fallbacks=self.fallbacks)
        return DeliveryContext(
            work=self.work,
            devices=self.devices,
            senders=senders,
            routing=RoutingTable(
                {platform: channel for channel, platform in PLATFORMS.items()},
                {APP: {name.channel: (name,) for name in senders if not name.name}},
                self.routing_rules,
                self.renderers,
                self.families,
            ),
            rules={APP: RetryRules()},
            gates=gates,
            settler=Settler(self.work, self.telemetry, 1_000, gates.parked),
            poison=PoisonWatch(self.worker_slots, slot=0),
            clock=self.clock,
            jitter=lambda: 0.0,
            telemetry=self.telemetry,
            fallbacks=self.fallbacks,
            facts=self.facts,
            claims=self.claims,
            tracing=self.tracing,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LaneLoop]:
        """A lane loop and its settler, until the block ends."""
        self.made = self.context()
        loop = LaneLoop(Lane.NORMAL, self.made)
        self.made.settler.on_written = lambda _: loop.wake()
        tasks = [asyncio.create_task(self.made.settler.run()), asyncio.create_task(loop.run())]
        try:
            yield loop
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def register(self, user: str, *channels: Channel) -> None:
        """Give *user* one device on each channel."""
        for channel in channels:
            registration = Registration(
                APP, UserId(user), DeviceId(f"{user}-{channel}"), PLATFORMS[channel], f"token-{user}-{channel}"
            )
            await self.devices.upsert(registration, self.clock.now(), cap=10)

    async def accept(
        self,
        user: str,
        guarantee: Guarantee = Guarantee.AT_LEAST_ONCE,
        *,
        ttl_ms: int = DAY_MS,
        urgency: Urgency = Urgency.NORMAL,
        scheduled_at: Instant | None = None,
        content: Content = HELLO,
    ) -> NotificationId:
        """Accept one notification for *user*."""
        (new_id,) = self.ids.next(1)
        now = self.clock.now()
        notification = Notification(
            id=new_id,
            app=APP,
            caller=CallerId("test"),
            user_id=UserId(user),
            content=content,
            created_at=now,
            expires_at=later(now, ttl_ms),
            ttl_ms=ttl_ms,
            lane=Lane.NORMAL,
            urgency=urgency,
            guarantee=guarantee,
            scheduled_at=scheduled_at,
        )
        await self.work.accept([NewNotification(notification)])
        return new_id

    async def detail(self, notification_id: NotificationId) -> NotificationDetail:
        """What became of it."""
        detail = await self.views.detail(APP, notification_id)
        assert detail is not None
        return detail

    def statuses(self, told: NotificationId) -> dict[Channel | None, DeliveryStatus]:
        """The receipts of a notification as stored, by channel."""
        return {receipt.channel: receipt.status for receipt in self.store.rows[told].receipts.values()}

    async def written(self) -> None:
        """Wait until outcomes that were reported are written."""
        for _ in range(3):
            await asyncio.sleep(0)
        await self.made.settler.drained()

    async def settled(self, loop: LaneLoop) -> None:
        """Let the lane do what it can: nothing in flight, nothing left to write."""
        loop.wake()
        await until(lambda: loop.is_idle)
        await loop.landed()
        await self.made.settler.drained()


async def until(is_so: Callable[[], bool]) -> None:
    """Turn the event loop until a thing is so; a minute is for ever."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - asks the parts under test, which tell nobody
            await asyncio.sleep(0.001)

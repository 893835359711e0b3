"""Parts of a provider that fail on their own: one that is away stops its own deliveries and no others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.unit.adapters.deliveries import delivery, notification
from tests.unit.runtime.timed import AWAY, TAKEN, TimedBench
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Outcome, Throttled
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.ports.sender import Capabilities
from waypost.runtime.concurrency import Handed
from waypost.runtime.gates import Gates
from waypost.runtime.scopes import PLACES
from waypost.telemetry import Silent

RULES = BreakerRules(failures_to_open=3, ramp_start=2)


class ScopedBench(TimedBench):
    """FCM stands for a provider of many parts: a user ``dead.3`` hangs on the part ``dead``."""

    def __init__(self, board_path: Path) -> None:
        super().__init__(board_path)
        self.rules = RULES
        self.fcm.capabilities = msgspec.structs.replace(self.fcm.capabilities, scope_of=_part, fails_apart=True)

    async def tell(self, part: str, count: int) -> list[NotificationId]:
        """Accept one notification each for *count* users of *part*."""
        told = []
        for n in range(count):
            await self.register(f"{part}.{n}", Channel("fcm"))
            told.append(await self.accept(f"{part}.{n}"))
        return told

    def sent_to(self, part: str) -> int:
        """Attempts at the devices of *part*."""
        return sum(_part(each) == part for each in self.fcm.sent)


def _part(delivery: Delivery) -> str:
    return delivery.device.token.split("-")[1].partition(".")[0]


@pytest.fixture
def bench(tmp_path: Path) -> ScopedBench:
    """A lane on an empty store."""
    return ScopedBench(tmp_path / "worker_slots")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("outcome", "tries"),
    [(AWAY, 3), (Throttled("http_429", 60_000, whole=True), 3)],
    ids=["away", "asks for patience"],
)
async def test_a_part_that_is_away_stops_its_own_alone(bench: ScopedBench, outcome: Outcome, tries: int) -> None:
    """Its deliveries are parked and come back by probe and ramp; those of the other parts are sent meanwhile."""
    bench.fcm.answer = lambda one: outcome if _part(one) == "dead" else TAKEN
    async with bench.running() as loop:
        first = await bench.tell("dead", 3)
        await bench.turn(loop)
        waiting = await bench.tell("dead", 4)
        well = await bench.tell("live", 4)
        await bench.turn(loop)
        assert (bench.sent_to("dead"), bench.sent_to("live")) == (tries, 4)
        parked = {(await bench.receipt(each, Channel("fcm"))).parked for each in waiting}
        assert parked == {"breaker:demo/fcm#0"}
        assert {(await bench.receipt(each, Channel("fcm"))).status for each in well} == {DeliveryStatus.SENT}
        bench.fcm.answer = lambda one: TAKEN
        await bench.pass_time(loop, 90)
        assert {(await bench.receipt(each, Channel("fcm"))).status for each in first + waiting} == {DeliveryStatus.SENT}


@pytest.mark.asyncio
async def test_a_refused_credential_stops_every_part(bench: ScopedBench) -> None:
    """Only that speaks of the credential."""
    bench.fcm.answer = lambda one: CredentialRejected("errno_109", "the key") if _part(one) == "one" else TAKEN
    async with bench.running() as loop:
        await bench.tell("one", 1)
        await bench.turn(loop)
        (told,) = await bench.tell("two", 1)
        await bench.register("ann", Channel("fcm"), Channel("apns"))
        await bench.accept("ann")
        await bench.turn(loop)
        assert bench.sent_to("two") == 0
        bench.fcm.answer = lambda one: TAKEN
        await bench.pass_time(loop, 30)
        assert (await bench.receipt(told, Channel("fcm"))).status is DeliveryStatus.SENT


@pytest.mark.asyncio
async def test_what_another_process_parked_comes_back(bench: ScopedBench) -> None:
    """After a restart nobody knows which part a place was for: what the store names is asked for, to the last."""
    bench.fcm.answer = lambda one: AWAY
    async with bench.running() as loop:
        for part in ("one", "two"):
            await bench.tell(part, 3)
            await bench.turn(loop)
            told = await bench.tell(part, 1)
            await bench.turn(loop)
    assert (await bench.receipt(told[0], Channel("fcm"))).parked == "breaker:demo/fcm#1"
    bench.fcm.answer = lambda one: TAKEN
    async with bench.running() as loop:
        bench.made.gates.found_parked(await bench.work.conditions())
        await bench.turn(loop)
        assert (await bench.receipt(told[0], Channel("fcm"))).status is DeliveryStatus.SENT


BATCH = Handed(Instant(0), 0.0, 1)


def _to(part: str) -> Delivery:
    return delivery(Platform("android"), f"token-{part}", notification(notification_id=NotificationId(part.encode())))


def test_ever_new_parts_take_no_more_places_than_there_are() -> None:
    """Whoever names a thousand parts gets no thousand breakers; those in trouble stay as long as others can go."""
    gates = Gates(
        {_to("x").credential: Capabilities(Channel("fcm"), 1, 1_000, 1, _part, fails_apart=True)}, {}, RULES, Silent()
    )
    gate = gates.of(Lane.NORMAL)[_to("x").credential]
    for _ in range(3):
        assert gate.admit(_to("dead")) is None
        gate.done(_to("dead"), AWAY, BATCH, 0.0)
    assert gate.admit(_to("dead")) == f"{gate.circuit.condition}{PLACES[0]}"
    for n in range(1_000):
        assert gate.admit(_to(f"well{n}")) is None
        gate.done(_to(f"well{n}"), TAKEN, BATCH, 0.0)
    assert gate.admit(_to("dead")) is not None
    for n in range(1_000):
        for _ in range(3):
            assert gate.admit(_to(f"bad{n}")) is None
            gate.done(_to(f"bad{n}"), AWAY, BATCH, 0.0)
    assert gate.admit(_to("dead")) is None, "forgotten: it is tried again"
    conditions = [each for each in gates.lifted() if each.startswith("breaker")]
    assert len(conditions) <= 1 + len(PLACES)


def test_a_place_that_changed_hands_while_in_flight_does_not_miscount() -> None:
    """The outcome of a part that lost its place takes nothing from whoever has it now."""
    gates = Gates(
        {_to("x").credential: Capabilities(Channel("fcm"), 1, 1_000, 1, _part, fails_apart=True)}, {}, RULES, Silent()
    )
    gate = gates.of(Lane.NORMAL)[_to("x").credential]
    parts = [f"part{n}" for n in range(len(PLACES) + 1)]
    for part in parts:
        assert gate.admit(_to(part)) is None
    for part in parts:
        gate.done(_to(part), TAKEN, BATCH, 0.0)
    assert gates.in_flight() == {_to("x").credential: 0}
    assert gate.admit(_to("part0")) is None

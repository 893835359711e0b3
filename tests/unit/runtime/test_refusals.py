"""How far a refusal reaches: one device, one part of a provider, or the whole credential; and who probes after it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.unit.adapters.deliveries import delivery, fresh_ids, notification
from tests.unit.adapters.noted import Noted
from tests.unit.runtime.timed import AWAY, TAKEN, TimedBench
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Outcome, Reach, Throttled, Unanswered
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.ports.sender import Capabilities
from waypost.runtime.concurrency import Handed
from waypost.runtime.gates import Gates
from waypost.runtime.refusals import REMEMBERED, Refusals, Weight
from waypost.telemetry import Event, Metric

FCM, APNS = Channel("fcm"), Channel("apns")
OF_ONE = CredentialRejected("http_403", "refused", Reach.DEVICE)
OF_ITS_PART = CredentialRejected("TopicDisallowed", "not to this topic", Reach.SCOPE)
OF_ALL = CredentialRejected("Forbidden", "the key was revoked")


class Told(Noted):
    """Keeps events, and gauges and counts as they are now."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[tuple[Metric, tuple[str, ...]], float] = {}

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Add it."""
        at = metric, tuple(labels.values())
        self.values[at] = self.values.get(at, 0) + n

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep it."""
        self.values[metric, tuple(labels.values())] = value


class PartedBench(TimedBench):
    """FCM stands for a provider with parts that only refuse apart: a user ``calls.3`` hangs on the part ``calls``."""

    def __init__(self, board_path: Path) -> None:
        super().__init__(board_path)
        self.rules = BreakerRules(failures_to_open=3, ramp_start=2)
        self.fcm.capabilities = msgspec.structs.replace(self.fcm.capabilities, scope_of=_part)
        self.telemetry = self.told = Told()

    async def tell(self, user: str) -> NotificationId:
        """Accept one notification for *user*, who has one device."""
        await self.register(user, FCM)
        return await self.accept(user)

    async def statuses_of(self, told: list[NotificationId]) -> set[DeliveryStatus]:
        """As the receipts say."""
        return {(await self.receipt(each, FCM)).status for each in told}


def _part(delivery: Delivery) -> str:
    return _user(delivery).partition(".")[0]


def _user(delivery: Delivery) -> str:
    return delivery.device.user_id


@pytest.fixture
def bench(tmp_path: Path) -> PartedBench:
    """A lane on an empty store."""
    return PartedBench(tmp_path / "worker_slots")


@pytest.mark.asyncio
async def test_a_part_that_refuses_us_stops_its_own_alone(bench: PartedBench) -> None:
    """Nothing else waits, no operator is told that the key is bad, and what waits goes out once it is mended."""
    bench.fcm.answer = lambda one: OF_ITS_PART if _part(one) == "calls" else TAKEN
    async with bench.running() as loop:
        first = await bench.tell("calls.0")
        await bench.turn(loop)
        behind = await bench.tell("calls.1")
        well = [await bench.tell(f"alerts.{n}") for n in range(4)]
        await bench.turn(loop)
        assert (await bench.receipt(behind, FCM)).parked == "breaker:demo/fcm#0"
        assert await bench.statuses_of(well) == {DeliveryStatus.SENT}
        opened = {"credential": "demo/fcm", "scope": "calls", "code": "TopicDisallowed"}
        assert bench.told.fields_of(Event.BREAKER_OPENED) == [opened]
        assert bench.told.fields_of(Event.CREDENTIAL_DENIED) == []
        assert bench.told.values[Metric.DENIED, ("demo/fcm", "scope")] == 1
        assert bench.told.values[Metric.BREAKER, ("demo/fcm",)] == 0
        await bench.turn(loop)
        assert bench.told.values[Metric.SCOPES, ("demo/fcm",)] == 1
        (part,) = bench.made.gates.open_scopes(CredentialId(AppId("demo"), Channel("fcm")))
        assert (part.scope, part.opened_by) == ("calls", "TopicDisallowed")
        bench.fcm.answer = lambda one: TAKEN
        await bench.pass_time(loop, 30)
        assert await bench.statuses_of([first, behind]) == {DeliveryStatus.SENT}
        assert bench.told.values[Metric.SCOPES, ("demo/fcm",)] == 0


@pytest.mark.asyncio
async def test_a_provider_that_is_away_stops_every_part_of_what_is_one_place(bench: PartedBench) -> None:
    """Its parts refuse apart, but are reached over the same connections."""
    bench.fcm.answer = lambda one: AWAY
    async with bench.running() as loop:
        for n in range(3):
            await bench.tell(f"part{n}.0")
        await bench.turn(loop)
        behind = await bench.tell("alerts.0")
        await bench.register("alerts.0", APNS)
        await bench.turn(loop)
        assert bench.told.values[Metric.BREAKER, ("demo/fcm",)] == 1
        assert all(_user(each) != "alerts.0" for each in bench.fcm.sent)
        bench.fcm.answer = lambda one: TAKEN
        await bench.pass_time(loop, 60)
        assert await bench.statuses_of([behind]) == {DeliveryStatus.SENT}


FAILURES = [
    OF_ITS_PART,
    OF_ALL,
    AWAY,
    Unanswered("timeout", "no answer"),
    Throttled("QUOTA_EXCEEDED", 5_000, whole=True),
    Throttled("QUOTA_EXCEEDED", None, whole=True),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: f"{type(each).__name__}-{getattr(each, 'reach', '')}")
async def test_no_delivery_makes_two_probes_in_a_row(bench: PartedBench, failure: Outcome) -> None:
    """Whatever a probe met, the next is another's, and so what waits behind one that always fails gets through."""
    bench.fcm.answer = lambda one: failure
    async with bench.running() as loop:
        for n in range(3):
            await bench.tell(f"part.{n}")
        await bench.turn(loop)
        for n in range(3, 8):
            await bench.tell(f"part.{n}")
        await bench.turn(loop)
        before = len(bench.fcm.sent)
        await bench.pass_time(loop, 180)
        probes = [each.id for each in bench.fcm.sent[before:]]
        assert len(probes) >= 3
        assert all(one != another for one, another in pairwise(probes))


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [OF_ITS_PART, OF_ALL], ids=["scope", "credential"])
async def test_one_that_is_refused_while_others_are_taken_stops_them_once(
    bench: PartedBench, failure: CredentialRejected
) -> None:
    """Then it is known to be meant alone: it is tried a few times more and ends as a dead letter."""
    bench.fcm.answer = lambda one: failure if _user(one) == "part.bad" else TAKEN
    async with bench.running() as loop:
        bad = await bench.tell("part.bad")
        await bench.turn(loop)
        for n in range(60):
            await bench.tell(f"part.{n % 20}")
            await bench.pass_time(loop, 1)
        receipt = await bench.receipt(bad, FCM)
        assert (receipt.status, receipt.code, receipt.dead) == (DeliveryStatus.FAILED, failure.code, True)
        assert len(bench.told.fields_of(Event.BREAKER_OPENED)) == 1
        assert len(bench.fcm.sent) >= 60


@pytest.mark.asyncio
async def test_one_device_that_is_refused_stops_nobody(bench: PartedBench) -> None:
    """It alone is tried again, by the retry policy, and ends as a dead letter long before its day is over."""
    bench.fcm.answer = lambda one: OF_ONE if _user(one) == "part.bad" else TAKEN
    async with bench.running() as loop:
        bad = await bench.tell("part.bad")
        for n in range(40):
            well = await bench.tell(f"part.{n}")
            await bench.turn(loop)
            assert await bench.statuses_of([well]) == {DeliveryStatus.SENT}
            await bench.pass_time(loop, 1)
        receipt = await bench.receipt(bad, FCM)
        assert (receipt.status, receipt.dead) == (DeliveryStatus.FAILED, True)
        assert receipt.attempts[0].message.endswith("(said of this device, as long as others are taken)")
        assert bench.told.fields_of(Event.BREAKER_OPENED) == []


@pytest.mark.asyncio
async def test_one_device_alone_with_its_part_stops_nothing_either(bench: PartedBench) -> None:
    """The same device again and again says nothing of others that may come."""
    bench.fcm.answer = lambda one: OF_ONE
    async with bench.running() as loop:
        bad = [await bench.tell("part.bad") for _ in range(5)]
        await bench.pass_time(loop, 60)
        assert await bench.statuses_of(bad) == {DeliveryStatus.FAILED}
        assert bench.told.fields_of(Event.BREAKER_OPENED) == []


@pytest.mark.asyncio
async def test_when_many_devices_are_refused_and_none_is_taken_their_part_is_refused(bench: PartedBench) -> None:
    """Then they wait and spend nothing more, however long it takes; another part goes on."""
    bench.fcm.answer = lambda one: OF_ONE if _part(one) == "part" else TAKEN
    async with bench.running() as loop:
        told = [await bench.tell(f"part.{n}") for n in range(3)]
        await bench.turn(loop)
        told += [await bench.tell(f"part.{n}") for n in range(3, 9)]
        await bench.pass_time(loop, 1_200, 20)
        assert await bench.statuses_of(told) == {DeliveryStatus.PENDING}
        well = await bench.tell("other.0")
        await bench.turn(loop)
        assert await bench.statuses_of([well]) == {DeliveryStatus.SENT}
        bench.fcm.answer = lambda one: TAKEN
        await bench.pass_time(loop, 180)
        assert await bench.statuses_of(told) == {DeliveryStatus.SENT}


def test_a_delivery_whose_scope_is_known_better_when_it_lands_keeps_no_place() -> None:
    """What is learned of a token meanwhile must not leave a probe's place taken for ever."""
    scopes = iter(["a", "b", "b", "a", "b", "a"])
    made = Capabilities(FCM, 1, 1_000, 1, lambda delivery: next(scopes), fails_apart=True)
    rules = BreakerRules(failures_to_open=1)
    gate = Gates({CredentialId(AppId("demo"), Channel("fcm")): made}, {}, rules, Told()).of(Lane.NORMAL)[
        CredentialId(AppId("demo"), Channel("fcm"))
    ]
    one, other = (delivery(Platform("android"), "x", notification(notification_id=id_)) for id_ in fresh_ids(2))
    assert gate.admit(one) is None
    assert gate.admit(other) is None
    gate.done(one, OF_ITS_PART, Handed(Instant(0), 0.0, 1), 0.0)
    gate.done(other, TAKEN, Handed(Instant(0), 0.0, 1), 0.0)
    assert gate.admit(one) is None, "b is well"
    assert gate.admit(other) == "breaker:demo/fcm#0", "a refused us"


def test_what_is_remembered_of_refusals_is_bounded() -> None:
    refusals = Refusals()
    for n in range(10 * REMEMBERED):
        assert refusals.weigh(OF_ALL, f"token{n}") is Weight.ALL
    refusals.taken("another")
    belied = [n for n in range(10 * REMEMBERED) if refusals.weigh(OF_ALL, f"token{n}") is not Weight.ALL]
    assert len(belied) == REMEMBERED

"""A provider that is away or asks for patience: nothing is lost, and it is not hammered."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.shows import shows
from tests.unit.runtime.bench import APNS, FCM
from tests.unit.runtime.timed import AWAY, LATER, TAKEN, TimedBench
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Throttled
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import HOUR_MS, SECOND_MS
from waypost.ports.sender import Capabilities
from waypost.runtime.gates import TRICKLE, Gates
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio


@pytest.fixture
def bench(tmp_path: Path) -> TimedBench:
    """A lane on an empty store."""
    return TimedBench(tmp_path / "worker_slots")


@shows("S1-16", "S1-65", "S1-66", "S3-103")
async def test_an_outage_of_ten_minutes_loses_nothing(bench: TimedBench) -> None:
    """What waits for the breaker spends no retry, also what probes it; all of it is sent afterwards (S3-103)."""
    bench.rules = BreakerRules(failures_to_open=3, ramp_start=2)
    bench.apns.answer = lambda delivery: AWAY
    told = []
    async with bench.running() as loop:
        for n in range(12):
            await bench.register(f"user-{n}", Channel("apns"))
            told.append(await bench.accept(f"user-{n}"))
            await bench.pass_time(loop, 1)
        await bench.pass_time(loop, 600)
        tried = len(bench.apns.sent)
        bench.apns.answer = lambda delivery: TAKEN
        await bench.pass_time(loop, 120)
    assert tried <= 20, "while it is open there are probes and little else"
    assert [(await bench.receipt(each)).status for each in told] == [DeliveryStatus.SENT] * 12


@shows("S3-103")
async def test_a_lone_notification_outlasts_an_outage(bench: TimedBench) -> None:
    """Its own few failures over ten seconds open the breaker, so its retries are not spent on a dead provider."""
    bench.rules = BreakerRules()
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.pass_time(loop, 600)
        assert (await bench.receipt(told)).status is DeliveryStatus.PENDING
        bench.apns.answer = lambda delivery: TAKEN
        await bench.pass_time(loop, 120)
    assert (await bench.receipt(told)).status is DeliveryStatus.SENT


@shows("S1-125")
async def test_a_quota_that_is_used_up_pauses_the_whole_credential_and_no_other(bench: TimedBench) -> None:
    """After three 429 of the project nothing goes to FCM for its time; APNs goes on (requirements S1-125)."""
    bench.fcm.answer = lambda delivery: Throttled("QUOTA_EXCEEDED", 60_000, whole=True)
    for user in ("ann", "cyd", "dan"):
        await bench.register(user, Channel("fcm"))
    await bench.register("bob", Channel("fcm"), Channel("apns"))
    first = [await bench.accept(user) for user in ("ann", "cyd", "dan")]
    async with bench.running() as loop:
        await bench.turn(loop)
        bench.fcm.answer = lambda delivery: TAKEN
        second = await bench.accept("bob")
        await bench.pass_time(loop, 55)
        assert (len(bench.fcm.sent), len(bench.apns.sent)) == (3, 1)
        await bench.pass_time(loop, 30)
    for told in (*first, second):
        assert (await bench.detail(told)).record.status is NotificationStatus.SENT


async def test_a_pause_of_two_hours_is_probed_within_a_minute(bench: TimedBench) -> None:
    """Three answers with an hour's hints, and the provider is well again: nobody waits for what it said."""
    bench.fcm.answer = lambda delivery: Throttled("QUOTA_EXCEEDED", 2 * HOUR_MS, whole=True)
    users = [f"user-{n}" for n in range(13)]
    for user in users:
        await bench.register(user, Channel("fcm"))
    async with bench.running() as loop:
        first = [await bench.accept(user, ttl_ms=HOUR_MS) for user in users[:3]]
        await bench.turn(loop)
        bench.fcm.answer = lambda delivery: TAKEN
        others = [await bench.accept(user, ttl_ms=HOUR_MS) for user in users[3:]]
        await bench.pass_time(loop, 70)
        assert [(await bench.detail(each)).record.status for each in others] == [NotificationStatus.SENT] * 10
        await bench.pass_time(loop, HOUR_MS // SECOND_MS, step_s=5)
    assert [(await bench.detail(each)).record.status for each in first] == [NotificationStatus.SENT] * 3


@pytest.mark.parametrize("well_after_s", [0, 90])
async def test_what_ends_without_being_sent_ends_while_every_breaker_is_open(
    bench: TimedBench, well_after_s: int
) -> None:
    """Fresh work that is over, for nobody, or now or never; the rest is parked, and sent once there is a provider."""
    bench.fcm.answer = bench.apns.answer = lambda delivery: CredentialRejected("403", "the key was refused")
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    async with bench.running() as loop:
        await bench.accept("ann")
        await bench.turn(loop)
        await bench.pass_time(loop, well_after_s, step_s=3)
        fresh = {
            NotificationStatus.NO_TARGETS: await bench.accept("nobody"),
            NotificationStatus.EXPIRED: await bench.accept("ann", ttl_ms=0),
        }
        short = await bench.accept("ann", ttl_ms=2 * SECOND_MS)
        lasting = await bench.accept("ann")
        await bench.pass_time(loop, 5)
        for status, told in fresh.items():
            assert (await bench.detail(told)).record.status is status
        assert (await bench.detail(short)).record.status is NotificationStatus.EXPIRED
        assert {each.parked for each in (await bench.detail(lasting)).receipts} == {f"breaker:{APNS}", f"breaker:{FCM}"}
        bench.fcm.answer = bench.apns.answer = lambda delivery: TAKEN
        await bench.pass_time(loop, 200)
    assert (await bench.detail(lasting)).record.status is NotificationStatus.SENT


async def test_a_backlog_behind_open_breakers_is_leased_at_a_trickle(bench: TimedBench) -> None:
    """It is written down as parked, a few at a time: no storm of writes in an outage."""
    bench.fcm.answer = bench.apns.answer = lambda delivery: CredentialRejected("403", "the key was refused")
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    async with bench.running() as loop:
        await bench.accept("ann")
        await bench.turn(loop)
        told = [await bench.accept("ann") for _ in range(2 * TRICKLE + 1)]
        taken = []
        for _ in range(3):
            await bench.pass_time(loop, 1)
            taken.append(sum([bool((await bench.detail(each)).receipts) for each in told]))
    assert taken == [TRICKLE, 2 * TRICKLE, 2 * TRICKLE + 1]


@shows("S3-103")
async def test_no_delivery_makes_every_probe(bench: TimedBench) -> None:
    """One that always fails does not keep the breaker open: the next probe is another's."""
    bench.rules = BreakerRules(failures_to_open=3, ramp_start=2)
    bench.apns.answer = lambda delivery: AWAY if delivery.device.user_id == "ann" else TAKEN
    await bench.register("ann", Channel("apns"))
    await bench.register("bob", Channel("apns"))
    async with bench.running() as loop:
        await bench.accept("ann")
        await bench.pass_time(loop, 8)
        told = await bench.accept("bob")
        await bench.pass_time(loop, 60)
    assert (await bench.receipt(told)).status is DeliveryStatus.SENT


@shows("S3-105")
async def test_a_storm_of_throttling_ends_fully_delivered(bench: TimedBench) -> None:
    """Every second answer is a 429 (requirements S3-105)."""
    turns = itertools.count()
    bench.apns.answer = lambda delivery: LATER if next(turns) % 2 else TAKEN
    told = []
    for n in range(30):
        await bench.register(f"user-{n}", Channel("apns"))
        told.append(await bench.accept(f"user-{n}"))
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 120)
    assert [(await bench.receipt(each)).status for each in told] == [DeliveryStatus.SENT] * 30


@pytest.mark.parametrize(("parks", "room"), [(True, TRICKLE), (False, 0)])
async def test_where_nothing_can_be_parked_nothing_is_leased_that_cannot_be_sent(parks: bool, room: int) -> None:
    """The drop-in's queue is the stream itself: what it took would come back at once."""
    gates = Gates({FCM: Capabilities(Channel("fcm"), 10_000, 1_000, 4096)}, {}, BreakerRules(), Silent(), parks=parks)
    gates.of(Lane.NORMAL)[FCM].circuit.done(CredentialRejected("403", "the key was refused"), 0.0, 100)
    assert gates.room(Lane.NORMAL, 1.0, 1.0) == room

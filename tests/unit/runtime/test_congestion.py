"""A provider that is slow to answer: it gets less at once, and nothing is sent again that it may have."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.unit.runtime.bench import APNS, FCM, until
from tests.unit.runtime.timed import TAKEN, TimedBench
from waypost.domain.breaker import BreakerRules, BreakerState
from waypost.domain.channel import Channel
from waypost.domain.notification import Lane
from waypost.domain.outcome import Outcome, Refused, Throttled, Unanswered
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.ports.sender import Capabilities
from waypost.runtime.concurrency import Concurrency, Handed
from waypost.runtime.gates import Gates
from waypost.runtime.lane import LaneLoop
from waypost.telemetry import Silent

BUDGETS = dict.fromkeys(Lane, 100)


@pytest.fixture
def bench(tmp_path: Path) -> TimedBench:
    """A lane on an empty store."""
    bench = TimedBench(tmp_path / "worker_slots")
    bench.rules = BreakerRules(ramp_start=2)
    return bench


async def _pass(bench: TimedBench, loop: LaneLoop, span_s: int, stalled_s: float = 0.0) -> None:
    """Let time go by at once, with deliveries still in flight."""
    bench.clock.advance(span_s * 1_000)
    bench.made.gates.tick(bench.clock.monotonic(), stalled_s)
    await bench.work.promote_due(bench.clock.now(), 100, bench.made.gates.lifted())
    await _leased(bench, loop)


async def _leased(bench: TimedBench, loop: LaneLoop) -> None:
    loop.wake()
    await until(lambda: loop.is_idle)
    await bench.made.settler.drained()


@pytest.mark.asyncio
async def test_an_overdue_answer_pauses_all_that_goes_the_same_way(bench: TimedBench) -> None:
    """Nothing but one probe follows while the answer may still come; when it comes the rest goes on, each once."""
    for user in ("ann", "bob", "cyd"):
        await bench.register(user, Channel("apns"))
    bench.apns.answer = lambda delivery: None
    async with bench.running() as loop:
        told = [await bench.accept("ann")]
        await _leased(bench, loop)
        await _pass(bench, loop, 5)
        told += [await bench.accept("bob"), await bench.accept("cyd")]
        await _leased(bench, loop)
        assert len(bench.apns.sent) == 1
        await _pass(bench, loop, 7)
        assert len(bench.apns.sent) == 2, "a probe, although the first is still unanswered"
        await _pass(bench, loop, 1)
        assert len(bench.apns.sent) == 2
        bench.apns.answer = lambda delivery: TAKEN
        bench.apns.finish(TAKEN)
        await bench.pass_time(loop, 5)
        assert {(await bench.receipt(each)).status for each in told} == {DeliveryStatus.SENT}
    assert len(bench.apns.sent) == 3


@pytest.mark.asyncio
async def test_one_that_stays_unanswered_among_others_pauses_nobody(bench: TimedBench) -> None:
    """Later ones are answered: it is that message's own misfortune."""
    bench.apns.answer = lambda delivery: None if delivery.device.user_id == "ann" else TAKEN
    await bench.register("ann", Channel("apns"))
    await bench.register("bob", Channel("apns"))
    async with bench.running() as loop:
        await bench.accept("ann")
        await _leased(bench, loop)
        for _ in range(8):
            told = await bench.accept("bob")
            await _pass(bench, loop, 1)
            await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})  # noqa: B023 - of this round


@pytest.mark.asyncio
async def test_what_a_dead_connection_took_along_stops_nobody_after_a_probe_was_taken(bench: TimedBench) -> None:
    """Two dozen are given up together, long after the others go on over another connection."""
    bench.rules = BreakerRules()
    bench.apns.answer = lambda delivery: None
    await bench.register("ann", Channel("apns"))
    async with bench.running() as loop:
        for _ in range(24):
            await bench.accept("ann")
        await _leased(bench, loop)
        await _pass(bench, loop, 6)
        bench.apns.answer = lambda delivery: TAKEN
        await bench.accept("ann")
        await _pass(bench, loop, 7)
        circuit = bench.made.gates.of(Lane.NORMAL)[APNS].circuit
        assert (len(bench.apns.sent), circuit.state) == (25, BreakerState.CLOSED)
        bench.apns.finish(Unanswered("timeout", "no answer before the deadline"))
        assert circuit.state is BreakerState.CLOSED


@pytest.mark.asyncio
async def test_time_in_which_the_process_stood_still_makes_no_answer_late(bench: TimedBench) -> None:
    """It was stopped for half a minute: what came meanwhile is not read yet."""
    bench.apns.answer = lambda delivery: None
    await bench.register("ann", Channel("apns"))
    async with bench.running() as loop:
        await bench.accept("ann")
        await _leased(bench, loop)
        await _pass(bench, loop, 30, stalled_s=30.0)
        await bench.accept("ann")
        await _leased(bench, loop)
        assert len(bench.apns.sent) == 2


def _round(one: Concurrency, lane: Lane, at_s: float, took_s: float, outcome: Outcome = TAKEN) -> None:
    """Fill the lane, let all of it land, and end the round."""
    batch = Handed(Instant(0), at_s, one.room(lane))
    one.handed(batch)
    n = batch.left
    for _ in range(n):
        one.take(lane)
    one.tick(at_s, 0.0)
    for _ in range(n):
        batch.left -= 1
        one.give_back(lane)
        one.landed(outcome, batch, at_s + took_s)
    one.tick(at_s + took_s + 1, 0.0)


def test_quick_answers_lead_up_to_the_budget_and_slow_ones_down() -> None:
    one = Concurrency(BUDGETS, late_after_s=10.0)
    assert one.most(Lane.NORMAL) < 100
    for n in range(20):
        _round(one, Lane.NORMAL, 10.0 * n, 0.1)
    assert (one.most(Lane.NORMAL), one.limit) == (100, 600)
    for n in range(20, 24):
        _round(one, Lane.NORMAL, 10.0 * n, 4.0)
    assert one.most(Lane.NORMAL) < 20


@pytest.mark.parametrize(
    ("falls", "share", "grows"), [(0, 0.4, False), (0, 0.5, True), (1, 0.8, False), (1, 0.9, True)]
)
def test_a_lane_that_about_fills_its_share_is_held_up_by_it(falls: int, share: float, grows: bool) -> None:
    """Leases fit into the room there is, and so seldom fill it: in slow start half is enough."""
    one = Concurrency(BUDGETS, late_after_s=10.0)
    for _ in range(falls):
        _round(one, Lane.NORMAL, 10.0, 0.1, Unanswered("timeout", "no answer"))
    before, batch = one.limit, Handed(Instant(0), 100.0, math.ceil(one.most(Lane.NORMAL) * share))
    one.take(Lane.NORMAL, batch.left)
    one.answered(batch.left, batch, 100.1)
    one.tick(101.0, 0.0)
    assert (one.limit > before) is grows


def test_a_slow_provider_does_not_set_the_pace_for_the_others() -> None:
    """The lane leases what the quick one has room for; where it has nothing but the slow one, as much as that takes."""
    made = {name: Capabilities(name.channel, 20_000, 1_000, 1) for name in (APNS, FCM)}
    gates = Gates(made, {}, BreakerRules(), Silent())
    slow, quick = gates.of(Lane.NORMAL)[FCM], gates.of(Lane.NORMAL)[APNS]
    for n in range(4):
        _round(slow.circuit.concurrency, Lane.NORMAL, 10.0 * n, 4.0)
    assert 0 < slow.room() < quick.room()
    assert gates.room(Lane.NORMAL, now_s=100.0, waited_s=0.0) == quick.room()
    for _ in range(100):
        gates.heed(Lane.NORMAL, {FCM: 10}, 10)
    assert gates.room(Lane.NORMAL, now_s=100.0, waited_s=0.0) == slow.room()


@pytest.mark.parametrize("outcome", [Unanswered("timeout", "no answer"), Throttled("QUOTA_EXCEEDED", None, whole=True)])
def test_signs_of_overload_lower_the_limit(outcome: Outcome) -> None:
    one = Concurrency(BUDGETS, late_after_s=10.0)
    before = one.limit
    _round(one, Lane.NORMAL, 10.0, 0.1, outcome)
    assert one.limit == pytest.approx(0.7 * before, abs=1)


@pytest.mark.parametrize("outcome", [Refused("PayloadTooLarge", "large"), Throttled("TooManyRequests", 1_000)])
def test_what_is_said_of_one_message_does_not(outcome: Outcome) -> None:
    one = Concurrency(BUDGETS, late_after_s=10.0)
    before = one.limit
    _round(one, Lane.NORMAL, 10.0, 0.1, outcome)
    assert one.limit == before


def test_a_lane_at_its_share_leaves_the_others_theirs() -> None:
    one = Concurrency(BUDGETS, late_after_s=10.0)
    while one.room(Lane.BULK):
        one.take(Lane.BULK)
    assert one.room(Lane.CRITICAL) == one.most(Lane.CRITICAL) > 0


def test_what_is_refused_without_being_sent_hides_no_overdue_answer() -> None:
    """A payload that is too large, a token that cannot be one: the provider has not said anything."""
    one = Concurrency(BUDGETS, late_after_s=10.0)
    sent, kept = Handed(Instant(0), 0.0, 1), Handed(Instant(0), 5.0, 1)
    one.handed(sent)
    one.handed(kept)
    kept.left = 0
    one.landed(Refused("PayloadTooLarge", "large"), kept, 5.0)
    assert one.is_late(10.0)


def test_what_is_parked_comes_back_by_the_room_of_its_own_lanes() -> None:
    """A lane that was refused once and has nothing left there does not lift what others wait for."""
    one = Concurrency(BUDGETS, late_after_s=10.0)
    while one.room(Lane.CRITICAL):
        one.take(Lane.CRITICAL)
    one.refused(Lane.BULK)
    one.nothing_waits()
    one.refused(Lane.CRITICAL)
    assert one.room_for_parked() == 0


def test_a_count_that_was_lost_never_goes_below_nothing() -> None:
    one = Concurrency(BUDGETS, late_after_s=10.0)
    one.give_back(Lane.LOW)
    assert one.room(Lane.LOW) == one.most(Lane.LOW)

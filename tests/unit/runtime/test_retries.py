"""What becomes of failures over time: retried as the policy says, never too early, never after the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.unit.runtime.bench import APP, LaneBench
from waypost.domain.breaker import BreakerRules
from waypost.domain.delivery import FailureClass, Receipt
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Channel, Urgency
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.retry import POLICIES, RetryRules
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, MINUTE_MS, SECOND_MS
from waypost.ports.journal import DeliveryMoved
from waypost.ports.views import DeadQuery
from waypost.runtime.lane import Crew, LaneLoop

pytestmark = pytest.mark.asyncio

TAKEN = Taken("p1")
AWAY = Unreachable("ServiceUnavailable", "Apple is not available")
SILENT = Unanswered("timeout", "no answer")
LATER = Throttled("TooManyRequests", 7 * SECOND_MS)
REFUSED = Refused("BadCollapseId", "the request breaks a rule of APNs")
GONE = Gone("Unregistered")


class TimedBench(LaneBench):
    """A lane whose time is moved by the test; notes when each attempt was made."""

    def __init__(self, board_path: Path) -> None:
        super().__init__(board_path)
        self.rules = BreakerRules(failures_to_open=1_000)
        self.retry = RetryRules()
        self.began = self.clock.now()
        self.attempts_s: list[int] = []
        for sender in (self.apns, self.fcm):
            sender.on_send = lambda delivery: self.attempts_s.append((self.clock.now() - self.began) // SECOND_MS)

    def crew(self) -> Crew:
        """With the policies of the test."""
        return msgspec.structs.replace(super().crew(), rules={APP: self.retry})

    def under(self, policy: str) -> None:
        """Let the app use the named policy for everything."""
        self.retry = RetryRules(POLICIES[policy])

    def answers(self, *outcomes: Outcome) -> None:
        """What APNs answers, one after the other; after the last, accepted."""
        script: Iterator[Outcome] = iter(outcomes)
        self.apns.answer = lambda delivery: next(script, TAKEN)

    async def turn(self, loop: LaneLoop) -> None:
        """Release what is due now and let the lane do it."""
        self.made.gates.tick(self.clock.monotonic())
        await self.work.release(self.clock.now(), 100, self.made.gates.lifted())
        await self.settled(loop)

    async def pass_time(self, loop: LaneLoop, span_s: int, step_s: int = 1) -> None:
        """Let time go by in steps, working at each."""
        for _ in range(0, span_s, step_s):
            self.clock.advance(step_s * SECOND_MS)
            await self.turn(loop)

    async def receipt(self, told: NotificationId, channel: Channel = Channel.APNS) -> Receipt:
        """The receipt of one channel."""
        return next(each for each in (await self.story(told)).receipts if each.channel is channel)

    async def letters(self) -> list[str | None]:
        """The codes of the dead letters."""
        return [letter.receipt.code for letter in await self.views.dead(DeadQuery(APP))]


@pytest.fixture
def bench(tmp_path: Path) -> TimedBench:
    """A lane on an empty store."""
    return TimedBench(tmp_path / "board")


@pytest.mark.parametrize("failures", range(6))
async def test_a_transient_failure_is_retried_until_accepted(bench: TimedBench, failures: int) -> None:
    bench.answers(*[AWAY] * failures)
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 40)
    receipt = await bench.receipt(told)
    assert (receipt.status, receipt.attempt, receipt.retries) == (DeliveryStatus.SENT, failures + 1, failures)
    assert bench.attempts_s == [0, 1, 3, 7, 15, 31][: failures + 1]


@pytest.mark.parametrize(("outcome", "base_s"), [(AWAY, 1), (SILENT, 5)])
async def test_after_five_retries_it_is_a_dead_letter(bench: TimedBench, outcome: Outcome, base_s: int) -> None:
    """An unknown answer reads as no answer (requirements S1-71); after a time-out the waits begin at 5 s (S1-121)."""
    bench.apns.answer = lambda delivery: outcome
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 300)
    receipt = await bench.receipt(told)
    assert bench.attempts_s == [base_s * made for made in (0, 1, 3, 7, 15, 31)]
    assert (receipt.status, receipt.failure_class) == (DeliveryStatus.FAILED, FailureClass.RETRYABLE)
    assert await bench.letters() == [receipt.code]


@pytest.mark.parametrize("outcome", [REFUSED, GONE])
async def test_a_terminal_failure_is_one_dead_letter_and_never_retried(bench: TimedBench, outcome: Outcome) -> None:
    bench.apns.answer = lambda delivery: outcome
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 4_000, step_s=100)
    receipt = await bench.receipt(told)
    assert bench.attempts_s == [0]
    assert (receipt.status, receipt.failure_class) == (DeliveryStatus.FAILED, FailureClass.TERMINAL)
    assert receipt.reason
    assert await bench.letters() == [receipt.code]


async def test_a_throttled_delivery_waits_as_told_and_spends_no_retry(bench: TimedBench) -> None:
    bench.answers(*[LATER] * 8)
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 60)
    receipt = await bench.receipt(told)
    assert bench.attempts_s == [7 * n for n in range(9)]
    assert (receipt.status, receipt.retries, receipt.throttles) == (DeliveryStatus.SENT, 0, 8)


async def test_only_the_device_that_failed_is_tried_again(bench: TimedBench) -> None:
    """And on its own channel: the other device gets nothing more (requirements S1-53, S1-54)."""
    bench.answers(AWAY, AWAY)
    await bench.register("ann", Channel.APNS, Channel.FCM)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 10)
    assert (len(bench.apns.sent), len(bench.fcm.sent)) == (3, 1)
    assert (await bench.story(told)).record.status is NotificationStatus.SENT


async def test_a_receipt_is_current_after_each_attempt(bench: TimedBench) -> None:
    """Count, last attempt, next retry, and at the end when it was sent and resolved (requirements S1-60)."""
    bench.answers(AWAY, SILENT)
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    start = bench.began
    async with bench.running() as loop:
        await bench.turn(loop)
        first = await bench.receipt(told)
        assert (first.attempt, first.last_attempt_at, first.due_at) == (1, start, start + SECOND_MS)
        await bench.pass_time(loop, 1)
        second = await bench.receipt(told)
        assert (second.attempt, second.last_attempt_at) == (2, start + SECOND_MS)
        assert second.due_at == start + SECOND_MS + 10 * SECOND_MS
        await bench.pass_time(loop, 10)
    last = await bench.receipt(told)
    assert (last.attempt, last.due_at) == (3, None)
    assert last.sent_at == last.resolved_at == last.last_attempt_at == start + 11 * SECOND_MS
    assert [(made.status, made.code, made.message) for made in last.attempts] == [
        ("unreachable", AWAY.code, AWAY.why),
        ("unanswered", SILENT.code, SILENT.why),
        ("taken", "", ""),
    ]


async def test_each_failure_is_one_event_in_the_journal(bench: TimedBench) -> None:
    bench.answers(AWAY, SILENT)
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 20)
    moves = [move for row in await bench.journal.read(0, 100) for move in row.moves if isinstance(move, DeliveryMoved)]
    assert [(move.notification_id, move.attempt, move.code, move.after) for move in moves] == [
        (told, 1, AWAY.code, DeliveryStatus.PENDING),
        (told, 2, SILENT.code, DeliveryStatus.PENDING),
        (told, 3, SILENT.code, DeliveryStatus.SENT),
    ]


async def test_nothing_is_sent_after_the_end_of_its_time(bench: TimedBench) -> None:
    """Retries that would outlast it end `expired` (requirements S1-94)."""
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann", ttl_ms=5 * SECOND_MS)
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 60)
    assert bench.attempts_s == [0, 1, 3]
    assert (await bench.story(told)).record.status is NotificationStatus.EXPIRED


async def test_the_low_policy_drops_after_two_retries_and_leaves_no_letter(bench: TimedBench) -> None:
    bench.under("s2_low")
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 60)
    assert bench.attempts_s == [0, 2, 10]
    assert (await bench.receipt(told)).status is DeliveryStatus.FAILED
    assert await bench.letters() == []


async def test_the_critical_policy_tries_for_ten_minutes(bench: TimedBench) -> None:
    bench.retry = RetryRules(by_urgency={Urgency.CRITICAL: POLICIES["s2_critical"]})
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel.APNS)
    critical, normal = await bench.accept("ann", urgency=Urgency.CRITICAL), await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 620)
    made = {each: (await bench.receipt(each)).attempts for each in (critical, normal)}
    assert [(one.at - bench.began) // SECOND_MS for one in made[critical]] == [0, 2, 10, 42, 170, 370, 600]
    assert len(made[normal]) == 6


# The policy "S3 sweep" (requirements S3-61 to S3-65).


async def test_the_sweep_retries_at_once_after_5_and_after_15_minutes_and_then_never(bench: TimedBench) -> None:
    bench.under("s3_sweep")
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.turn(loop)
        assert bench.attempts_s == [0, 0]
        await bench.pass_time(loop, 26 * 60, step_s=10)
        await bench.pass_time(loop, DAY_MS // SECOND_MS, step_s=3_600)
    assert bench.attempts_s == [0, 0, 5 * 60, 20 * 60]
    receipt = await bench.receipt(told)
    assert (receipt.status, receipt.retries) == (DeliveryStatus.FAILED, 3)
    assert (await bench.story(told)).record.status is NotificationStatus.FAILED


async def test_the_sweep_leaves_alone_what_is_a_day_old(bench: TimedBench) -> None:
    """Even where it was accepted for longer: its attempts end with its first day."""
    bench.under("s3_sweep")
    bench.answers(Throttled("429", DAY_MS), AWAY)
    await bench.register("ann", Channel.APNS)
    told = await bench.accept("ann", ttl_ms=2 * DAY_MS)
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 2 * DAY_MS // SECOND_MS, step_s=3_600)
    assert len(bench.attempts_s) == 2
    assert (await bench.receipt(told)).status is DeliveryStatus.FAILED


async def test_the_sweep_takes_the_oldest_first_and_one_failure_stops_no_other(bench: TimedBench) -> None:
    """The count is raised before the retry is sent; the second of three fails again, the others are sent."""
    bench.under("s3_sweep")
    told = []
    bench.apns.answer = lambda delivery: AWAY
    async with bench.running() as loop:
        for user in ("ann", "bob", "cyd"):
            await bench.register(user, Channel.APNS)
            told.append(await bench.accept(user))
            await bench.pass_time(loop, 1)
        await bench.pass_time(loop, 10)
        bench.apns.sent.clear()
        counts: list[int] = []
        bench.apns.on_send = lambda delivery: counts.append(
            bench.store.rows[delivery.notification.id].receipts[delivery.n].retries
        )
        bench.apns.answer = lambda delivery: AWAY if delivery.notification.id == told[1] else TAKEN
        bench.clock.advance(5 * MINUTE_MS)
        await bench.turn(loop)
    assert [delivery.notification.id for delivery in bench.apns.sent] == told
    assert counts == [2, 2, 2]
    statuses = [(await bench.receipt(each)).status for each in told]
    assert statuses == [DeliveryStatus.SENT, DeliveryStatus.PENDING, DeliveryStatus.SENT]


# A provider that is away.


async def test_an_outage_of_ten_minutes_loses_nothing(bench: TimedBench) -> None:
    """What waits for the breaker spends no retry, also what probes it; all of it is sent afterwards (S3-103)."""
    bench.rules = BreakerRules(failures_to_open=3, ramp_start=2)
    bench.apns.answer = lambda delivery: AWAY
    told = []
    async with bench.running() as loop:
        for n in range(12):
            await bench.register(f"user-{n}", Channel.APNS)
            told.append(await bench.accept(f"user-{n}"))
            await bench.pass_time(loop, 1)
        await bench.pass_time(loop, 600)
        tried = len(bench.apns.sent)
        bench.apns.answer = lambda delivery: TAKEN
        await bench.pass_time(loop, 120)
    assert tried <= 20, "while it is open there are probes and little else"
    assert [(await bench.receipt(each)).status for each in told] == [DeliveryStatus.SENT] * 12


async def test_no_delivery_makes_every_probe(bench: TimedBench) -> None:
    """One that always fails does not keep the breaker open: the next probe is another's."""
    bench.rules = BreakerRules(failures_to_open=3, ramp_start=2)
    bench.apns.answer = lambda delivery: AWAY if delivery.notification.user_id == "ann" else TAKEN
    await bench.register("ann", Channel.APNS)
    await bench.register("bob", Channel.APNS)
    async with bench.running() as loop:
        await bench.accept("ann")
        await bench.pass_time(loop, 8)
        told = await bench.accept("bob")
        await bench.pass_time(loop, 60)
    assert (await bench.receipt(told)).status is DeliveryStatus.SENT


async def test_a_storm_of_throttling_ends_fully_delivered(bench: TimedBench) -> None:
    """Every second answer is a 429 (requirements S3-105)."""
    turns = itertools.count()
    bench.apns.answer = lambda delivery: LATER if next(turns) % 2 else TAKEN
    told = []
    for n in range(30):
        await bench.register(f"user-{n}", Channel.APNS)
        told.append(await bench.accept(f"user-{n}"))
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 120)
    assert [(await bench.receipt(each)).status for each in told] == [DeliveryStatus.SENT] * 30

"""What becomes of failures over time: retried as the policy says, never too early, never after the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shows import shows
from tests.unit.runtime.timed import AWAY, LATER, TimedBench
from waypost.domain.channel import Channel
from waypost.domain.content import Urgency
from waypost.domain.delivery import FailureClass
from waypost.domain.moves import DeliveryMoved
from waypost.domain.outcome import Gone, Outcome, Refused, Unanswered
from waypost.domain.retry import POLICIES, RetryRules
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import SECOND_MS

pytestmark = pytest.mark.asyncio

SILENT = Unanswered("timeout", "no answer")
REFUSED = Refused("BadCollapseId", "the request breaks a rule of APNs")
GONE = Gone("Unregistered")


@pytest.fixture
def bench(tmp_path: Path) -> TimedBench:
    """A lane on an empty store."""
    return TimedBench(tmp_path / "worker_slots")


@shows("S1-05", "S1-08")
@pytest.mark.parametrize("failures", range(6))
async def test_a_transient_failure_is_retried_until_accepted(bench: TimedBench, failures: int) -> None:
    bench.answers(*[AWAY] * failures)
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 40)
    receipt = await bench.receipt(told)
    assert (receipt.status, receipt.attempt, receipt.retries) == (DeliveryStatus.SENT, failures + 1, failures)
    assert bench.attempts_s == [0, 1, 3, 7, 15, 31][: failures + 1]


@shows("S1-55", "S1-65", "S1-71", "S1-121", "S4-25")
@pytest.mark.parametrize(("outcome", "base_s"), [(AWAY, 1), (SILENT, 5)])
async def test_after_five_retries_it_is_a_dead_letter(bench: TimedBench, outcome: Outcome, base_s: int) -> None:
    """An unknown answer reads as no answer (requirements S1-71); after a time-out the waits begin at 5 s (S1-121)."""
    bench.apns.answer = lambda delivery: outcome
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 300)
    receipt = await bench.receipt(told)
    assert bench.attempts_s == [base_s * made for made in (0, 1, 3, 7, 15, 31)]
    assert (receipt.status, receipt.failure_class) == (DeliveryStatus.FAILED, FailureClass.RETRYABLE)
    assert await bench.letters() == [receipt.code]


@shows("S1-08", "S1-17", "S1-55", "S1-59", "S1-65", "S4-19")
@pytest.mark.parametrize("outcome", [REFUSED, GONE])
async def test_a_terminal_failure_is_one_dead_letter_and_never_retried(bench: TimedBench, outcome: Outcome) -> None:
    bench.apns.answer = lambda delivery: outcome
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 4_000, step_s=100)
    receipt = await bench.receipt(told)
    assert bench.attempts_s == [0]
    assert (receipt.status, receipt.failure_class) == (DeliveryStatus.FAILED, FailureClass.TERMINAL)
    assert receipt.reason
    assert await bench.letters() == [receipt.code]


@shows("S1-65", "S1-125")
async def test_a_throttled_delivery_waits_as_told_and_spends_no_retry(bench: TimedBench) -> None:
    """Or longer, once our own back-off (1 s, doubled) has grown longer than that."""
    bench.answers(*[LATER] * 5)
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 60)
    receipt = await bench.receipt(told)
    waits_s = [7, 7, 7, 8, 16]
    assert bench.attempts_s == [sum(waits_s[:n]) for n in range(6)]
    assert (receipt.status, receipt.retries, receipt.throttles) == (DeliveryStatus.SENT, 0, 5)


@shows("S0-06", "S1-53", "S1-54")
async def test_only_the_device_that_failed_is_tried_again(bench: TimedBench) -> None:
    """And on its own channel: the other device gets nothing more (requirements S1-53, S1-54)."""
    bench.answers(AWAY, AWAY)
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 10)
    assert (len(bench.apns.sent), len(bench.fcm.sent)) == (3, 1)
    assert (await bench.detail(told)).record.status is NotificationStatus.SENT


@shows("S1-58", "S1-60", "S3-48", "S3-56", "S3-57")
async def test_a_receipt_is_current_after_each_attempt(bench: TimedBench) -> None:
    """Count, last attempt, next retry, and at the end when it was sent and resolved (requirements S1-60)."""
    bench.answers(AWAY, SILENT)
    await bench.register("ann", Channel("apns"))
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


@shows("S1-32")
async def test_each_failure_is_one_event_in_the_journal(bench: TimedBench) -> None:
    bench.answers(AWAY, SILENT)
    await bench.register("ann", Channel("apns"))
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


@shows("S1-08", "S1-94")
async def test_nothing_is_sent_after_the_end_of_its_time(bench: TimedBench) -> None:
    """Retries that would outlast it end `expired` (requirements S1-94)."""
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", ttl_ms=5 * SECOND_MS)
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 60)
    assert bench.attempts_s == [0, 1, 3]
    assert (await bench.detail(told)).record.status is NotificationStatus.EXPIRED


@shows("S2-38")
async def test_the_low_policy_drops_after_two_retries_and_leaves_no_letter(bench: TimedBench) -> None:
    bench.under("s2_low")
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 60)
    assert bench.attempts_s == [0, 2, 10]
    assert (await bench.receipt(told)).status is DeliveryStatus.FAILED
    assert await bench.letters() == []


@shows("S2-37")
async def test_the_critical_policy_tries_for_ten_minutes(bench: TimedBench) -> None:
    bench.retry = RetryRules(by_urgency={Urgency.CRITICAL: POLICIES["s2_critical"]})
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel("apns"))
    critical, normal = await bench.accept("ann", urgency=Urgency.CRITICAL), await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 620)
    made = {each: (await bench.receipt(each)).attempts for each in (critical, normal)}
    assert [(one.at - bench.began) // SECOND_MS for one in made[critical]] == [0, 2, 10, 42, 170, 370, 600]
    assert len(made[normal]) == 6

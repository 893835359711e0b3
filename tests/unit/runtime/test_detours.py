"""A channel with two accounts, on a lane: the second sends while the first refuses or is not there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shows import shows
from tests.unit.runtime.bench import APNS, APP, ScriptedSender
from tests.unit.runtime.timed import AWAY, TAKEN, TimedBench
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import FailureClass
from waypost.domain.fallback import Fallbacks
from waypost.domain.ids import NotificationId
from waypost.domain.limits import Rate, TokenBucket
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.outcome import CredentialRejected, Outcome, Reach, Refused, Unanswered
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.runtime.detours import in_order
from waypost.runtime.rates import RateGate
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

BACKUP = CredentialId(APP, Channel("apns"), "backup")
DENIED = CredentialRejected("20003", "the account is refused")
OF_ONE = CredentialRejected("20003", "the account is refused", Reach.DEVICE)
NOT_HERE = Refused("21408", "the account may not send to this region", elsewhere=True)


class TwoAccounts(TimedBench):
    """A lane whose channel has a second account."""

    def __init__(self, board_path: Path) -> None:
        super().__init__(board_path)
        self.rules = BreakerRules(failures_to_open=3, ramp_start=2)
        self.backup = ScriptedSender(Channel("apns"), "backup")
        self.others = [self.backup]
        self.fallbacks = Fallbacks.of([[APNS, BACKUP]])

    async def tell(self, user: str, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE) -> NotificationId:
        """Register and notify a user."""
        await self.register(user, Channel("apns"))
        return await self.accept(user, guarantee)

    async def history(self, told: NotificationId) -> list[tuple[str, str]]:
        """The attempts of a notification: by which credential, and what came of it."""
        return [(each.credential, each.status) for each in (await self.receipt(told)).attempts]


@pytest.fixture
def bench(tmp_path: Path) -> TwoAccounts:
    """A lane on an empty store."""
    return TwoAccounts(tmp_path / "worker_slots")


@pytest.mark.parametrize("guarantee", list(Guarantee))
@pytest.mark.parametrize("refusal", [DENIED, OF_ONE, NOT_HERE], ids=["account", "one device", "region"])
async def test_what_one_account_refuses_the_other_delivers(
    bench: TwoAccounts, refusal: Outcome, guarantee: Guarantee
) -> None:
    """S4-21: at once, both attempts on record, none of them a retry."""
    bench.apns.answer = lambda delivery: refusal
    async with bench.running() as loop:
        told = await bench.tell("ann", guarantee)
        await bench.pass_time(loop, 2)
        receipt = await bench.receipt(told)
        assert (receipt.status, receipt.attempt, receipt.retries) == (DeliveryStatus.SENT, 2, 0)
        assert await bench.history(told) == [("", "refused" if refusal is NOT_HERE else "denied"), ("backup", "taken")]
    assert (len(bench.apns.sent), len(bench.backup.sent)) == (1, 1)


async def test_the_first_is_probed_and_comes_back_by_and_by(bench: TwoAccounts) -> None:
    """While it is refused it gets single probes; then ever more, while the other takes what it has no room for."""
    bench.apns.answer = lambda delivery: DENIED
    async with bench.running() as loop:
        told = []
        for n in range(60):
            told.append(await bench.tell(f"user-{n}"))
            await bench.pass_time(loop, 1)
        assert len(bench.apns.sent) <= 5, "after 5, 10, 20, 40 seconds"
        assert len(bench.backup.sent) == 60
        bench.apns.answer = lambda delivery: TAKEN
        for n in range(60, 180):
            told.append(await bench.tell(f"user-{n}"))
            await bench.pass_time(loop, 1)
        by_backup = len(bench.backup.sent)
        for n in range(180, 190):
            told.append(await bench.tell(f"user-{n}"))
            await bench.pass_time(loop, 1)
        assert len(bench.backup.sent) == by_backup, "the first has it all again"
        receipts = [await bench.receipt(each) for each in told]
        assert {(each.status, each.parked) for each in receipts} == {(DeliveryStatus.SENT, None)}


async def test_one_that_fails_again_soon_after_it_came_back_is_left_alone_for_longer(bench: TwoAccounts) -> None:
    """It takes one in three: in ten minutes it does not make every third notification wait."""
    answers: Iterator[Outcome] = itertools.cycle([DENIED, TAKEN, DENIED])
    bench.apns.answer = lambda delivery: next(answers)
    async with bench.running() as loop:
        for n in range(300):
            await bench.tell(f"user-{n}")
            await bench.pass_time(loop, 2)
    assert len(bench.apns.sent) < 40


async def test_a_new_credential_is_probed_at_once(bench: TwoAccounts) -> None:
    """As ``explain`` says beforehand."""
    bench.apns.answer = lambda delivery: DENIED

    def explained() -> list[CredentialId]:
        return in_order(bench.fallbacks, bench.made.gates, Lane.NORMAL, bench.apns.sent[0])

    async with bench.running() as loop:
        await bench.tell("ann")
        await bench.pass_time(loop, 1)
        assert explained() == [BACKUP, APNS]
        bench.apns.answer = lambda delivery: TAKEN
        bench.made.gates.renewed(APNS)
        assert explained() == [APNS, BACKUP]
        told = await bench.tell("bob")
        await bench.pass_time(loop, 1)
        assert await bench.history(told) == [("", "taken")]


async def test_what_may_have_been_taken_goes_to_nobody_else_at_most_once(bench: TwoAccounts) -> None:
    """However often, and with the breaker open; at least once, the other tries what is due again."""
    bench.apns.answer = lambda delivery: Unanswered("503", "it failed")
    async with bench.running() as loop:
        once = [await bench.tell(f"once-{n}", Guarantee.AT_MOST_ONCE) for n in range(3)]
        await bench.pass_time(loop, 2)
        assert {(await bench.receipt(each)).status for each in once} == {DeliveryStatus.UNKNOWN}
        assert bench.backup.sent == []
        told = await bench.tell("ann")
        await bench.pass_time(loop, 2)
        assert await bench.history(told) == [("backup", "taken")], "the breaker is open by now"


async def test_a_provider_that_is_not_there_is_passed_by_once_its_breaker_is_open(bench: TwoAccounts) -> None:
    """S1-53: a failure before that is no reason, only time is; nothing else than the channel's accounts is tried."""
    bench.apns.answer = lambda delivery: AWAY
    async with bench.running() as loop:
        told = [await bench.tell(f"user-{n}") for n in range(6)]
        await bench.pass_time(loop, 30)
        assert {(await bench.receipt(each)).status for each in told} == {DeliveryStatus.SENT}
    assert bench.fcm.sent == []


async def test_where_all_are_refused_all_wait_and_any_of_them_brings_them_back(bench: TwoAccounts) -> None:
    """What is parked is parked for all of them."""
    bench.apns.answer = bench.backup.answer = lambda delivery: DENIED
    async with bench.running() as loop:
        told = [await bench.tell(f"user-{n}") for n in range(5)]
        await bench.pass_time(loop, 60)
        assert {(await bench.receipt(each)).status for each in told} == {DeliveryStatus.PENDING}
        bench.backup.answer = lambda delivery: TAKEN
        await bench.pass_time(loop, 200)
        assert {(await bench.receipt(each)).status for each in told} == {DeliveryStatus.SENT}


async def test_what_waited_for_the_rate_of_an_account_goes_by_another_once_that_is_refused(bench: TwoAccounts) -> None:
    """It was to wait its turn with the first, which is refused before it comes."""
    bench.rates = {APNS: RateGate(APNS, Rate(TokenBucket(2, 2)), MemoryLimiter(bench.clock), bench.clock, Silent())}
    async with bench.running() as loop:
        told = [await bench.tell(f"user-{n}") for n in range(20)]
        await bench.pass_time(loop, 1)
        assert {(await bench.receipt(each)).parked for each in told} == {None, f"rate:normal/{APNS}"}
        bench.apns.answer = lambda delivery: DENIED
        await bench.pass_time(loop, 20)
        assert {(await bench.receipt(each)).status for each in told} == {DeliveryStatus.SENT}


@shows("S4-20", "S4-21")
@pytest.mark.parametrize("has_backup", [False, True])
async def test_where_an_app_does_not_wait_a_refused_account_fails_it_at_once(
    bench: TwoAccounts, *, has_backup: bool
) -> None:
    """S4-20, S4-21: none configured, or none that takes it: failed, also without another request; until a probe."""
    orders = [[APNS, BACKUP]] if has_backup else []
    bench.fallbacks = Fallbacks.of(orders, frozenset({APP}))
    bench.apns.answer = bench.backup.answer = lambda delivery: DENIED
    async with bench.running() as loop:
        told = [await bench.tell("ann")]
        await bench.pass_time(loop, 1)
        told.append(await bench.tell("bob"))
        await bench.pass_time(loop, 1)
        for each in told:
            receipt = await bench.receipt(each)
            assert (receipt.status, receipt.code, receipt.failure_class, receipt.dead) == (
                DeliveryStatus.FAILED,
                "20003",
                FailureClass.TERMINAL,
                True,
            )
            assert (await bench.detail(each)).record.status is NotificationStatus.FAILED
        assert len(bench.apns.sent) == 1, "the second one is not tried"
        bench.apns.answer = lambda delivery: TAKEN
        await bench.pass_time(loop, 30)
        mended = await bench.tell("cyd")
        await bench.pass_time(loop, 1)
        assert (await bench.receipt(mended)).status is DeliveryStatus.SENT

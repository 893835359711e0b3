"""What is too much for a provider, or for a device, waits without a call, and comes back when there is room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shows import shows
from tests.unit.domain import made
from tests.unit.runtime.bench import FCM
from tests.unit.runtime.timed import TimedBench
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.channel import Channel
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, UserId
from waypost.domain.limits import FixedWindow, Granted, Limit, Rate, TokenBucket, Wait
from waypost.domain.notification import Lane
from waypost.domain.retry import POLICIES, RetryRules
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import MINUTE_MS, SECOND_MS, later
from waypost.ports.limiter import Limiter
from waypost.runtime.rates import RateGate, Waiting
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

CONDITION = "rate:normal/demo/fcm"
HOUR_S = 3_600


class Bench(TimedBench):
    """With a limit on FCM, none on APNs."""

    def limit(self, rate: Rate, limiter: Limiter | None = None, **options: bool) -> None:
        """What FCM is to get."""
        limiter = limiter or MemoryLimiter(self.clock)
        self.rates[FCM] = RateGate(FCM, rate, limiter, self.clock, Silent(), **options)

    async def told(self, count: int, *channels: Channel, ttl_ms: int = HOUR_S * SECOND_MS) -> list[NotificationId]:
        """So many users told one thing each, the one after the other."""
        told = []
        for _ in range(count):
            user = f"user-{len(self.store.rows)}"
            await self.register(user, *(channels or (Channel("fcm"),)))
            told.append(await self.accept(user, ttl_ms=ttl_ms))
        return told


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A lane on an empty store."""
    return Bench(tmp_path / "worker_slots")


@shows("S4-27", "S4-31")
async def test_an_empty_bucket_parks_without_a_call_and_what_comes_refills_it(bench: Bench) -> None:
    """No attempt and no retry is spent, and APNs knows nothing of it (requirements S4-27, S4-30, S4-31)."""
    bench.limit(Rate(TokenBucket(10, 2)))
    told = await bench.told(30, Channel("fcm"), Channel("apns"))
    async with bench.running() as loop:
        await bench.turn(loop)
        assert (len(bench.fcm.sent), len(bench.apns.sent)) == (10, 30)
        waiting = [each for each in [await bench.receipt(one, Channel("fcm")) for one in told] if each.parked]
        assert {(each.parked, each.attempt, each.retries, each.throttles) for each in waiting} == {(CONDITION, 0, 0, 0)}
        for seconds in range(1, 11):
            await bench.pass_time(loop, 1)
            assert 10 + 2 * seconds - 2 <= len(bench.fcm.sent) <= 10 + 2 * seconds, "as much as came"
        await bench.pass_time(loop, 2)
    assert len(bench.fcm.sent) == 30
    receipts = [await bench.receipt(one, Channel("fcm")) for one in told]
    assert {(each.status, each.attempt, each.retries) for each in receipts} == {(DeliveryStatus.SENT, 1, 0)}


async def test_what_expires_first_comes_back_first_and_what_is_new_after_it(bench: Bench) -> None:
    bench.limit(Rate(TokenBucket(1, 1)))
    async with bench.running() as loop:
        (first,) = await bench.told(1)
        await bench.turn(loop)
        (late,) = await bench.told(1)
        (early,) = await bench.told(1, ttl_ms=10 * SECOND_MS)
        await bench.turn(loop)
        bench.clock.advance(SECOND_MS)
        (new,) = await bench.told(1, ttl_ms=MINUTE_MS)
        await bench.settled(loop)
        await bench.pass_time(loop, 5)
    assert [each.id for each in bench.fcm.sent] == [first, early, new, late]


@shows("S4-75")
async def test_what_was_scheduled_is_delivered_as_what_is_immediate(bench: Bench) -> None:
    """Requirements S4-75: by the same lane, under the same limit, with the same receipt and events."""
    bench.limit(Rate(TokenBucket(1, 0.1)))
    at = later(bench.began, MINUTE_MS)
    for user in ("ann", "bob"):
        await bench.register(user, Channel("fcm"))
    async with bench.running() as loop:
        scheduled = await bench.accept("ann", scheduled_at=at)
        await bench.pass_time(loop, 59)
        assert bench.fcm.sent == [] and (await bench.detail(scheduled)).receipts == ()
        await bench.pass_time(loop, 1)
        immediate = await bench.accept("bob")
        await bench.turn(loop)
        assert [each.id for each in bench.fcm.sent] == [scheduled]
        assert (await bench.receipt(immediate, Channel("fcm"))).parked == CONDITION, "the token is taken"
        await bench.pass_time(loop, 30)
    one, other = [await bench.receipt(each, Channel("fcm")) for each in (scheduled, immediate)]
    assert (one.status, one.attempt, one.retries, one.code) == (other.status, other.attempt, other.retries, other.code)
    moved: dict[NotificationId, list[tuple[str, str]]] = {each: [] for each in (scheduled, immediate)}
    for row in await bench.journal.read(0, 1_000):
        for move in row.moves:
            moved[move.notification_id].append((type(move).__name__, move.after))
    assert moved[scheduled][-2:] == moved[immediate][-2:]


async def test_what_waits_expires_at_its_time(bench: Bench) -> None:
    bench.limit(Rate(TokenBucket(1, 0.001)))
    async with bench.running() as loop:
        told = await bench.told(2, ttl_ms=5 * SECOND_MS)
        await bench.turn(loop)
        await bench.pass_time(loop, 6)
    assert (await bench.receipt(told[1], Channel("fcm"))).status is DeliveryStatus.EXPIRED


@shows("S4-19", "S4-31")
async def test_where_the_profile_says_so_waiting_spends_a_retry(bench: Bench) -> None:
    """Requirements S4-31: the count goes up, the wait is the bucket's or the policy's, and the end is a dead letter."""
    bench.retry = RetryRules(POLICIES["s4_simple"], throttle_counts_as_retry=True)
    bench.limit(Rate(TokenBucket(1, 0.2)), spends_retry=True)
    async with bench.running() as loop:
        first, second, third = await bench.told(3)
        await bench.turn(loop)
        waits = await bench.receipt(second, Channel("fcm"))
        assert (waits.retries, waits.attempt, waits.parked, waits.code) == (1, 0, None, "rate_limited")
        assert waits.due_at == bench.began + 5 * SECOND_MS
        await bench.pass_time(loop, 60)
    receipts = [await bench.receipt(one, Channel("fcm")) for one in (first, second, third)]
    assert [each.status for each in receipts] == [DeliveryStatus.SENT] * 3
    assert receipts[2].retries >= 1


async def test_used_up_retries_end_it_where_waiting_spends_them(bench: Bench) -> None:
    """Somebody else takes all that comes."""
    bench.retry = RetryRules(POLICIES["s4_publish"], throttle_counts_as_retry=True)
    bucket, limiter = TokenBucket(1, 1), MemoryLimiter(bench.clock)
    bench.limit(Rate(bucket), limiter, spends_retry=True)
    async with bench.running() as loop:
        _, told = await bench.told(2)
        await bench.settled(loop)
        for _ in range(60):
            bench.clock.advance(SECOND_MS)
            await limiter.take(f"credential:{FCM}", bucket)
            await bench.turn(loop)
    receipt = await bench.receipt(told, Channel("fcm"))
    assert (receipt.status, receipt.retries, receipt.attempt, receipt.dead) == (DeliveryStatus.FAILED, 3, 0, True)
    assert await bench.letters() == ["rate_limited"]


async def test_where_nothing_can_be_parked_each_waits_its_time_and_spends_nothing(bench: Bench) -> None:
    """As in a stream that is somebody else's queue; the one behind waits longer than the one before it."""
    bench.limit(Rate(TokenBucket(1, 0.5)), parks=False)
    async with bench.running() as loop:
        told = await bench.told(3)
        await bench.turn(loop)
        receipts = [await bench.receipt(one, Channel("fcm")) for one in told[1:]]
        assert [each.due_at for each in receipts] == [bench.began + 2 * SECOND_MS, bench.began + 4 * SECOND_MS]
        await bench.pass_time(loop, 10)
    receipts = [await bench.receipt(one, Channel("fcm")) for one in told]
    assert {(each.status, each.attempt, each.retries) for each in receipts} == {(DeliveryStatus.SENT, 1, 0)}


async def test_a_device_that_has_had_enough_waits_alone(bench: Bench) -> None:
    """Its place in the bucket is another's."""
    bench.limit(Rate(TokenBucket(3, 0.001), FixedWindow(2, MINUTE_MS)))
    await bench.register("ann", Channel("fcm"))
    async with bench.running() as loop:
        for _ in range(4):
            await bench.accept("ann")
        await bench.told(1)
        await bench.settled(loop)
        assert [each.device.user_id for each in bench.fcm.sent].count(UserId("ann")) == 2
        assert len(bench.fcm.sent) == 3


async def test_what_devices_that_had_enough_did_not_use_is_the_next_ones(bench: Bench) -> None:
    """However many of them there were."""
    bench.limit(Rate(TokenBucket(5, 0.001), FixedWindow(1, MINUTE_MS)))
    await bench.register("ann", Channel("fcm"))
    async with bench.running() as loop:
        for _ in range(8):
            await bench.accept("ann")
            await bench.settled(loop)
        await bench.told(6)
        await bench.settled(loop)
    assert len(bench.fcm.sent) == 5


async def test_what_was_not_used_is_lost_after_a_moment(bench: Bench) -> None:
    """Or it would go out on top of what has come since."""
    bench.limit(Rate(TokenBucket(3, 0.001), FixedWindow(1, MINUTE_MS)))
    await bench.register("ann", Channel("fcm"))
    async with bench.running() as loop:
        for _ in range(2):
            await bench.accept("ann")
            await bench.settled(loop)
        bench.clock.advance(SECOND_MS)
        await bench.told(2)
        await bench.settled(loop)
    assert len(bench.fcm.sent) == 2


async def test_a_device_is_sent_to_again_in_its_next_window_and_no_retry_is_spent(bench: Bench) -> None:
    bench.limit(Rate(per_device=FixedWindow(1, MINUTE_MS)))
    await bench.register("ann", Channel("fcm"))
    async with bench.running() as loop:
        told = [await bench.accept("ann") for _ in range(3)]
        await bench.turn(loop)
        await bench.pass_time(loop, 180)
    receipts = [await bench.receipt(one, Channel("fcm")) for one in told]
    assert {(each.status, each.retries) for each in receipts} == {(DeliveryStatus.SENT, 0)}
    assert len({second // 60 for second in bench.attempts_s}) == 3


async def test_while_the_limiter_is_away_nothing_goes_that_has_a_limit(bench: Bench) -> None:
    class Away(MemoryLimiter):
        is_away = True

        async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
            if self.is_away:
                raise Unavailable("away")
            return await super().take(name, limit, n)

    limiter = Away(bench.clock)
    bench.limit(Rate(TokenBucket(10, 10)), limiter)
    async with bench.running() as loop:
        told = await bench.told(2, Channel("fcm"), Channel("apns"))
        await bench.pass_time(loop, 5)
        assert (len(bench.fcm.sent), len(bench.apns.sent)) == (0, 2)
        limiter.is_away = False
        await bench.pass_time(loop, 5)
    assert [(await bench.receipt(one, Channel("fcm"))).status for one in told] == [DeliveryStatus.SENT] * 2


async def test_lanes_that_wait_share_what_comes_and_one_that_has_nothing_leaves_it_to_the_others(bench: Bench) -> None:
    waiting = Waiting(FCM, TokenBucket(1_000, 100), bench.clock)
    assert not list(waiting.turns()), "at the start nothing is looked for"
    waiting.found_parked(waiting.held)
    asked = []
    for lane, n in waiting.turns():
        asked.append((lane, n))
        waiting.came_back(lane, int(lane in (Lane.CRITICAL, Lane.BULK)))
    assert asked == [(lane, 1) for lane in Lane], "what was found is looked for"
    came: dict[Lane, int] = {}
    for _ in range(100):
        bench.clock.advance(50)
        for lane, n in waiting.turns():
            came[lane] = came.get(lane, 0) + n
    assert came == {Lane.CRITICAL: 250, Lane.BULK: 250}
    waiting.came_back(Lane.CRITICAL, 0)
    bench.clock.advance(SECOND_MS)
    assert dict(waiting.turns()) == {Lane.BULK: 100}
    waiting.parked(waiting.conditions[Lane.LOW])
    bench.clock.advance(SECOND_MS)
    assert dict(waiting.turns()) == {Lane.LOW: 40, Lane.BULK: 60}


async def test_a_credential_without_a_limit_lifts_no_condition_of_one(bench: Bench) -> None:
    """What waited for a limit that was taken out is left to ``Parked``, which lifts what no gate does."""
    unlimited = Waiting(FCM, None, bench.clock)
    assert CONDITION in unlimited.conditions.values() and not unlimited.held


async def test_what_waited_has_its_turn_before_what_is_new_wherever_it_stands(bench: Bench) -> None:
    """What comes back and what is new may share a batch, in any order; there is room for one."""
    rate = RateGate(FCM, Rate(TokenBucket(1, 1)), MemoryLimiter(bench.clock), bench.clock, Silent())
    rate.waiting.parked(CONDITION)
    new, old = (made.delivery(made.notification(id=NotificationId(bytes([n]) * 16))) for n in range(2))
    over = await rate.over(Lane.NORMAL, [(new, True), (old, False)], 10, "room")
    assert over == {(new.id, 0): CONDITION}

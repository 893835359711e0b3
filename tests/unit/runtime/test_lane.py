"""A lane's loop on the memory store: what it sends, parks, records and gives up."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.amending import withdraw
from tests.memory.work import MemoryWork
from tests.shows import shows
from tests.unit.adapters.noted import Noted
from tests.unit.runtime.bench import APNS, APP, FCM, LaneBench, until
from waypost.bootstrap import paths
from waypost.config import Config, LogFormat, LogSettings
from waypost.domain.channel import Channel
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.outcome import CredentialRejected, Refused, Taken, Unanswered, Unreachable
from waypost.domain.progress import Stale
from waypost.domain.recipient import Recipient
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant, later
from waypost.pipeline.route import Plan
from waypost.ports.work import Lease, Settled, Work
from waypost.runtime.leasing import EXTEND_S, LEASE_MS
from waypost.telemetry import Event, Level

pytestmark = pytest.mark.asyncio

AWAY = Unreachable("connect", "refused")


@pytest.fixture
def bench(tmp_path: Path) -> LaneBench:
    """A lane on an empty store."""
    return LaneBench(tmp_path / "worker_slots")


@shows("S1-02", "S1-20", "S1-31", "S1-56")
async def test_a_notification_reaches_every_device_once(bench: LaneBench) -> None:
    """Two devices on two channels: two deliveries, two receipts, one final status."""
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.settled(loop)
    detail = await bench.detail(told)
    assert detail.record.status is NotificationStatus.SENT
    assert [receipt.status for receipt in detail.receipts] == [DeliveryStatus.SENT, DeliveryStatus.SENT]
    assert (len(bench.apns.sent), len(bench.fcm.sent)) == (1, 1)


@shows("S3-102")
async def test_each_dead_letter_is_an_event(bench: LaneBench) -> None:
    """With what an operator needs to look it up, and nothing of what was said; other ends are none."""
    noted = bench.telemetry = Noted()
    bench.apns.answer = lambda delivery: Refused("400", "bad token abc")
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.settled(loop)
    letters = noted.fields_of(Event.DELIVERY_DEAD)
    (n,) = (each.n for each in (await bench.detail(told)).receipts if each.dead)
    assert letters == [{"app": APP, "lane": Lane.NORMAL, "notification_id": format_id(told), "n": n, "code": "400"}]


@shows("S3-101")
async def test_a_round_is_one_line_of_json_with_fixed_fields(bench: LaneBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requirements S3-101: by the names that its readers know."""
    stream = io.BytesIO()
    monkeypatch.setattr(paths, "standard_error", lambda: stream)
    log = paths.log_of(Config(apps={}, log=LogSettings(level=Level.DEBUG, format=LogFormat.JSON)))
    bench.telemetry = log
    bench.fcm.answer = lambda delivery: Refused("400", "bad token abc")
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.settled(loop)
    assert log.flush(60)
    (line,) = [each for each in map(json.loads, stream.getvalue().splitlines()) if "tokens_count" in each]
    assert line.pop("timestamp").endswith("Z")
    assert line.pop("duration_ms") >= 0
    assert line == {
        "level": "debug",
        "service": "push-worker",
        "event": "notification.processed",
        "notification_id": format_id(told),
        "user_id": "ann",
        "tokens_count": 2,
        "success_count": 1,
        "failure_count": 1,
    }


@shows("S3-51")
async def test_a_user_without_devices_is_told_apart(bench: LaneBench) -> None:
    """No device: no_targets, nothing sent."""
    told = await bench.accept("nobody")
    async with bench.running() as loop:
        await bench.settled(loop)
    assert (await bench.detail(told)).record.status is NotificationStatus.NO_TARGETS


@shows("S1-29")
async def test_a_slow_channel_does_not_hold_the_other(bench: LaneBench) -> None:
    """While APNs is silent, the same user's FCM delivery is settled."""
    bench.apns.answer = lambda delivery: None
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        half = {Channel("apns"): DeliveryStatus.PENDING, Channel("fcm"): DeliveryStatus.SENT}
        await until(lambda: bench.statuses(told) == half)
        assert len(bench.apns.open) == 1
        bench.apns.finish(Taken("late"))
        await bench.settled(loop)
    assert (await bench.detail(told)).record.status is NotificationStatus.SENT


@shows("S1-131")
async def test_what_a_credential_has_no_room_for_is_parked_and_comes_back(bench: LaneBench) -> None:
    """A budget of one: the others wait under the condition, spend no attempt, and go when there is room."""
    bench.budgets[Lane.NORMAL] = 1
    bench.apns.answer = lambda delivery: None
    for user in ("ann", "bob", "cyd", "dan"):
        await bench.register(user, Channel("apns"), Channel("fcm"))
    told = [await bench.accept(user) for user in ("ann", "bob", "cyd", "dan")]
    async with bench.running() as loop:
        await until(lambda: loop.is_idle and len(bench.fcm.sent) >= 1)
        await bench.written()
        parked = [r for each in told for r in (await bench.detail(each)).receipts if r.parked]
        assert parked
        assert {receipt.parked for receipt in parked} <= {f"room:normal/{APNS}", f"room:normal/{FCM}"}
        assert all(receipt.attempt == 0 for receipt in parked)
        bench.apns.answer = lambda delivery: Taken("id")
        bench.apns.finish(Taken("id"))
        for _ in range(10):
            await bench.settled(loop)
            lifted = bench.made.gates.lifted()
            await bench.work.promote_due(bench.clock.now(), 100, lifted)
        await bench.settled(loop)
    assert [(await bench.detail(each)).record.status for each in told] == [NotificationStatus.SENT] * 4


@shows("S1-66")
async def test_a_breaker_opens_parks_probes_and_lets_everything_through(bench: LaneBench) -> None:
    """Three failures open it: nothing more is tried; after the wait one probe, then the ramp."""
    bench.apns.answer = lambda delivery: AWAY
    users = [f"user-{n}" for n in range(8)]
    for user in users:
        await bench.register(user, Channel("apns"))
    async with bench.running() as loop:
        first = [await bench.accept(user) for user in users[:3]]
        await bench.settled(loop)
        later_on = [await bench.accept(user) for user in users[3:]]
        await bench.settled(loop)
        assert len(bench.apns.sent) == 3
        for each in later_on:
            assert (await bench.detail(each)).receipts[0].parked == f"breaker:{APNS}"
        bench.apns.answer = lambda delivery: Taken("id")
        bench.clock.advance(6_000)
        bench.made.gates.tick(bench.clock.monotonic())
        assert bench.made.gates.lifted()[f"breaker:{APNS}"] == 1
        tried = []
        for _ in range(6):
            await bench.work.promote_due(bench.clock.now(), 100, bench.made.gates.lifted())
            await bench.settled(loop)
            tried.append(len(bench.apns.sent))
    assert [(await bench.detail(each)).record.status for each in first + later_on] == [NotificationStatus.SENT] * 8
    assert tried[0] - 3 <= 1 + 3, "one probe (and the due retries it lets through), not everything at once"


@shows("S4-20")
async def test_a_denied_credential_waits_instead_of_failing(bench: LaneBench) -> None:
    """A revoked key costs nothing: the delivery rests, unspent, and what comes behind it is parked."""
    bench.apns.answer = lambda delivery: CredentialRejected("InvalidProviderToken", "the key was refused")
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.settled(loop)
        (receipt,) = (await bench.detail(told)).receipts
        assert (receipt.status, receipt.due_at) == (DeliveryStatus.PENDING, later(bench.clock.now(), 7_500))
        assert (receipt.retries, receipt.code) == (0, "InvalidProviderToken")
        assert receipt.attempts[0].message == "the key was refused (said of the whole credential)"


async def test_what_came_while_every_breaker_was_open_makes_the_probe(bench: LaneBench) -> None:
    """With nothing parked to come back for the probe, the lane itself must notice that there is room again."""
    bench.apns.answer = bench.fcm.answer = lambda delivery: CredentialRejected("refused", "the key was refused")
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    await bench.register("bob", Channel("apns"))
    async with bench.running() as loop:
        opened = await bench.accept("ann")
        await bench.settled(loop)
        fresh = await bench.accept("bob")
        await bench.settled(loop)
        assert (await bench.detail(fresh)).receipts == ()
        await withdraw(bench.work, APP, [opened], "cancelled", bench.clock.now())
        bench.apns.answer = lambda delivery: Taken("id")
        bench.clock.advance(6_000)
        bench.made.gates.tick(bench.clock.monotonic())
        loop.look_again()
        await until(lambda: loop.is_idle)
        await bench.written()
        assert (await bench.detail(fresh)).record.status is NotificationStatus.SENT


async def test_at_most_once_is_on_record_before_it_is_sent(bench: LaneBench) -> None:
    """When the sender is handed the delivery, its intent is already stored; no answer leaves it unknown."""
    seen: list[DeliveryStatus] = []
    bench.apns.on_send = lambda delivery: seen.append(bench.store.rows[delivery.id].receipts[delivery.n].status)
    bench.apns.answer = lambda delivery: Unanswered("timeout", "no answer in time")
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", Guarantee.AT_MOST_ONCE)
    async with bench.running() as loop:
        await bench.settled(loop)
    assert seen == [DeliveryStatus.UNKNOWN]
    assert (await bench.detail(told)).record.status is NotificationStatus.UNKNOWN


class Faulty:
    """A store whose settle is away for a while."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """Unavailable while away."""
        if self.away:
            raise Unavailable("away")
        return await self._work.settle(lease, settled)


@shows("S1-63", "S1-126")
async def test_outcomes_are_held_while_the_store_is_away(tmp_path: Path) -> None:
    """Nothing is lost, nothing more is leased, and it goes on when the store is back."""
    faulty: list[Faulty] = []

    def wrap(work: Work) -> Work:
        faulty.append(Faulty(work))
        return cast(Work, faulty[0])

    bench = LaneBench(tmp_path / "worker_slots", wrap)
    await bench.register("ann", Channel("apns"))
    faulty[0].away = True
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await until(lambda: bool(bench.apns.sent))
        await until(lambda: bench.made.settler.is_holding)
        second = await bench.accept("ann")
        loop.wake()
        await until(lambda: loop.is_idle)
        assert len(bench.apns.sent) == 1, "nothing is leased while outcomes are held"
        faulty[0].away = False
        await bench.made.settler.drained()
        await bench.settled(loop)
    for each in (told, second):
        assert (await bench.detail(each)).record.status is NotificationStatus.SENT


class _Frozen:
    """A worker that stands still while it does something, until another has taken over."""

    def __init__(self, work: Work, doing: str) -> None:
        self._work = work
        self._doing = doing
        self.others: list[Lease] = []
        self.bench: LaneBench

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """Lease, and go on too late."""
        lease = await self._work.lease(lane, n, until)
        if lease.items and not self.others:
            if self._doing == "leasing":
                await self._take_over(LEASE_MS)
            elif self._doing == "asking":
                self.bench.clock.advance(int(EXTEND_S * 1000))
        return lease

    async def claim(self, plans: Sequence[Plan], _found: Mapping[NotificationId, Recipient]) -> Sequence[Plan]:
        """Claim what is sent, and go on too late."""
        if self._doing == "claiming" and not self.others:
            await self._take_over(LEASE_MS)
        return plans

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """Ask for time that is over when it is given."""
        if self._doing != "asking" or self.others:
            return await self._work.extend(lease, until)
        self.bench.clock.advance(LEASE_MS)
        is_ours = await self._work.extend(lease, until)
        await self._take_over(0)
        return is_ours

    async def _take_over(self, frozen_ms: int) -> None:
        self.bench.clock.advance(frozen_ms)
        other = MemoryWork(self.bench.store, self.bench.clock)
        self.others.append(await other.lease(Lane.NORMAL, 10, later(self.bench.clock.now(), LEASE_MS)))


@pytest.mark.parametrize("doing", ["leasing", "asking", "claiming"])
async def test_a_worker_that_was_frozen_sends_nothing_that_another_has_taken_over(tmp_path: Path, doing: str) -> None:
    frozen: list[_Frozen] = []

    def wrap(work: Work) -> Work:
        frozen.append(_Frozen(work, doing))
        return cast(Work, frozen[0])

    bench = LaneBench(tmp_path / "worker_slots", wrap)
    frozen[0].bench, bench.claims = bench, frozen[0].claim
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await until(lambda: bool(frozen[0].others))
        await bench.settled(loop)
    assert [item.notification.id for item in frozen[0].others[0].items] == [told]
    assert bench.apns.sent == []


async def test_what_killed_its_worker_alone_three_times_is_a_dead_letter(bench: LaneBench) -> None:
    """Its neighbours are sent; it is never touched again."""
    await bench.register("ann", Channel("apns"))
    poison, neighbour = await bench.accept("ann"), await bench.accept("ann")
    for _ in range(3):
        bench.worker_slots.note(0, Lane.NORMAL, [poison])
        bench.worker_slots.bury(0)
    bench.worker_slots.note(0, Lane.NORMAL, [poison, neighbour])
    bench.worker_slots.bury(0)
    async with bench.running() as loop:
        await bench.settled(loop)
    dead = await bench.detail(poison)
    assert dead.record.status is NotificationStatus.FAILED
    assert (dead.receipts[0].code, dead.receipts[0].dead) == ("poison", True)
    assert (await bench.detail(neighbour)).record.status is NotificationStatus.SENT
    assert [delivery.id for delivery in bench.apns.sent] == [neighbour]
    assert bench.worker_slots.suspects() == {}

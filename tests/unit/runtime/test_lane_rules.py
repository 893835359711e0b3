"""Rules in a lane on the memory store: what they put off, add, suppress, and what is said to whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.runtime.bench import LaneBench
from waypost.domain.address import Address
from waypost.domain.audience import Audience
from waypost.domain.channel import Channel
from waypost.domain.ids import DeviceId
from waypost.domain.message import Message
from waypost.domain.notification import Notification
from waypost.domain.outcome import Outcome, Refused, Taken
from waypost.domain.recipient import Recipient
from waypost.domain.routing import After, Candidate, Deferred, LeftOut, Question, Rule
from waypost.domain.rules import with_rules
from waypost.domain.settlement import Suppressed
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, SECOND_MS, later

pytestmark = pytest.mark.asyncio


@pytest.fixture
def bench(tmp_path: Path) -> LaneBench:
    """A lane on an empty store."""
    return LaneBench(tmp_path / "worker_slots")


async def test_what_a_rule_puts_off_waits_durably_and_is_routed_anew_when_its_time_is_over(bench: LaneBench) -> None:
    """Its receipt says what it waits for and spends no attempt; the other device is sent to at once."""
    over = later(bench.clock.now(), HOUR_MS)

    def quiet(question: Question, candidate: Candidate) -> Deferred | None:
        return Deferred(over) if candidate.channel == "apns" and question.now < over else None

    bench.routing_rules = with_rules([Rule("quiet_hours", quiet)])
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.settled(loop)
        waiting = {receipt.channel: receipt for receipt in (await bench.detail(told)).receipts}[Channel("apns")]
        assert (waiting.status, waiting.parked, waiting.due_at, waiting.attempt) == (
            "pending",
            "rule:quiet_hours",
            over,
            0,
        )
        assert (len(bench.apns.sent), len(bench.fcm.sent)) == (0, 1)
        bench.clock.advance(HOUR_MS)
        await bench.work.promote_due(bench.clock.now(), 100, {})
        await bench.settled(loop)
    assert (await bench.detail(told)).record.status is NotificationStatus.SENT
    assert (len(bench.apns.sent), len(bench.fcm.sent)) == (1, 1)


def _fallback(_: Question, there: Sequence[Candidate]) -> list[Candidate]:
    """A rule that tells a phone where the device does not confirm in half a minute."""
    first = there[0].name
    phone = Audience(Channel("fcm"), "phone", "ann")
    return [Candidate(DeviceId(phone.label), phone, phone.channel, after=After((first,), 30))]


@pytest.mark.parametrize("ends", [Taken("id"), Refused("400", "bad"), None])
async def test_a_fallback_that_a_rule_adds_waits_for_its_time(bench: LaneBench, ends: Outcome | None) -> None:
    """At once where the first fails, after 30 s where nothing confirms it; also where the first is put off."""
    over = later(bench.clock.now(), HOUR_MS)
    put_off = Rule("quiet", lambda asked, it: Deferred(over) if it.channel == "apns" and asked.now < over else None)
    bench.routing_rules = with_rules([*([put_off] if ends is None else []), Rule("fallback", add=_fallback)])
    bench.apns.answer = lambda delivery: ends or Taken("id")
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")

    async def comes_due() -> tuple[int, int]:
        await bench.work.promote_due(bench.clock.now(), 100, {})
        await bench.settled(loop)
        return len(bench.apns.sent), len(bench.fcm.sent)

    async with bench.running() as loop:
        await bench.settled(loop)
        if ends is None:
            assert await comes_due() == (0, 0)
            bench.clock.advance(HOUR_MS)
        is_failed = isinstance(ends, Refused)
        assert await comes_due() == (1, is_failed)
        bench.clock.advance(30 * SECOND_MS - 1)
        assert await comes_due() == (1, is_failed)
        bench.clock.advance(1)
        assert await comes_due() == (1, 1)
    status = (await bench.detail(told)).record.status
    assert status is (NotificationStatus.PARTIAL if is_failed else NotificationStatus.SENT)


async def test_a_fallback_of_what_is_no_target_is_sent_at_once(bench: LaneBench) -> None:
    """A rule left the first one out: there is nothing to wait for."""
    bench.routing_rules = with_rules([Rule("first", _left_out), Rule("fallback", add=_alone)])
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.settled(loop)
    assert (await bench.detail(told)).record.status is NotificationStatus.SENT


def _left_out(_: Question, candidate: Candidate) -> LeftOut | None:
    return LeftOut("not for it") if candidate.channel == "apns" else None


def _alone(_question: Question, _there: Sequence[Candidate]) -> list[Candidate]:
    phone = Audience(Channel("fcm"), "phone", "ann")
    return [Candidate(DeviceId(phone.label), phone, phone.channel, after=After((DeviceId("ann-apns"),), 30))]


async def test_rules_ask_what_features_know_of_the_user_and_messages_are_made_for_it(bench: LaneBench) -> None:
    """Read once for a batch, beside the devices; the message is told in the user's own way."""
    asked: list[Sequence[Notification]] = []

    async def known(notifications: Sequence[Notification]) -> list[dict[str, str]]:
        asked.append(notifications)
        return [{"names": each.user_id.upper()} for each in notifications]

    def muted(question: Question, _: Candidate) -> Suppressed | None:
        return Suppressed("muted") if question.recipient.facts["names"] == "BOB" else None

    def greets(message: Message, _: Address, recipient: Recipient) -> Message:
        title = f"{recipient.facts['names']}: {message.content.title}"
        return replace(message, content=replace(message.content, title=title))

    bench.facts, bench.renderers = known, [greets]
    bench.routing_rules = with_rules([Rule("muted", muted)])
    for user in ("ann", "bob"):
        await bench.register(user, Channel("apns"))
    _, bob = await bench.accept("ann"), await bench.accept("bob")
    async with bench.running() as loop:
        await bench.settled(loop)
    assert [delivery.message.content.title for delivery in bench.apns.sent] == ["ANN: hello"]
    assert [each.reason for each in (await bench.detail(bob)).receipts] == ["muted"]
    assert [len(batch) for batch in asked] == [2]

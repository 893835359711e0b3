"""What a sender that is made of a courier does where the courier does not: keep to its time, and report everything."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.adapters.deliveries import delivery, notification
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Outcome, Refused, Taken, Unanswered
from waypost.ports.courier import PlainAnswer, PlainError, outcome_of_answer
from waypost.ports.sender import Capabilities, Rendered
from waypost.runtime.courier_sender import CourierSender
from waypost.telemetry import Silent

PAGER = CredentialId(AppId("demo"), Channel("pager"))
LIMIT = 40


class Courier:
    """Says what it is told to; None is no answer, ever."""

    def __init__(self, *says: Outcome | PlainAnswer | Exception | None) -> None:
        self.says = list(says)
        self.began = self.stopped = 0
        self.broken = False

    async def start(self) -> None:
        """See Courier."""
        if self.broken:
            raise ConfigurationError("apps.demo.pager.key_file", "cannot read it")

    async def deliver(self, delivery: Delivery) -> Outcome | PlainAnswer:
        """See Courier."""
        self.began += 1
        said = self.says.pop(0)
        if said is None:
            await asyncio.Event().wait()
        if isinstance(said, Exception):
            raise said
        assert said is not None
        return said

    def render(self, delivery: Delivery) -> Rendered:
        """See Courier."""
        body = (delivery.message.content.title or "").encode()
        return Rendered({}, body, len(body), LIMIT)

    async def stop(self) -> None:
        """See Courier."""
        self.stopped += 1


def made(courier: Courier, timeout_ms: int = 60_000) -> CourierSender:
    return CourierSender(PAGER, courier, Capabilities(Channel("pager"), timeout_ms, 10, LIMIT), telemetry=Silent())


def to_pager(title: str = "Hello") -> Delivery:
    return delivery(Platform("pager"), "+49", notification(Content(title=title)), credential=PAGER)


async def outcome_of(sender: CourierSender, one: Delivery) -> Outcome:
    reported: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    sender.send([one], lambda _, got: reported.set_result(got))
    assert not reported.done(), "reported before send returned"
    return await reported


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (PlainAnswer(success=True, id="m1"), Taken("m1")),
        (PlainAnswer(success=True, error=PlainError("beside")), Taken()),
        (PlainAnswer(success=False), Refused("provider_error", "no reason was given")),
        (PlainAnswer(success=False, error=PlainError("no")), Refused("provider_error", "no")),
        (PlainAnswer(success=False, error=PlainError("later", True, "busy")), Unanswered("busy", "later")),
        (PlainAnswer(success=False, error=PlainError("n\0" * 200, code="no\n")), Refused("provider_error", "n " * 150)),
        (Taken("m2"), Taken("m2")),
    ],
)
def test_a_plain_answer_is_translated(answer: Outcome | PlainAnswer, outcome: Outcome) -> None:
    assert outcome_of_answer(answer) == outcome


@pytest.mark.asyncio
async def test_who_takes_too_long_is_cut_off() -> None:
    async with asyncio.timeout(60):
        assert await outcome_of(made(Courier(None), 20), to_pager()) == Unanswered("timeout", "no answer in time")


@pytest.mark.asyncio
async def test_stopping_reports_what_is_in_flight() -> None:
    courier = Courier(None, None)
    sender, reported = made(courier), list[Outcome]()
    sender.send([to_pager(), to_pager()], lambda _, got: reported.append(got))
    await sender.stop(0)
    assert courier.began == 2
    assert reported == [Unanswered("stopped", "the sender was stopped before the answer came")] * 2


@pytest.mark.asyncio
async def test_a_courier_is_stopped_once_and_only_where_it_started() -> None:
    """``check-config`` stops every sender, also one whose credential cannot be used."""
    started, broken = Courier(), Courier()
    broken.broken = True
    sender = made(started)
    await sender.start()
    await sender.stop(0)
    await sender.stop(0)
    assert started.stopped == 1
    sender = made(broken)
    with pytest.raises(ConfigurationError):
        await sender.start()
    await sender.stop(0)
    assert broken.stopped == 0


@pytest.mark.asyncio
async def test_a_bug_in_a_courier_is_no_answer_and_tells_nothing_of_the_message() -> None:
    got = await outcome_of(made(Courier(KeyError("+49"))), to_pager())
    assert got == Unanswered("sender_failed", "the sender failed with KeyError")


@pytest.mark.asyncio
async def test_what_is_too_large_is_not_delivered() -> None:
    courier = Courier(Taken())
    sender, one = made(courier), to_pager("x" * 41)
    assert await outcome_of(sender, one) == Refused("payload_too_large", "41 bytes, limit 40")
    assert sender.render(one).refused == "41 bytes, limit 40"
    assert courier.began == 0


@pytest.mark.asyncio
async def test_a_refused_account_is_unhealthy_until_something_is_taken() -> None:
    sender = made(Courier(CredentialRejected("401", "wrong key"), Refused("400", "no"), Taken()))
    for health in ("401: wrong key", "401: wrong key", None):
        await outcome_of(sender, to_pager())
        assert sender.health().why == health

"""A sender that is replaced while it sends: what it has in hand it finishes, what comes goes by the new one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tests.unit.adapters.deliveries import delivery
from waypost.domain.channel import APNS, Channel
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import Outcome, Taken, Unanswered
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.runtime.renewal import RenewableSender

pytestmark = pytest.mark.asyncio


class Held:
    """Sends when it is let go; ``stop`` waits for that."""

    credential = CredentialId(AppId("demo"), Channel("apns"))
    capabilities = Capabilities(channel=APNS, request_timeout_ms=1000, max_in_flight=1, payload_limit_bytes=4096)

    def __init__(self, name: str, *, broken: bool = False) -> None:
        self.name = name
        self.let_go = asyncio.Event()
        self.calls: list[str] = []
        self._broken = broken
        self._in_hand: list[tuple[Delivery, Report]] = []

    async def start(self) -> None:
        """See Sender."""
        self.calls.append("start")
        if self._broken:
            raise ConfigurationError("apps.demo.apns.key_file", "is none")

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """See Sender."""
        self._in_hand += [(each, report) for each in batch]

    def render(self, delivery: Delivery) -> Rendered:
        """See Sender."""
        return Rendered({}, b"", 0, 0, self.name)

    def health(self) -> Health:
        """See Sender."""
        return Health(ok=True, why=self.name)

    async def stop(self, timeout_s: float) -> None:
        """See Sender."""
        await self.let_go.wait() if self._in_hand else None
        for each, report in self._in_hand:
            report(each, Taken(self.name))
        self.calls.append("stop")


async def test_what_is_in_hand_ends_with_the_sender_it_was_given_to() -> None:
    old, new = Held("old"), Held("new")
    sender = RenewableSender(old)
    await sender.start()
    told: list[Outcome] = []
    sender.send([delivery(Platform("ios"), "a")], lambda _, outcome: told.append(outcome))
    await sender.renew(lambda: new)
    sender.send([delivery(Platform("ios"), "b")], lambda _, outcome: told.append(outcome))
    assert (told, sender.health().why, old.calls) == ([], "new", ["start"])
    stopping = asyncio.create_task(sender.stop(1.0))
    new.let_go.set()
    old.let_go.set()
    await stopping
    assert sorted(str(each) for each in told) == sorted(str(Taken(name)) for name in ("old", "new"))
    assert old.calls == new.calls == ["start", "stop"]


class Drained(Held):
    """Its ``stop`` waits no longer than it may, and then says that nothing is known."""

    async def stop(self, timeout_s: float) -> None:
        """See Sender."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.let_go.wait()
        in_hand, self._in_hand = self._in_hand, []
        for each, report in in_hand:
            report(each, Unanswered("connection_lost", "the pool is closed"))


async def test_a_process_that_stops_does_not_wait_for_what_was_promised_to_the_one_before() -> None:
    """Half a minute: who waits for the process would kill it before the last outcomes are written."""
    old, new = Drained("old"), Drained("new")
    old.capabilities = replace(Held.capabilities, request_timeout_ms=20_000)
    new.let_go.set()
    sender = RenewableSender(old)
    told: list[Outcome] = []
    sender.send([delivery(Platform("ios"), "a")], lambda _, outcome: told.append(outcome))
    await sender.renew(lambda: new)
    async with asyncio.timeout(60):
        await sender.stop(0.0)
    assert told == [Unanswered("connection_lost", "the pool is closed")]


async def test_the_one_before_stays_where_the_new_one_cannot_start() -> None:
    old, broken = Held("old"), Held("broken", broken=True)
    sender = RenewableSender(old)
    await sender.start()
    with pytest.raises(ConfigurationError):
        await sender.renew(lambda: broken)
    assert (sender.health().why, old.calls, broken.calls) == ("old", ["start"], ["start", "stop"])


async def test_whoever_keeps_the_capabilities_is_told_the_scopes_of_the_sender_of_the_moment() -> None:
    """Gates are made once; what a sender knows of its tokens goes with it."""
    first, second = Held("first"), Held("second")
    for each in (first, second):
        each.capabilities = replace(Held.capabilities, scope_of=lambda delivery, name=each.name: name)
    sender = RenewableSender(first)
    kept, one = sender.capabilities, delivery(Platform("ios"), "a")
    assert kept.scope_of is not None
    assert kept.scope_of(one) == "first"
    await sender.renew(lambda: second)
    assert kept.scope_of(one) == "second"
    second.let_go.set()
    first.let_go.set()
    await sender.stop(1)

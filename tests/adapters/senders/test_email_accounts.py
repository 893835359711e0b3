"""Two mail servers of one app, on a lane: the second takes over while the first refuses us or is not there."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.adapters.senders.bench import SystemClock, accepted, payload_of, script
from tests.adapters.senders.email_account import account
from tests.shows import shows
from tests.unit.runtime.bench import APP
from tests.unit.runtime.timed import TimedBench
from waypost.channels.email.sender import EmailSender
from waypost.channels.email.settings import EmailSettings
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.device import EMAIL, Registration
from waypost.domain.fallback import Fallbacks
from waypost.domain.ids import DeviceId, NotificationId, UserId, format_id
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.status import DeliveryStatus
from waypost.lab import Lab, LabSettings
from waypost.runtime.delivery_context import DeliveryContext
from waypost.telemetry.sink import Silent

pytestmark = pytest.mark.asyncio

MAIL = Channel("email")
FIRST, BACKUP = CredentialId(APP, MAIL), CredentialId(APP, MAIL, "backup")


@pytest_asyncio.fixture
async def other_lab(
    lab_settings: LabSettings, credentials: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Lab]:
    """The second mail server, with mailboxes, passwords and faults of its own."""
    directory = tmp_path_factory.mktemp("other_lab")
    shutil.copytree(credentials, directory, dirs_exist_ok=True)
    lab = Lab(replace(lab_settings, directory=directory))
    await lab.start()
    yield lab
    await lab.stop()


class TwoServers(TimedBench):
    """A lane that sends e-mail by the first of two accounts, and by the second where that stands in."""

    def __init__(self, board_path: Path, senders: list[EmailSender]) -> None:
        super().__init__(board_path)
        self.rules = BreakerRules(failures_to_open=1, ramp_start=2)
        self.others = senders
        self.fallbacks = Fallbacks.of([[FIRST, BACKUP]])

    def context(self) -> DeliveryContext:
        """Route mailboxes to the first account."""
        table = RoutingTable({EMAIL: MAIL}, {APP: {MAIL: (FIRST,)}}, RULES)
        return replace(super().context(), routing=table)

    async def tell(self, user: str) -> NotificationId:
        """Register a mailbox and write to it."""
        address = f"{user}@lab.example"
        await self.devices.upsert(
            Registration(APP, UserId(user), DeviceId("mail"), EMAIL, address), self.clock.now(), cap=10
        )
        return await self.accept(user, content=Content(title="Your code", channels=(ChannelStep("email"),)))

    async def history(self, told: NotificationId) -> list[tuple[str, str, str]]:
        """The attempts of a notification: by which account, what came of it, and the code."""
        return [(each.credential, each.status, each.code) for each in (await self.receipt(told, MAIL)).attempts]


@asynccontextmanager
async def sending(board_path: Path, first: EmailSettings, backup: EmailSettings) -> AsyncIterator[TwoServers]:
    """A lane with both accounts open."""
    async with AsyncExitStack() as opening:
        senders = []
        for name, settings in ((FIRST, first), (BACKUP, backup)):
            sender = EmailSender(name, settings, clock=SystemClock(), telemetry=Silent())
            await sender.start()
            opening.push_async_callback(sender.stop, 1)
            senders.append(sender)
        yield TwoServers(board_path, senders)


@shows("S4-21")
async def test_a_second_mail_server_writes_while_the_first_refuses_the_login(
    lab: Lab, other_lab: Lab, tmp_path: Path
) -> None:
    """Both attempts are on record, and the reader has one message."""
    wrong = tmp_path / "wrong"
    wrong.write_text("guessed")
    refused = replace(account(lab), password_file=str(wrong))
    async with sending(tmp_path / "worker_slots", refused, account(other_lab)) as bench, bench.running() as loop:
        told = await bench.tell("ann")
        await bench.pass_time(loop, 2)
        receipt = await bench.receipt(told, MAIL)
        assert (receipt.status, receipt.retries) == (DeliveryStatus.SENT, 0)
        assert await bench.history(told) == [("", "denied", "smtp_535_5.7.8"), ("backup", "taken", "")]
    assert accepted(lab, "email") == []
    (got,) = accepted(other_lab, "email")
    assert payload_of(other_lab, got)["message_id"] == f"<{format_id(told)}.0@example.com>"


@shows("S4-21")
async def test_a_second_mail_server_writes_while_the_first_is_away_and_no_longer(
    lab: Lab, other_lab: Lab, tmp_path: Path
) -> None:
    await lab.script(script({"where": "email", "do": {"refuse_connections": True}}))
    async with sending(tmp_path / "worker_slots", account(lab), account(other_lab)) as bench, bench.running() as loop:
        told = await bench.tell("ann")
        await bench.pass_time(loop, 2)
        assert await bench.history(told) == [("", "unreachable", "not_connected"), ("backup", "taken", "")]
        await lab.script([])
        later = []
        for n in range(20):
            later.append(await bench.tell(f"user-{n}"))
            await bench.pass_time(loop, 1)
        by = [(await bench.receipt(each, MAIL)).attempts[-1] for each in later]
        assert {each.status for each in by} == {"taken"}
        assert by[-1].credential == "", "the first writes again"
    readers = [record.token for each in (lab, other_lab) for record in accepted(each, "email")]
    assert len(readers) == len(set(readers)) == 21

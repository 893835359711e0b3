"""E-mail against the lab's mail server, which wants TLS and a login and reads every message strictly."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec.structs import replace

from tests.adapters.senders.bench import SystemClock, accepted, fresh, outcome, outcomes, payload_of, script
from tests.adapters.senders.email_account import account
from tests.unit.adapters.deliveries import delivery
from waypost.channels.email.sender import EmailSender
from waypost.channels.email.settings import EmailSettings
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import EMAIL
from waypost.domain.ids import AppId, format_id
from waypost.domain.notification import Notification
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.lab import Lab
from waypost.lab.credentials import pem
from waypost.telemetry.sink import Silent

NAME = "email"


def to_reader(lab: Lab, what: Notification | None = None, n: int = 0) -> Delivery:
    """To a mailbox of the lab."""
    return delivery(EMAIL, lab.further[NAME].make({}).token, what or fresh(), n=n)


@pytest.fixture
def settings(lab: Lab) -> EmailSettings:
    """The lab's mail server, by STARTTLS and password."""
    return account(lab)


async def started(settings: EmailSettings) -> EmailSender:
    """A sender of these settings."""
    made = EmailSender(CredentialId.of(AppId("demo"), NAME), settings, clock=SystemClock(), telemetry=Silent())
    await made.start()
    return made


@pytest_asyncio.fixture
async def sender(settings: EmailSettings) -> AsyncIterator[EmailSender]:
    """One by STARTTLS and password."""
    made = await started(settings)
    yield made
    await made.stop(1)


@pytest.mark.asyncio
async def test_readers_get_what_they_can_read_on_few_connections(lab: Lab, sender: EmailSender) -> None:
    what = fresh(Content(title="Grüße", body="Hällo\n.\nWelt", link="https://example.com/a?b=1&c=2"))
    batch = [to_reader(lab, what, n) for n in range(40)]
    got = await outcomes(sender, batch)
    ids = [f"<{format_id(what.id)}.{n}@example.com>" for n in range(40)]
    assert got == [Taken(each) for each in ids]
    records = accepted(lab, NAME)
    assert sorted(record.token for record in records) == sorted(one.device.token for one in batch)
    assert {record.notification_id for record in records} == {format_id(what.id)}
    assert len({record.connection for record in records}) == 4
    said = [payload_of(lab, record) for record in records]
    assert sorted(each["message_id"] for each in said) == sorted(ids)
    assert {each["subject"] for each in said} == {"Grüße"}
    assert {each["text"] for each in said} == {"Hällo\n.\nWelt\n\nhttps://example.com/a?b=1&c=2\n"}
    assert 'href="https://example.com/a?b=1&amp;c=2"' in said[0]["html"]
    assert said[0]["from"] == "Example Shop <news@example.com>"


@pytest.mark.asyncio
async def test_a_retry_is_the_same_message_byte_by_byte(lab: Lab, settings: EmailSettings) -> None:
    keys = {"dkim_key_file": str(lab.settings.directory / "dkim.pem"), "dkim_selector": "lab"}
    sender, one = await started(replace(settings, **keys)), to_reader(lab)
    assert await outcome(sender, one) == await outcome(sender, replace(one, attempt=2))
    bodies = [lab.records.content(record.seq) for record in accepted(lab, NAME)]
    assert len(bodies) == 2
    assert bodies[0] is not None and bodies[1] is not None
    assert bodies[0].body == bodies[1].body
    await sender.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize("way", ["tls", "token"])
async def test_other_ways_in(lab: Lab, settings: EmailSettings, way: str) -> None:
    if way == "tls":
        settings = replace(settings, security="tls", port=urlsplit(lab.urls.further["email_tls"]).port)
    else:
        settings = replace(settings, password_file=None, token_file=str(lab.settings.directory / "smtp-token"))
    sender = await started(settings)
    assert isinstance(await outcome(sender, to_reader(lab)), Taken)
    await sender.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize("secret", ["password_file", "token_file"])
async def test_a_wrong_login_stops_the_credential_and_is_tried_once(
    lab: Lab, settings: EmailSettings, secret: str
) -> None:
    wrong = lab.settings.directory / "wrong"
    wrong.write_text("guessed")
    sender = await started(replace(settings, connections=1, **({"password_file": None} | {secret: str(wrong)})))
    got = await outcomes(sender, [to_reader(lab, n=n) for n in range(3)])
    assert {type(each) for each in got} == {CredentialRejected}
    assert isinstance(got[0], CredentialRejected)
    assert (got[0].code, got[0].reach) == ("smtp_535_5.7.8", Reach.CREDENTIAL)
    assert lab.records.counts[NAME].connections_opened == 1
    assert not sender.health().ok
    await sender.stop(1)


@pytest.mark.asyncio
async def test_what_is_not_encrypted_or_not_who_it_should_be_gets_nothing(lab: Lab, settings: EmailSettings) -> None:
    open_, strangers = replace(settings, security="none"), replace(settings, ca_file=None)
    got = []
    for wrong in (open_, strangers):
        sender = await started(wrong)
        got.append(await outcome(sender, to_reader(lab)))
        await sender.stop(1)
    assert got[0] == Unreachable("no_login", "the server offers no way to sign in that we know")
    assert isinstance(got[1], Unreachable)
    assert got[1].code == "not_connected"
    assert "certificate" in got[1].why
    assert accepted(lab, NAME) == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("do", "want", "code"),
    [
        ({"answer": {"status": 421, "reason": "4.7.0 too many"}}, Throttled, "smtp_421_4.7.0"),
        ({"answer": {"status": 450, "reason": "4.7.1 greylisted"}}, Throttled, "smtp_450_4.7.1"),
        ({"answer": {"status": 452, "reason": "4.2.2 full"}}, Unreachable, "smtp_452_4.2.2"),
        ({"answer": {"status": 550, "reason": "5.1.1 unknown"}}, Gone, "smtp_550_5.1.1"),
        ({"answer": {"status": 554, "reason": "5.7.1 spam"}}, Refused, "smtp_554_5.7.1"),
        ({"gone": {}}, Gone, "smtp_550_5.1.1"),
        ({"accept_then_drop": True}, Unanswered, "connection_lost"),
        ({"drop": True}, Unanswered, "connection_lost"),
        ({"refuse_connections": True}, Unreachable, "not_connected"),
        ({"tls_fail": True}, Unreachable, "smtp_454"),
    ],
)
async def test_each_fault_is_read_as_it_means_and_the_next_message_arrives(
    lab: Lab, sender: EmailSender, do: dict[str, Any], want: type[Outcome], code: str
) -> None:
    await lab.script(script({"where": NAME, "do": do}))
    got = await outcome(sender, to_reader(lab))
    assert isinstance(got, want)
    assert not isinstance(got, Taken)
    assert got.code == code
    await lab.script([])
    assert isinstance(await outcome(sender, to_reader(lab)), Taken)


@pytest.mark.asyncio
async def test_a_server_that_never_answers_is_waited_for_so_long(lab: Lab, settings: EmailSettings) -> None:
    sender = await started(replace(settings, timeout_s=2))
    await lab.script(script({"where": NAME, "do": {"black_hole": {"accept": True}}}))
    assert await outcome(sender, to_reader(lab)) == Unanswered("timeout", "no answer in time")
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_mailbox_that_is_gone_does_not_harm_its_neighbours(lab: Lab, settings: EmailSettings) -> None:
    sender = await started(replace(settings, connections=1))
    batch = [to_reader(lab, n=n) for n in range(3)]
    lab.tokens.deaths[batch[1].device.token] = 1
    got = await outcomes(sender, batch)
    assert got[1] == Gone("smtp_550_5.1.1")
    assert isinstance(got[0], Taken) and isinstance(got[2], Taken)
    assert {record.connection for record in accepted(lab, NAME)} == {1}
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_connection_that_ended_while_idle_costs_nothing(lab: Lab, settings: EmailSettings) -> None:
    sender = await started(replace(settings, connections=1))
    assert isinstance(await outcome(sender, to_reader(lab)), Taken)
    lab.disconnect()
    assert isinstance(await outcome(sender, to_reader(lab)), Taken)
    assert lab.records.counts[NAME].connections_opened == 2
    await sender.stop(1)


@pytest.mark.asyncio
async def test_readers_can_leave_by_one_click_and_a_signature_covers_the_way(
    lab: Lab, settings: EmailSettings, tmp_path: Path
) -> None:
    """The lab verifies by another DKIM implementation."""
    secret = tmp_path / "unsubscribe-key"
    secret.write_bytes(b"k" * 32)
    sender = await started(
        replace(
            settings,
            dkim_key_file=str(lab.settings.directory / "dkim.pem"),
            dkim_selector="lab",
            unsubscribe_url="https://example.com/u/{token}",
            unsubscribe_key_file=str(secret),
            unsubscribe_mailto="leave@example.com",
        )
    )
    assert isinstance(await outcome(sender, to_reader(lab)), Taken)
    said = payload_of(lab, accepted(lab, NAME)[0])
    assert said["dkim"] is True
    assert said["headers"]["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    found = re.fullmatch(
        r"<https://example\.com/u/(\S+)>,\s*<mailto:leave@example\.com>", said["headers"]["List-Unsubscribe"]
    )
    assert found is not None
    named, _, signature = found[1].partition(".")
    assert base64.urlsafe_b64decode(named + "==").decode() == "demo\nu1\nd1"
    expected = hmac.digest(b"k" * 32, named.encode(), "sha256")
    assert base64.urlsafe_b64decode(signature + "==") == expected
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_signature_by_another_key_is_noticed(lab: Lab, settings: EmailSettings, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(pem(rsa.generate_private_key(65537, 2048)))
    sender = await started(replace(settings, dkim_key_file=str(other), dkim_selector="lab"))
    assert isinstance(await outcome(sender, to_reader(lab)), Refused)
    assert lab.records.counts[NAME].reasons == {"the DKIM signature does not verify": 1}
    await sender.stop(1)


@pytest.mark.asyncio
async def test_no_text_becomes_a_header(lab: Lab, sender: EmailSender) -> None:
    evil = "Hi\r\nBcc: eve@example.com\r\n\r\nFree money"
    what = fresh(Content(title=evil, subtitle=evil, body=evil, overrides={Channel(NAME): {"headers": {"X-A": "b"}}}))
    assert isinstance(await outcome(sender, to_reader(lab, what)), Taken)
    said = payload_of(lab, accepted(lab, NAME)[0])
    assert said["subject"] == "Hi Bcc: eve@example.com Free money"
    assert "Bcc" not in said["headers"]
    assert said["headers"]["X-A"] == "b"


@pytest.mark.asyncio
async def test_what_is_nothing_to_read_is_not_sent(lab: Lab, sender: EmailSender) -> None:
    silent = to_reader(lab, fresh(Content(data={"n": 1}), kind=Kind.SILENT))
    got = await outcome(sender, silent)
    assert isinstance(got, Refused)
    assert got.code == "nothing_to_read"
    assert sender.render(silent).refused == got.why
    assert accepted(lab, NAME) == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("token", "override", "code"),
    [
        ("ann@example.com\r\nBcc: eve@example.com", {}, "invalid_mailbox"),
        ("ann@example.com>\r\nDATA", {}, "invalid_mailbox"),
        ("ann@example.com", {"text": 1}, "invalid_override"),
        ("ann@example.com", {"text": "x" * 600_000}, "payload_too_large"),
    ],
)
async def test_what_was_stored_without_being_checked_is_refused(
    lab: Lab, sender: EmailSender, token: str, override: dict[str, Any], code: str
) -> None:
    """An import, or a notification that is older than the section."""
    one = delivery(EMAIL, token, fresh(Content(title="Hi", overrides={Channel(NAME): override})))
    got = await outcome(sender, one)
    assert isinstance(got, Refused)
    assert got.code == code
    assert sender.render(one).refused == got.why
    assert lab.records.counts[NAME].connections_opened == 0


@pytest.mark.asyncio
async def test_explain_shows_the_message_without_its_reader(lab: Lab, sender: EmailSender) -> None:
    one = to_reader(lab)
    rendered = sender.render(one)
    assert rendered.refused is None
    assert rendered.headers["Subject"] == "Hello"
    assert b"World" in rendered.body
    assert one.device.token not in str(rendered)

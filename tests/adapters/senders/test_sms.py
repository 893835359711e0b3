"""Text messages through the lab's Twilio, which checks form and account as the real one does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import parse_qs

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.adapters.senders.bench import SystemClock, accepted, fresh, outcome, outcomes, script
from tests.unit.adapters.deliveries import delivery
from waypost.channels.sms.sender import SmsSender
from waypost.channels.sms.settings import CHANNEL, SmsSettings
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import PHONE
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, format_id
from waypost.domain.notification import Notification
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.lab import Lab
from waypost.lab.twilio import ACCOUNT_SID, TOKEN_FILE
from waypost.telemetry.sink import Silent

pytestmark = pytest.mark.asyncio

NAME = "twilio"
CREDENTIAL = CredentialId(AppId("demo"), CHANNEL)


def to_phone(number: str = "+491701234567", what: Notification | None = None) -> Delivery:
    """To a telephone."""
    return replace(delivery(PHONE, number, what or fresh()), credential=CREDENTIAL)


@pytest.fixture
def settings(lab: Lab) -> SmsSettings:
    """The lab's account."""
    directory = lab.settings.directory
    return SmsSettings(
        account_sid=ACCOUNT_SID,
        auth_token_file=str(directory / TOKEN_FILE),
        from_number="+15550100100",
        endpoint=lab.urls.further[NAME],
        ca_file=str(directory / "ca.pem"),
    )


async def started(settings: SmsSettings, public_url: str | None = None) -> SmsSender:
    """A sender of these settings."""
    sender = SmsSender(CREDENTIAL, settings, clock=SystemClock(), telemetry=Silent(), public_url=public_url)
    await sender.start()
    return sender


@pytest_asyncio.fixture
async def sender(settings: SmsSettings) -> AsyncIterator[SmsSender]:
    """One that is not reported to."""
    made = await started(settings)
    yield made
    await made.stop(1)


async def test_each_telephone_gets_its_text_once(lab: Lab, sender: SmsSender) -> None:
    what = fresh(Content(title="Your code", body="1234 ä€ & more", link="https://example.com/?a=1&b=2"))
    numbers = [f"+4917012345{n:02}" for n in range(30)]
    found = await outcomes(sender, [to_phone(number, what) for number in numbers])
    assert all(isinstance(each, Taken) and each.provider_id.startswith("SM") for each in found)
    records = accepted(lab, NAME)
    assert sorted(record.token for record in records) == numbers
    content = lab.records.content(records[0].seq)
    assert content is not None
    form = parse_qs(content.body.decode())
    assert form["Body"] == ["Your code\n1234 ä€ & more\nhttps://example.com/?a=1&b=2"]
    assert (form["From"], 3590 <= int(form["ValidityPeriod"][0]) <= 3600) == (["+15550100100"], True)
    assert "StatusCallback" not in form


async def test_reports_are_asked_for_where_twilio_reaches_us(lab: Lab, settings: SmsSettings) -> None:
    sender = await started(settings, "https://127.0.0.1:1")
    what = fresh()
    assert isinstance(await outcome(sender, to_phone(what=what)), Taken)
    (record,) = accepted(lab, NAME)
    content = lab.records.content(record.seq)
    assert content is not None
    (url,) = parse_qs(content.body.decode())["StatusCallback"]
    assert url == f"https://127.0.0.1:1/callbacks/demo/sms/default?id={format_id(what.id)}&n=0"
    await sender.stop(1)


async def test_an_address_that_twilio_does_not_report_to_stops_the_account_and_loses_nothing(
    settings: SmsSettings,
) -> None:
    """Its host has an underscore, which Twilio refuses with every message."""
    sender = await started(settings, "https://my_host.example.com")
    found = await outcome(sender, to_phone())
    assert isinstance(found, CredentialRejected) and found.code == "21609"
    await sender.stop(1)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("+15005550001", Gone("21211")),
        ("+15005550009", Gone("21614")),
        ("+15005550004", Gone("21610")),
        ("+15005550003", Refused("21408", "the account may not send to this region", elsewhere=True)),
        ("+15005550002", Refused("21612", "there is no way from this sender to this number", elsewhere=True)),
        ("12345", Gone("21211")),
    ],
)
async def test_a_number_that_cannot_be_reached(sender: SmsSender, number: str, expected: Outcome) -> None:
    assert await outcome(sender, to_phone(number)) == expected


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (429, "20429", Throttled),
        (400, "21611", Throttled),
        (400, "30001", Throttled),
        (401, "20003", CredentialRejected),
        (400, "21606", CredentialRejected),
        (500, "0", Unanswered),
        (503, "0", Unanswered),
        (400, "29999", Refused),
        (418, "0", Unanswered),
    ],
)
async def test_an_answer_has_its_outcome(
    lab: Lab, sender: SmsSender, status: int, reason: str, expected: type[Outcome]
) -> None:
    await lab.script(script({"do": {"answer": {"status": status, "reason": reason}}, "where": NAME}))
    found = await outcome(sender, to_phone())
    assert isinstance(found, expected), found


async def test_a_lost_answer_may_have_been_taken_and_a_closed_port_took_nothing(lab: Lab, sender: SmsSender) -> None:
    await lab.script(script({"do": {"accept_then_drop": True}, "where": NAME}))
    assert isinstance(await outcome(sender, to_phone()), Unanswered)
    await lab.script(script({"do": {"refuse_connections": True}, "where": NAME}))
    lab.disconnect()
    assert isinstance(await outcome(sender, to_phone()), Unreachable)


async def test_a_text_that_is_too_long_is_refused_or_shortened(lab: Lab, settings: SmsSettings) -> None:
    long = fresh(Content(title="Hello", body="x" * 1_700))
    refusing, trimming = await started(settings), await started(replace(settings, fit="trim"))
    found = await outcome(refusing, to_phone(what=long))
    assert found == Refused("payload_too_large", "1706 characters, limit 1600")
    assert accepted(lab, NAME) == []
    assert isinstance(await outcome(trimming, to_phone(what=long)), Taken)
    for each in (refusing, trimming):
        await each.stop(1)


async def test_what_would_be_posted_is_shown_with_its_segments_and_without_the_number(sender: SmsSender) -> None:
    shown = sender.render(to_phone(what=fresh(Content(title="ж" * 100))))
    assert {name: shown.headers[name] for name in ("x-encoding", "x-segments", "x-price")} == {
        "x-encoding": "UCS-2",
        "x-segments": "2",
        "x-price": "2 segments to +49",
    }
    assert b"491701234567" not in shown.body
    assert "authorization" not in shown.headers
    assert sender.render(to_phone(what=fresh(Content()))).refused == (
        "a text message needs a title, a body or overrides.sms.body"
    )


async def test_a_key_signs_in_in_place_of_the_token(lab: Lab, settings: SmsSettings) -> None:
    """The lab knows one secret alone, so that another one is refused as Twilio does."""
    file = lab.settings.directory / "other.txt"
    file.write_text("not the token")
    keyed = await started(replace(settings, api_key_sid="SK" + "a" * 32, api_key_secret_file=str(file)))
    found = await outcome(keyed, to_phone())
    assert isinstance(found, CredentialRejected) and found.code == "20003"
    assert not keyed.health().ok
    await keyed.stop(1)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"auth_token_file": "/nowhere"}, "auth_token_file"),
        ({"from_number": None}, "from_number"),
        ({"messaging_service_sid": "MG" + "a" * 32}, "from_number"),
        ({"api_key_sid": "SK" + "a" * 32}, "api_key_sid"),
        ({"endpoint": "http://example.com"}, "endpoint"),
    ],
)
async def test_a_section_that_cannot_be_used_is_named(
    settings: SmsSettings, change: dict[str, str | None], path: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await started(replace(settings, **change))
    assert caught.value.path == f"apps.demo.sms.{path}"

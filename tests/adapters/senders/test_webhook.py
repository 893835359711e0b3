"""Webhooks against the lab's receivers, which verify signatures and judge bodies as Slack, Teams and Discord do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import standardwebhooks
import svix
from msgspec.structs import replace

from tests.adapters.senders.bench import (
    SystemClock,
    accepted,
    fresh,
    headers_of,
    outcome,
    outcomes,
    payload_of,
    script,
    to_all,
)
from tests.shows import shows
from tests.unit.adapters.deliveries import delivery
from waypost.channels.webhook.sender import ANSWER_BY_S, WebhookSender
from waypost.channels.webhook.settings import CHANNEL, BodyFormat, WebhookSettings
from waypost.domain.audience import Audience
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import URL
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, format_id
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.lab import Lab
from waypost.telemetry import Event
from waypost.telemetry.sink import Silent

NAME = "webhook"


class Heard(Silent):
    """Telemetry that keeps events."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        self.events.append((event, fields))


def to_url(lab: Lab, kind: str = "hooks", what: Content | None = None) -> Delivery:
    """To a receiver of the lab."""
    return _on_channel(lab.further[NAME].make({"kind": kind}).shown["endpoint"], what)


def _on_channel(endpoint: str, what: Content | None) -> Delivery:
    made = delivery(URL, endpoint, fresh(what))
    return replace(made, credential=CredentialId(AppId("demo"), CHANNEL))


@pytest.fixture
def settings(lab: Lab) -> WebhookSettings:
    """The lab's receivers alone."""
    directory = lab.settings.directory
    return WebhookSettings(
        secret_file=str(directory / "webhook.secret"),
        allow_endpoints=(lab.urls.further[NAME],),
        ca_file=str(directory / "ca.pem"),
    )


async def started(settings: WebhookSettings, telemetry: Silent | None = None) -> WebhookSender:
    """A sender of these settings."""
    credential = CredentialId.of(AppId("demo"), NAME)
    sender = WebhookSender(credential, settings, clock=SystemClock(), telemetry=telemetry or Silent())
    await sender.start()
    return sender


@pytest_asyncio.fixture
async def sender(settings: WebhookSettings) -> AsyncIterator[WebhookSender]:
    """One with the secret of the lab."""
    made = await started(settings)
    yield made
    await made.stop(1)


@pytest.mark.asyncio
async def test_what_arrives_is_verified_by_the_libraries_of_receivers(lab: Lab, sender: WebhookSender) -> None:
    secret = (lab.settings.directory / "webhook.secret").read_text().strip()
    all_of_them = [to_url(lab) for _ in range(20)]
    assert await outcomes(sender, all_of_them) == [Taken()] * 20
    records = accepted(lab, NAME)
    assert {record.notification_id for record in records} == {f"{format_id(one.id)}-0" for one in all_of_them}
    for record in records:
        content = lab.records.content(record.seq)
        assert content is not None
        standardwebhooks.Webhook(secret).verify(content.body, content.headers)
        svix.Webhook(secret).verify(content.body, content.headers)
        assert payload_of(lab, record)["title"] == "Hello"


@pytest.mark.asyncio
async def test_during_a_rotation_receivers_with_either_secret_believe(lab: Lab, settings: WebhookSettings) -> None:
    directory: Path = lab.settings.directory
    new, old = (directory / name for name in ("webhook.secret", "webhook-old.secret"))
    both = await started(replace(settings, secret_file=str(new), old_secret_file=str(old)))
    assert await outcome(both, to_url(lab)) == Taken()
    (record,) = accepted(lab, NAME)
    content = lab.records.content(record.seq)
    assert content is not None
    for file in (new, old):
        standardwebhooks.Webhook(file.read_text().strip()).verify(content.body, content.headers)
    await both.stop(1)


@shows("S4-46")
@pytest.mark.asyncio
async def test_a_wrong_secret_is_refused_and_not_tried_again(lab: Lab, settings: WebhookSettings) -> None:
    other = lab.settings.directory / "other.secret"
    other.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    wrong = await started(replace(settings, secret_file=str(other)))
    refused = await outcome(wrong, to_url(lab))
    assert isinstance(refused, Refused)
    assert refused.code == "http_401"
    await wrong.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize("chat", [BodyFormat.SLACK, BodyFormat.TEAMS, BodyFormat.DISCORD])
async def test_chats_take_what_is_written_for_them(lab: Lab, settings: WebhookSettings, chat: BodyFormat) -> None:
    """They need no secret."""
    content = Content(title="Deployed", body="v7 <is> live & well", link="https://example.com/7")
    sender = await started(replace(settings, format=chat, secret_file=None))
    assert await outcome(sender, to_url(lab, chat, content)) == Taken()
    (record,) = accepted(lab, NAME)
    assert "webhook-signature" not in headers_of(lab, record)
    await sender.stop(1)


@pytest.mark.asyncio
async def test_our_own_body_is_none_that_a_chat_takes(lab: Lab, sender: WebhookSender) -> None:
    for chat in ("slack", "teams", "discord"):
        assert isinstance(await outcome(sender, to_url(lab, chat)), Refused)


@pytest.mark.asyncio
async def test_a_submission_may_name_a_url_of_its_own(lab: Lab, sender: WebhookSender) -> None:
    endpoint = lab.further[NAME].make({}).shown["endpoint"]
    assert await outcome(sender, to_all(Audience(CHANNEL, "url", endpoint))) == Taken()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "want"),
    [
        ({"status": 500}, Unanswered),
        ({"status": 503, "retry_after": 3}, Unanswered),
        ({"status": 429, "retry_after": 3}, Throttled),
        ({"status": 404}, Refused),
        ({"status": 410}, Gone),
        ({"status": 307, "headers": {"location": "https://127.0.0.1:1/"}}, Refused),
    ],
)
async def test_what_a_receiver_answers_is_read_as_it_means(
    lab: Lab, settings: WebhookSettings, answer: dict[str, Any], want: type[Outcome]
) -> None:
    heard = Heard()
    sender = await started(settings, heard)
    await lab.script(script({"where": NAME, "do": {"answer": answer}}))
    one = to_url(lab)
    assert isinstance(await outcome(sender, one), want)
    assert sender.health().ok
    (told,) = [fields for event, fields in heard.events if event is Event.WEBHOOK_ATTEMPT]
    assert (told["attempt"], told["code"]) == (1, f"http_{answer['status']}")
    assert one.address.token not in str(heard.events)
    await sender.stop(1)


@pytest.mark.asyncio
async def test_receivers_that_are_dead_are_not_reached(lab: Lab, settings: WebhookSettings) -> None:
    nobody = "https://127.0.0.1:9"
    sender = await started(replace(settings, allow_endpoints=(nobody,)))
    assert isinstance(await outcome(sender, _on_channel(f"{nobody}/x", None)), Unreachable)
    await sender.stop(1)


FORBIDDEN = (
    "https://127.0.0.1/x", "https://[::1]/x", "https://10.0.0.1/x", "https://169.254.169.254/latest/meta-data",
    "https://[::ffff:127.0.0.1]/x", "https://[64:ff9b::7f00:1]/x", "https://[2002:7f00:1::]/x", "https://100.64.0.1/x",
    "https://[2001::1]/x", "https://0.0.0.0/x", "https://224.0.0.1/x", "https://[fe80::1]/x", "https://[fd00::1]/x",
    "https://user@example.com/x", "https://example.com:8443/x", "http://example.com/x", "ftp://example.com/x",
)  # fmt: skip


@shows("S4-48")
@pytest.mark.asyncio
@pytest.mark.parametrize("url", FORBIDDEN)
async def test_addresses_that_are_nobodys_receivers_are_refused(settings: WebhookSettings, url: str) -> None:
    """S4-48, and the list of those who forge requests by the hand of a server."""
    sender = await started(replace(settings, allow_endpoints=("*",)))
    refused = await outcome(sender, _on_channel(url, None))
    assert isinstance(refused, Refused)
    assert refused.code == "endpoint_not_allowed"
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_name_with_an_address_that_is_not_public_is_not_dialed(lab: Lab, settings: WebhookSettings) -> None:
    """Any public host may be named; what it resolves to is checked when it is dialed."""
    sender = await started(replace(settings, allow_endpoints=("*",)))
    got = await outcome(sender, _on_channel("https://localhost/x", None))
    assert isinstance(got, Unreachable)
    assert "may not be dialed" in got.why
    await sender.stop(1)


@shows("S4-44")
@pytest.mark.asyncio
async def test_a_receiver_has_thirty_seconds(lab: Lab, sender: WebhookSender, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4-44; what is not answered by then is tried again. Here the seconds are hundredths."""
    assert (sender.capabilities.request_timeout_ms, ANSWER_BY_S) == (30_000, 30.0)
    monkeypatch.setattr("waypost.channels.webhook.sender.WRITTEN_BY_S", 0.15)
    monkeypatch.setattr("waypost.channels.webhook.sender.ANSWER_BY_S", 0.3)
    await lab.script(script({"where": NAME, "do": {"black_hole": {}}}))
    assert isinstance(await outcome(sender, to_url(lab)), Unanswered)


@pytest.mark.asyncio
async def test_without_a_secret_nothing_of_ours_is_sent(settings: WebhookSettings) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await started(replace(settings, secret_file=None))
    assert caught.value.path == "apps.demo.webhook.secret_file"


def _changes(lab: Lab, count: int) -> tuple[str, list[Delivery]]:
    """A receiver of the lab, and *count* status changes for it."""
    url = str(lab.further[NAME].make({}).shown["endpoint"])
    to = Audience(CHANNEL, "url", url)
    return url, [to_all(to, overrides={CHANNEL: {"type": "delivery.status", "n": n}}) for n in range(count)]


@pytest.mark.asyncio
async def test_a_receiver_that_asks_for_batches_gets_one_signed_request_for_many(
    lab: Lab, settings: WebhookSettings
) -> None:
    """In their order, each with the id that it has by itself; another URL is posted to as ever."""
    url, changes = _changes(lab, 7)
    secret = (lab.settings.directory / "webhook.secret").read_text().strip()
    sender = await started(replace(settings, status_url=url, status_batch=5, status_batch_wait_ms=10))
    assert await outcomes(sender, [*changes, to_url(lab)]) == [Taken()] * 8
    by_size: dict[int, Any] = {}
    for record in accepted(lab, NAME):
        content = lab.records.content(record.seq)
        assert content is not None
        body = standardwebhooks.Webhook(secret).verify(content.body, content.headers)
        svix.Webhook(secret).verify(content.body, content.headers)
        by_size[len(body.get("events", ()))] = body
    assert set(by_size) == {0, 2, 5}
    events = by_size[5]["events"] + by_size[2]["events"]
    assert [each["id"] for each in events] == [f"{format_id(one.id)}-0" for one in changes]
    assert [each["payload"]["n"] for each in events] == list(range(7))
    assert {body["type"] for size, body in by_size.items() if size} == {"batch"}
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_batch_that_was_not_taken_is_told_of_each_and_has_the_same_ids_again(
    lab: Lab, settings: WebhookSettings
) -> None:
    heard = Heard()
    url, changes = _changes(lab, 3)
    sender = await started(replace(settings, status_url=url, status_batch=3), heard)
    await lab.script(script({"where": NAME, "match": {"times": 1}, "do": {"answer": {"status": 500}}}))
    assert {type(each) for each in await outcomes(sender, changes)} == {Unanswered}
    assert await outcomes(sender, changes) == [Taken()] * 3
    first, second = (lab.records.content(record.seq) for record in lab.records.since(-1))
    assert first is not None
    assert second is not None
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert sum(event is Event.WEBHOOK_ATTEMPT for event, _ in heard.events) == 6
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_batch_that_waits_when_the_sender_is_stopped_is_posted(lab: Lab, settings: WebhookSettings) -> None:
    url, (change,) = _changes(lab, 1)
    sender = await started(replace(settings, status_url=url, status_batch=100, status_batch_wait_ms=10_000))
    waiting = asyncio.ensure_future(outcome(sender, change))
    await asyncio.sleep(0)
    await sender.stop(5)
    assert await waiting == Taken()


@pytest.mark.asyncio
async def test_batches_are_written_in_no_chats_form(settings: WebhookSettings) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await started(replace(settings, format=BodyFormat.SLACK, status_batch=2))
    assert caught.value.path == "apps.demo.webhook.status_batch"

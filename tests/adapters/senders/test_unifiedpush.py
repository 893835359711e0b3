"""UnifiedPush against the lab's push server, which answers as ntfy does and decrypts what it takes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.adapters.senders.bench import SystemClock, accepted, fresh, headers_of, outcome, outcomes, payload_of, script
from tests.unit.adapters.deliveries import delivery
from waypost.channels.unifiedpush.sender import UnifiedPushSender
from waypost.channels.unifiedpush.settings import UnifiedPushSettings
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform, SubscriptionKeys
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, format_id
from waypost.domain.notification import Notification
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered
from waypost.domain.retry import EXPONENTIAL
from waypost.domain.settlement import Again, decide
from waypost.lab import Lab
from waypost.telemetry.sink import Silent

NAME = "unifiedpush"


def octets(text: str) -> bytes:
    """Of base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def to_device(lab: Lab, what: Notification | None = None, *, encrypted: bool = True) -> Delivery:
    """To a device of the lab."""
    shown = lab.further[NAME].make({"encrypted": encrypted}).shown
    said: dict[str, str] | None = shown["keys"]
    keys = None if said is None else SubscriptionKeys(p256dh=octets(said["p256dh"]), auth=octets(said["auth"]))
    return delivery(Platform(NAME), shown["endpoint"], what or fresh(), keys=keys)


@pytest.fixture
def settings(lab: Lab) -> UnifiedPushSettings:
    """The lab's push server alone."""
    return UnifiedPushSettings(
        allow_endpoints=(lab.urls.further[NAME],), ca_file=str(lab.settings.directory / "ca.pem")
    )


async def started(settings: UnifiedPushSettings) -> UnifiedPushSender:
    """A sender of these settings."""
    sender = UnifiedPushSender(
        CredentialId.of(AppId("demo"), "unifiedpush"), settings, clock=SystemClock(), telemetry=Silent()
    )
    await sender.start()
    return sender


@pytest_asyncio.fixture
async def sender(settings: UnifiedPushSettings) -> AsyncIterator[UnifiedPushSender]:
    """One without an identity."""
    made = await started(settings)
    yield made
    await made.stop(1)


@pytest.mark.asyncio
async def test_every_device_can_read_what_its_server_cannot(lab: Lab, sender: UnifiedPushSender) -> None:
    content = Content(title="Hello", body="World", overrides={Channel(NAME): {"extra": 1}}, collapse_key="order7")
    what = fresh(content, urgency=Urgency.HIGH)
    assert await outcomes(sender, [to_device(lab, what) for _ in range(40)]) == [Taken()] * 40
    records = accepted(lab, NAME)
    assert len(records) == 40
    for record in records:
        said = payload_of(lab, record)
        assert (said["title"], said["body"], said["extra"]) == ("Hello", "World", 1)
        assert said["waypost_id"] == format_id(what.id)
    headers = headers_of(lab, records[0])
    assert (headers["content-encoding"], headers["urgency"], headers["topic"]) == ("aes128gcm", "high", "order7")
    assert 3590 <= int(headers["ttl"]) <= 3600
    assert "authorization" not in headers


@pytest.mark.asyncio
async def test_a_server_that_asks_who_sends_is_told(lab: Lab, settings: UnifiedPushSettings) -> None:
    """The lab verifies signature, audience and expiry of what it is shown."""
    vapid = str(lab.settings.directory / "vapid.pem")
    sender = await started(replace(settings, vapid_private_key_file=vapid, subject="mailto:ops@example.com"))
    assert await outcome(sender, to_device(lab)) == Taken()
    (record,) = accepted(lab, NAME)
    assert headers_of(lab, record)["authorization"].startswith("vapid t=")
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_key_without_a_contact_is_no_identity(lab: Lab, settings: UnifiedPushSettings) -> None:
    half = replace(settings, vapid_private_key_file=str(lab.settings.directory / "vapid.pem"))
    with pytest.raises(ConfigurationError) as caught:
        await started(half)
    assert caught.value.path == "apps.demo.unifiedpush.subject"


@pytest.mark.asyncio
async def test_a_device_without_keys_gets_plaintext_only_where_the_app_allows_it(
    lab: Lab, sender: UnifiedPushSender, settings: UnifiedPushSettings
) -> None:
    old = to_device(lab, encrypted=False)
    refused = await outcome(sender, old)
    assert isinstance(refused, Refused)
    assert refused.code == "invalid_subscription"
    assert accepted(lab, NAME) == []
    allowed = await started(replace(settings, plaintext=True))
    both = [to_device(lab), replace(old, n=1)]
    assert await outcomes(allowed, both) == [Taken(), Taken()]
    assert {payload_of(lab, record)["title"] for record in accepted(lab, NAME)} == {"Hello"}
    assert {headers_of(lab, record).get("content-encoding") for record in accepted(lab, NAME)} == {"aes128gcm", None}
    await allowed.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "want"),
    [
        ({"status": 507, "reason": "nobody listens"}, Unanswered),
        ({"status": 429, "reason": "limit reached", "retry_after": 3}, Throttled),
        ({"status": 403, "reason": "forbidden"}, Refused),
        ({"status": 307, "headers": {"location": "https://127.0.0.1:1/"}}, Refused),
    ],
)
async def test_what_the_server_answers_is_read_as_it_means(
    lab: Lab, sender: UnifiedPushSender, answer: dict[str, Any], want: type[Outcome]
) -> None:
    await lab.script(script({"where": NAME, "do": {"answer": answer}}))
    assert isinstance(await outcome(sender, to_device(lab)), want)
    assert sender.health().ok


@pytest.mark.asyncio
async def test_a_distributor_that_is_away_is_tried_again_and_one_that_ended_is_forgotten(
    lab: Lab, sender: UnifiedPushSender
) -> None:
    one = to_device(lab)
    await lab.script(script({"where": NAME, "do": {"answer": {"status": 507}}, "match": {"times": 1}}))
    away = await outcome(sender, one)
    assert isinstance(decide(away, one, EXPONENTIAL, SystemClock().now(), 0.0), Again)
    assert await outcome(sender, one) == Taken()
    lab.tokens.deaths[one.device.token.rpartition("/up")[2].removesuffix("?up=1")] = 1
    assert await outcome(sender, one) == Gone("http_404")


@pytest.mark.asyncio
async def test_what_is_over_the_limit_is_refused_before_it_is_sent_or_shortened(
    lab: Lab, sender: UnifiedPushSender, settings: UnifiedPushSettings
) -> None:
    long = to_device(lab, fresh(Content(title="Hello", body="x" * 5_000)))
    refused = await outcome(sender, long)
    assert isinstance(refused, Refused)
    assert refused.code == "payload_too_large"
    assert sender.render(long).refused == refused.why
    trimming = await started(replace(settings, fit="trim"))
    assert await outcome(trimming, long) == Taken()
    assert payload_of(lab, accepted(lab, NAME)[0])["body"].endswith("x…")
    await trimming.stop(1)


@pytest.mark.asyncio
async def test_no_other_server_is_called(lab: Lab, sender: UnifiedPushSender) -> None:
    stray = delivery(Platform(NAME), "https://127.0.0.1:1/upX?up=1", fresh(), keys=to_device(lab).device.keys)
    refused = await outcome(sender, stray)
    assert isinstance(refused, Refused)
    assert refused.code == "endpoint_not_allowed"
    assert sender.render(stray).refused == refused.why


@pytest.mark.asyncio
async def test_explain_shows_what_would_be_encrypted(lab: Lab, sender: UnifiedPushSender) -> None:
    silent = to_device(lab, fresh(Content(data={"n": 1}), kind=Kind.SILENT))
    rendered = sender.render(silent)
    assert rendered.refused is None
    assert b'"title"' not in rendered.body
    assert (rendered.size_bytes, rendered.limit_bytes) == (len(rendered.body), 3_993)
    assert rendered.headers["urgency"] == "low"
    assert accepted(lab, NAME) == []

"""Tokens of the other environment, and those that neither knows, against both of the lab's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from tests.adapters.senders.bench import SystemClock, fresh, outcome, outcomes, script, to_ios
from tests.unit.adapters.deliveries import delivery
from tests.unit.adapters.noted import Noted
from waypost.channels.apns import gateway
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Gone, Reach, Refused, Taken, Throttled
from waypost.domain.time import MINUTE_MS
from waypost.lab import Lab
from waypost.telemetry.events import Event

DEMO = AppId("demo")


@pytest.fixture
def noted() -> Noted:
    """What the sender tells."""
    return Noted()


@pytest.fixture
def healing(apns_settings: ApnsSettings, lab: Lab) -> ApnsSettings:
    """Both environments of the lab; the app's own is production."""
    return msgspec.structs.replace(apns_settings, other_endpoint=lab.urls.apns_sandbox)


@pytest_asyncio.fixture
async def apns(healing: ApnsSettings, noted: Noted) -> AsyncIterator[ApnsSender]:
    """A started sender."""
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), healing, clock=SystemClock(), telemetry=noted)
    await sender.start()
    yield sender
    await sender.stop(1)


def to_sandbox(lab: Lab, token: str | None = None) -> Delivery:
    """To a device whose token is of the sandbox."""
    made = token or lab.tokens.make("ios", 1, topic="com.example.demo", environment="sandbox")[0]
    return delivery(Platform("ios"), made, fresh())


def to_nobody() -> Delivery:
    """To a token that neither environment handed out."""
    return delivery(Platform("ios"), "abc", fresh())


def refusals(lab: Lab) -> tuple[int, int]:
    """How often each environment did not know a token: production, sandbox."""
    counts = lab.records.counts
    return counts["apns"].reasons["BadDeviceToken"], counts["apns_sandbox"].reasons["BadDeviceToken"]


@pytest.mark.asyncio
async def test_a_token_of_the_other_environment_is_sent_there_and_remembered(lab: Lab, apns: ApnsSender) -> None:
    one = to_sandbox(lab)
    for _ in range(3):
        assert isinstance(await outcome(apns, to_sandbox(lab, one.device.token)), Taken)
    assert lab.records.counts["apns_sandbox"].accepted == 3
    assert refusals(lab) == (1, 0)


@pytest.mark.asyncio
async def test_a_remembered_token_that_came_home_is_found_there_again(lab: Lab, apns: ApnsSender) -> None:
    token = to_sandbox(lab).device.token
    assert isinstance(await outcome(apns, to_sandbox(lab, token)), Taken)
    lab.tokens.devices[token] = msgspec.structs.replace(lab.tokens.devices[token], environment="production")
    for _ in range(2):
        assert isinstance(await outcome(apns, to_sandbox(lab, token)), Taken)
    assert refusals(lab) == (1, 1)


@pytest.mark.asyncio
async def test_a_token_that_both_environments_refuse_is_gone(lab: Lab, apns: ApnsSender) -> None:
    assert await outcome(apns, to_nobody()) == Gone("BadDeviceToken")
    assert refusals(lab) == (1, 1)


@pytest.mark.asyncio
async def test_a_spike_of_unknown_tokens_stops_forgetting_and_is_told(lab: Lab, apns: ApnsSender, noted: Noted) -> None:
    got = await outcomes(apns, [to_nobody() for _ in range(100)])
    assert sum(isinstance(each, Gone) for each in got) < 20
    assert all(isinstance(each, Gone | Refused) for each in got)
    assert [fields["credential"] for fields in noted.fields_of(Event.TOKENS_SUSPECT)] == ["demo/apns"]
    assert isinstance(await outcome(apns, to_nobody()), Refused)


@pytest.mark.asyncio
async def test_nothing_is_healed_or_forgotten_where_the_setting_says_so(lab: Lab, healing: ApnsSettings) -> None:
    settings = msgspec.structs.replace(healing, heal_environment=False)
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), settings, clock=SystemClock(), telemetry=Noted())
    await sender.start()
    got = await outcome(sender, to_sandbox(lab))
    await sender.stop(1)
    assert isinstance(got, Refused)
    assert refusals(lab) == (1, 0)


@pytest.mark.asyncio
async def test_a_key_that_the_other_environment_refuses_does_not_count_against_the_credential(
    lab: Lab, apns: ApnsSender, noted: Noted
) -> None:
    lab.faults.replace(script({"where": "apns_sandbox", "do": {"answer": {"status": 403, "reason": "Forbidden"}}}))
    got = await outcome(apns, to_sandbox(lab))
    assert isinstance(got, Refused)
    assert got.code == "BadDeviceToken"
    assert apns.health().ok
    assert noted.fields_of(Event.CREDENTIAL_DENIED) == []
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    assert isinstance(await outcome(apns, to_sandbox(lab)), Refused)
    assert lab.records.counts["apns_sandbox"].reasons["Forbidden"] == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("reason", ["InvalidProviderToken", "TopicDisallowed", "BadEnvironmentKeyIdInToken"])
async def test_what_the_other_environment_refuses_is_said_of_it_alone(
    lab: Lab, apns: ApnsSender, noted: Noted, reason: str
) -> None:
    """A token that is known to be its own waits for it; whatever goes to the app's own environment does not."""
    token = to_sandbox(lab).device.token
    assert isinstance(await outcome(apns, to_sandbox(lab, token)), Taken)
    lab.faults.replace(script({"where": "apns_sandbox", "do": {"answer": {"status": 403, "reason": reason}}}))
    got = await outcome(apns, to_sandbox(lab, token))
    assert isinstance(got, CredentialRejected)
    assert (got.code, got.reach) == (reason, Reach.SCOPE)
    scope_of = apns.capabilities.scope_of
    assert scope_of is not None
    assert scope_of(to_sandbox(lab, token)) == "com.example.demo (sandbox)"
    assert scope_of(to_ios(lab)) == "com.example.demo"
    assert apns.health().ok
    assert noted.fields_of(Event.CREDENTIAL_DENIED) == []
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)


@pytest.mark.asyncio
async def test_a_topic_that_the_other_environment_refuses_leaves_its_others_alone(lab: Lab, apns: ApnsSender) -> None:
    """That Apple refuses a topic there says nothing of whether other tokens can be asked about."""
    answer = {"answer": {"status": 400, "reason": "TopicDisallowed"}}
    lab.faults.replace(script({"where": "apns_sandbox", "match": {"times": 1}, "do": answer}))
    assert isinstance(await outcome(apns, to_sandbox(lab)), Refused)
    assert isinstance(await outcome(apns, to_sandbox(lab)), Taken)


@pytest.mark.asyncio
async def test_all_connections_of_a_credential_share_one_limit(
    lab: Lab, healing: ApnsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two sockets visible and silent notifications take one each: none is left for the other environment."""
    assert gateway.MOST_SOCKETS == 50
    monkeypatch.setattr("waypost.channels.apns.sender.MOST_SOCKETS", 2)
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), healing, clock=SystemClock(), telemetry=Noted())
    await sender.start()
    for one in (to_ios(lab), to_ios(lab, fresh(Content(), kind=Kind.SILENT))):
        assert isinstance(await outcome(sender, one), Taken)
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 2.0)
    assert await outcome(sender, to_sandbox(lab)) == Throttled("not_sent", MINUTE_MS)
    await sender.stop(1)
    assert lab.records.counts["apns_sandbox"].connections_opened == 0

"""Provider tokens on open connections, and keys that Apple does not accept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.adapters.senders.bench import SystemClock, accepted, fresh, outcome, outcomes, script, to_ios
from tests.contract.clock import StoppedClock
from tests.shows import shows
from tests.unit.adapters.deliveries import delivery
from waypost.channels.apns.credentials import SLOT_MS
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Refused, Taken, Throttled
from waypost.domain.time import MINUTE_MS, Instant
from waypost.lab import Lab, LabSettings
from waypost.telemetry.sink import Silent

DEMO = AppId("demo")
NOW = SystemClock().now()
SLOT = Instant(NOW - NOW % SLOT_MS)


class Skewed:
    """Apple's clock: ours and what it is ahead."""

    def __init__(self, ours: StoppedClock) -> None:
        self.ours = ours
        self.ahead_ms = 0

    def __call__(self) -> float:
        return (self.ours.now() + self.ahead_ms) / 1000


@pytest.fixture
def clock() -> StoppedClock:
    """Five minutes into a provider token's life."""
    return StoppedClock(Instant(SLOT + 5 * MINUTE_MS))


@pytest.fixture
def apples_clock(clock: StoppedClock) -> Skewed:
    """As ours, until a test says otherwise."""
    return Skewed(clock)


@pytest.fixture
def lab_settings(tmp_path: Path, apples_clock: Skewed) -> LabSettings:
    """A lab on Apple's clock."""
    return LabSettings(
        directory=tmp_path, apns_port=0, fcm_port=0, webpush_port=0, oauth_port=0, admin_port=0, clock=apples_clock
    )


@pytest_asyncio.fixture
async def apns(apns_settings: ApnsSettings, clock: StoppedClock) -> AsyncIterator[ApnsSender]:
    """A sender on our clock."""
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), apns_settings, clock=clock, telemetry=Silent())
    await sender.start()
    yield sender
    await sender.stop(1)


@shows("S1-100")
@pytest.mark.asyncio
async def test_a_token_is_renewed_on_the_open_connection(lab: Lab, apns: ApnsSender, clock: StoppedClock) -> None:
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    clock.advance(2 * SLOT_MS)
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    first, second = accepted(lab, "apns")
    assert first.connection == second.connection
    assert lab.records.counts["apns"].connections_opened == 1


@shows("S1-100")
@pytest.mark.asyncio
async def test_a_worker_that_begins_late_in_a_slot_shows_no_second_token_minutes_later(
    lab: Lab, apns_settings: ApnsSettings, clock: StoppedClock
) -> None:
    clock.advance(SLOT_MS - 6 * MINUTE_MS)
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), apns_settings, clock=clock, telemetry=Silent())
    await sender.start()
    for _ in range(30):
        assert isinstance(await outcome(sender, to_ios(lab)), Taken)
        clock.advance(2 * MINUTE_MS)
    await sender.stop(1)
    assert len({each.connection for each in accepted(lab, "apns")}) == 1


@pytest.mark.asyncio
async def test_a_connection_that_is_too_young_for_a_new_token_is_given_up(
    lab: Lab, apns: ApnsSender, clock: StoppedClock
) -> None:
    """It was opened shortly before all of us changed to the next token."""
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    clock.advance(SLOT_MS - 6 * MINUTE_MS)
    await lab.script(script({"where": "apns", "match": {"times": 1}, "do": {"goaway": {"last_stream": "none"}}}))
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    clock.advance(MINUTE_MS)
    opened = lab.records.counts["apns"].connections_opened
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    assert lab.records.counts["apns"].reasons["TooManyProviderTokenUpdates"] == 1
    assert lab.records.counts["apns"].connections_opened == opened + 1


@pytest.mark.asyncio
async def test_apple_that_takes_the_token_nowhere_throttles_for_a_minute(lab: Lab, apns: ApnsSender) -> None:
    fault = {"status": 429, "reason": "TooManyProviderTokenUpdates"}
    await lab.script(script({"where": "apns", "match": {"times": 2}, "do": {"answer": fault}}))
    assert await outcome(apns, to_ios(lab)) == Throttled("TooManyProviderTokenUpdates", MINUTE_MS, whole=True)
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)


@pytest.mark.asyncio
async def test_a_token_that_apple_finds_too_old_is_renewed_at_once_and_nothing_fails(
    lab: Lab, apns: ApnsSender, clock: StoppedClock, apples_clock: Skewed
) -> None:
    clock.advance(17 * MINUTE_MS)
    apples_clock.ahead_ms = 50 * MINUTE_MS
    assert all(isinstance(got, Taken) for got in await outcomes(apns, [to_ios(lab) for _ in range(20)]))
    assert lab.records.counts["apns"].reasons["ExpiredProviderToken"] >= 1
    assert lab.records.counts["apns"].reasons["TooManyProviderTokenUpdates"] == 0


@pytest.mark.asyncio
async def test_a_clock_that_is_an_hour_slow_is_denied_and_says_so(
    lab: Lab, apns: ApnsSender, clock: StoppedClock, apples_clock: Skewed
) -> None:
    clock.advance(35 * MINUTE_MS)
    apples_clock.ahead_ms = 90 * MINUTE_MS
    got = await outcome(apns, to_ios(lab))
    assert isinstance(got, CredentialRejected)
    assert got.code == "ExpiredProviderToken"
    assert not apns.health().ok
    apples_clock.ahead_ms = 0
    clock.advance(2 * SLOT_MS)
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    assert apns.health().ok


@pytest.mark.asyncio
async def test_a_key_that_apple_does_not_know_is_denied(lab: Lab, apns_settings: ApnsSettings) -> None:
    settings = msgspec.structs.replace(apns_settings, key_id="ZZZZZ99999")
    sender = ApnsSender(CredentialId.of(DEMO, "apns"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    got = await outcome(sender, to_ios(lab))
    await sender.stop(1)
    assert isinstance(got, CredentialRejected)
    assert got.code == "InvalidProviderToken"


@pytest.mark.asyncio
async def test_a_token_of_the_other_environment_is_refused_and_not_forgotten(lab: Lab, apns: ApnsSender) -> None:
    (sandbox,) = lab.tokens.make("ios", 1, topic="com.example.demo", environment="sandbox")
    got = await outcome(apns, to_ios(lab, token=sandbox))
    assert isinstance(got, Refused)
    assert got.code == "BadDeviceToken"


@pytest.mark.asyncio
@pytest.mark.parametrize("token", ["../../1/apps", "ab cd", "", "ü" * 64, "a\r\nb"])
async def test_a_token_that_could_break_out_of_the_path_is_never_sent(lab: Lab, apns: ApnsSender, token: str) -> None:
    one = delivery(Platform("ios"), token, fresh())
    assert await outcome(apns, one) == Refused("malformed_token", "the token is not hexadecimal")
    assert lab.records.counts["apns"].refused == 0


@shows("S1-102")
@pytest.mark.asyncio
async def test_settings_that_cannot_be_used_are_named(apns_settings: ApnsSettings) -> None:
    for field, value in (
        ("key_file", "/nowhere/AuthKey.p8"),
        ("ca_file", "/nowhere/ca.pem"),
        ("endpoint", "http://127.0.0.1:1"),
        ("endpoint", "https://127.0.0.1:1/path"),
        ("endpoint", "https://127.0.0.1:notaport"),
    ):
        settings = msgspec.structs.replace(apns_settings, **{field: value})
        sender = ApnsSender(CredentialId.of(DEMO, "apns"), settings, clock=SystemClock(), telemetry=Silent())
        with pytest.raises(ConfigurationError) as caught:
            await sender.start()
        assert caught.value.path == f"apps.demo.apns.{field}"
        await sender.stop(1)

"""Broadcast channels against the lab's: made, read, listed, sent to, deleted, and refused in Apple's words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec.yaml
import pytest
import pytest_asyncio
from click.testing import CliRunner

from tests.adapters.senders.bench import SystemClock, accepted, outcome, script, to_all, to_ios
from waypost.channels.apns.channels import AppleAway, BroadcastChannel, BroadcastChannels, ChannelRefused, open_channels
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.cli import waypost
from waypost.domain.audience import Audience
from waypost.domain.channel import APNS
from waypost.domain.content import ApnsPushType
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.outcome import Refused, Taken
from waypost.lab import Lab
from waypost.telemetry.sink import Silent

UPDATE = {"event": "update", "content-state": {"score": "1:0"}}


@pytest.fixture
def lab_apple(apns_settings: ApnsSettings, lab: Lab) -> ApnsSettings:
    """The lab's hosts for channels, too."""
    return msgspec.structs.replace(
        apns_settings, channels_endpoint=lab.urls.apns_channels, broadcast_endpoint=lab.urls.apns_broadcast
    )


@pytest_asyncio.fixture
async def channels(lab_apple: ApnsSettings) -> AsyncIterator[BroadcastChannels]:
    """Of the app ``demo``."""
    async with open_channels(AppId("demo"), lab_apple, SystemClock()) as opened:
        yield opened


@pytest.mark.asyncio
async def test_a_channel_is_made_read_listed_sent_to_and_deleted(lab: Lab, channels: BroadcastChannels) -> None:
    stored, fleeting = await channels.create(stored=True), await channels.create(stored=False)
    assert await channels.read(stored) == BroadcastChannel(1)
    assert await channels.read(fleeting) == BroadcastChannel(0)
    assert set(await channels.ids()) == {stored, fleeting}
    assert await channels.send(stored, UPDATE, expires_in_s=3600)
    assert await channels.send(fleeting, {"event": "end"}, priority="5")
    await channels.delete(stored)
    assert await channels.ids() == (fleeting,)
    assert lab.records.counts["apns_broadcast"].accepted == 2


@pytest.mark.asyncio
async def test_a_notification_to_a_channel_is_one_push_and_what_apple_refuses_is_final(
    lab: Lab, lab_apple: ApnsSettings, channels: BroadcastChannels
) -> None:
    sender = ApnsSender(CredentialId.of(AppId("demo"), "apns"), lab_apple, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    content = {"title": None, "push_type": ApnsPushType.LIVEACTIVITY, "overrides": {APNS: {"aps": UPDATE}}}
    stored = await channels.create(stored=True)
    got = await outcome(sender, to_all(Audience(APNS, "channel", stored), **content))
    assert isinstance(got, Taken)
    assert got.provider_id
    fleeting = await channels.create(stored=False)
    refused = {"BadExpirationDate": fleeting, "ChannelNotRegistered": "YWJj", "BadChannelId": "?"}
    for code, name in refused.items():
        other = await outcome(sender, to_all(Audience(APNS, "channel", name), **content))
        assert isinstance(other, Refused)
        assert other.code == code
    assert isinstance(await outcome(sender, to_ios(lab)), Taken)
    await sender.stop(1)
    (record,) = accepted(lab, "apns_broadcast")
    assert record.token == stored


@pytest.mark.asyncio
async def test_what_apple_refuses_is_told_in_its_words_and_ours(channels: BroadcastChannels) -> None:
    channel = await channels.create(stored=False)
    for reason, asked in (
        ("MissingChannelId", channels.read("")),
        ("BadChannelId", channels.read("?")),
        ("ChannelNotRegistered", channels.delete("YWJj")),
        ("BadExpirationDate", channels.send(channel, UPDATE, expires_in_s=60)),
        ("BadRequestPayload", channels.send(channel, {"event": "start"})),
        ("PayloadTooLarge", channels.send(channel, UPDATE | {"x": "y" * 5120})),
    ):
        with pytest.raises(ChannelRefused) as caught:
            await asked
        assert caught.value.reason == reason


@pytest.mark.asyncio
async def test_an_apple_that_is_away_can_be_asked_again(lab: Lab, channels: BroadcastChannels) -> None:
    away = {"status": 503, "reason": "Service Unavailable"}
    await lab.script(script({"where": "apns_channels", "do": {"answer": away}}))
    with pytest.raises(AppleAway):
        await channels.ids()


@pytest.mark.asyncio
async def test_the_command_line_does_the_same(lab: Lab, tmp_path: Path) -> None:
    directory = lab.settings.directory
    config = tmp_path / "waypost.yaml"
    account = {
        "key_file": str(directory / "AuthKey.p8"),
        "key_id": lab.settings.key_id,
        "team_id": lab.settings.team_id,
        "topic": "com.example.demo",
        "ca_file": str(directory / "ca.pem"),
        "channels_endpoint": lab.urls.apns_channels,
        "broadcast_endpoint": lab.urls.apns_broadcast,
    }
    _write(config, {"apps": {"demo": {"apns": account}}})

    async def run(*arguments: str) -> tuple[int, str]:
        command = ["apns", "channels", *arguments, "--app", "demo", "--config", str(config)]
        ended = await asyncio.to_thread(CliRunner().invoke, waypost, command)
        return ended.exit_code, ended.output.strip()

    _, channel = await run("create", "--stored")
    assert await run("list") == (0, channel)
    assert await run("show", channel) == (0, "stores the last message")
    status, _ = await run("send", channel, "--ttl", "60", "--aps", '{"event": "end"}')
    assert (status, lab.records.counts["apns_broadcast"].accepted) == (0, 1)
    assert await run("delete", channel) == (0, "deleted")
    status, why = await run("show", channel)
    assert (status, why) == (
        1,
        "Error: Apple says ChannelNotRegistered: there is no such channel in this environment",
    )


def _write(file: Path, config: object) -> None:
    file.write_bytes(msgspec.yaml.encode(config))

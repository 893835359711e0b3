"""Device groups of FCM: who is in one, and a message to all of it by its token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import msgspec.yaml
import pytest
import pytest_asyncio
from click.testing import CliRunner

from tests.adapters.senders.bench import SystemClock, accepted, outcome, payload_of, to_all
from tests.shows import shows
from waypost.channels.fcm.calls import NotDone
from waypost.channels.fcm.device_groups import GROUP_CODES, LARGEST, DeviceGroups, Group
from waypost.channels.fcm.payload import faults
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import CHANNEL, FcmSettings
from waypost.channels.fcm.topics import TopicMembers
from waypost.cli import waypost
from waypost.domain.audience import Audience
from waypost.domain.content import Content, Kind
from waypost.domain.ids import AppId
from waypost.domain.outcome import Taken
from waypost.lab import Lab

DEMO = AppId("demo")


@pytest_asyncio.fixture
async def groups(lab: Lab, fcm_settings: FcmSettings) -> AsyncIterator[DeviceGroups]:
    """The lab project's."""
    groups = DeviceGroups(DEMO, fcm_settings, lab.settings.project_number, clock=SystemClock())
    await groups.start()
    yield groups
    await groups.stop()


def tokens(lab: Lab, count: int) -> list[str]:
    return lab.tokens.make("android", count, topic=None, environment=None)


async def made(groups: DeviceGroups, name: str, members: list[str]) -> Group:
    group = await groups.create(name, members)
    assert isinstance(group, Group)
    return group


@shows("S1-141")
@pytest.mark.asyncio
async def test_one_message_to_a_groups_token_reaches_all_of_its_devices(
    lab: Lab, groups: DeviceGroups, fcm: FcmSender
) -> None:
    """Twenty is all that Google lets into a group; a dead one of them harms nobody."""
    members = tokens(lab, LARGEST)
    group = await made(groups, "fleet-7", members[:12])
    assert await groups.add("fleet-7", group.token, members[12:]) == group
    lab.tokens.deaths[members[3]] = 1
    assert isinstance(await outcome(fcm, to_all(Audience(CHANNEL, "group", group.token))), Taken)
    (record,) = accepted(lab, "fcm")
    message = payload_of(lab, record)["message"]
    assert message["token"] == group.token
    assert lab.fcm.reached_by(message) == [each for each in members if each != members[3]]


@shows("S1-141")
@pytest.mark.asyncio
async def test_one_message_reaches_a_group_of_fifty_through_its_topic(
    lab: Lab, fcm: FcmSender, fcm_settings: FcmSettings
) -> None:
    """What is too large for a group's token is a topic that only the caller's server fills: one call all the same."""
    members = tokens(lab, 50)
    topics = TopicMembers(DEMO, fcm_settings, clock=SystemClock())
    await topics.start()
    assert len(await topics.subscribe_many(members, "group-fleet-7")) == 50
    await topics.stop()
    assert isinstance(await outcome(fcm, to_all(Audience(CHANNEL, "topic", "group-fleet-7"))), Taken)
    (record,) = accepted(lab, "fcm")
    assert lab.fcm.reached_by(payload_of(lab, record)["message"]) == members


@pytest.mark.asyncio
async def test_a_group_is_found_by_its_name_and_ends_with_its_last_device(
    lab: Lab, groups: DeviceGroups, fcm: FcmSender
) -> None:
    one, two = tokens(lab, 2)
    group = await made(groups, "fleet-7", [one, two])
    assert await groups.find("fleet-7") == group
    assert await groups.remove("fleet-7", group.token, [one, two]) == group
    assert await groups.find("fleet-7") == GROUP_CODES["notification_key not found"]
    refused = await outcome(fcm, to_all(Audience(CHANNEL, "group", group.token)))
    assert getattr(refused, "code", "") == "UNREGISTERED"


@pytest.mark.asyncio
async def test_each_refusal_of_google_has_its_code(lab: Lab, groups: DeviceGroups, fcm_settings: FcmSettings) -> None:
    one, other = tokens(lab, 2)
    group, another = await made(groups, "fleet-7", [one]), await made(groups, "fleet-8", [one])
    codes = [
        await groups.create("fleet-7", [one]),
        await groups.create("fleet-9", ["no token"]),
        await groups.add("fleet-9", "APA91b-of-nobody-at-all", [one]),
        await groups.add("fleet-7", another.token, [other]),
        await groups.add("fleet-7", group.token, tokens(lab, LARGEST + 1)),
        await groups.add("fleet-7", group.token, tokens(lab, LARGEST)),
    ]
    said = [each.code for each in codes if isinstance(each, NotDone)]
    assert said == ["EXISTS", "NO_DEVICES", "NOT_FOUND", "WRONG_NAME", "TOO_MANY", "http_400"]
    strangers = DeviceGroups(DEMO, fcm_settings, "1", clock=SystemClock())
    await strangers.start()
    assert isinstance(await strangers.find("fleet-7"), NotDone), "the number is of another project"
    await strangers.stop()


def test_what_cannot_be_a_groups_token_is_refused_at_the_door() -> None:
    (fault,) = faults(Content(title="T", to=Audience(CHANNEL, "group", "fleet 7")), Kind.VISIBLE)
    assert fault.path == "to.name"


@pytest.mark.asyncio
async def test_the_command_line_makes_changes_and_shows_a_group(lab: Lab, tmp_path: Path) -> None:
    directory = lab.settings.directory
    account = {"service_account_file": str(directory / "fcm.json"), "ca_file": str(directory / "ca.pem")}
    config = tmp_path / "waypost.yaml"
    config.write_bytes(msgspec.yaml.encode({"apps": {"demo": {"fcm": account | {"endpoint": lab.urls.fcm}}}}))
    common = ["--app", "demo", "--config", str(config), "--sender-id", lab.settings.project_number]

    async def run(verb: str, *named: str, stdin: str = "") -> tuple[int, str]:
        command = ["fcm", "groups", verb, *common, "--", *named]
        ended = await asyncio.to_thread(CliRunner().invoke, waypost, command, input=stdin)
        return ended.exit_code, ended.output.strip()

    one, two = tokens(lab, 2)
    status, token = await run("create", "fleet-7", "-", stdin=f"{one}\n")
    assert status == 0
    assert await run("add", "fleet-7", two) == (0, token)
    assert await run("show", "fleet-7") == (0, token)
    assert lab.fcm.groups.members(token) == [one, two]
    assert await run("remove", "fleet-7", one, two) == (0, token)
    status, said = await run("add", "fleet-7", one)
    assert (status, said.partition(":")[0]) == (1, "Error")
    assert "NOT_FOUND" in said

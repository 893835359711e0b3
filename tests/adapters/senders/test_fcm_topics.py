"""TopicMembers of FCM: who hears them, one at a time and a thousand at once, and messages to all who do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import msgspec.yaml
import pytest
import pytest_asyncio
from click.testing import CliRunner

from tests.adapters.senders.bench import SystemClock, accepted, outcome, payload_of, script, to_all
from tests.shows import shows
from tests.tables import AddRow
from waypost.channels.fcm.calls import Done, NotDone
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import CHANNEL, FcmSettings
from waypost.channels.fcm.topics import INSTANCE_ID_CODES, TopicMembers
from waypost.cli import waypost
from waypost.domain.audience import Audience
from waypost.domain.ids import AppId
from waypost.domain.outcome import Refused, Taken, Unanswered
from waypost.lab import Lab


@pytest_asyncio.fixture
async def topics(fcm_settings: FcmSettings) -> AsyncIterator[TopicMembers]:
    """The lab project's."""
    topics = TopicMembers(AppId("demo"), fcm_settings, clock=SystemClock())
    await topics.start()
    yield topics
    await topics.stop()


def tokens(lab: Lab, count: int) -> list[str]:
    return lab.tokens.make("android", count, topic=None, environment=None)


@shows("S3-107")
@pytest.mark.asyncio
async def test_a_device_hears_a_topic_until_it_does_not_and_asking_twice_is_no_mistake(
    lab: Lab, topics: TopicMembers
) -> None:
    (token,) = tokens(lab, 1)
    (fid,) = lab.tokens.make("fid", 1, topic=None, environment=None)
    for device in (token, f"fid:{fid}"):
        assert await topics.topics_of(device) == []
        for _ in range(2):
            assert await topics.subscribe(device, "news") == Done()
        assert await topics.topics_of(device) == ["news"]
        for _ in range(2):
            assert await topics.unsubscribe(device, "news") == Done()
        assert await topics.topics_of(device) == []


@pytest.mark.asyncio
async def test_a_device_without_the_app_and_a_name_that_is_no_topic_are_told_apart(
    lab: Lab, topics: TopicMembers
) -> None:
    (token,) = tokens(lab, 1)
    assert await topics.subscribe(token, "no topic") == NotDone("INVALID_ARGUMENT", "the topic is not one", False)
    lab.tokens.deaths[token] = 1
    gone = NotDone("UNREGISTERED", "the app is no longer on the device", again=False)
    assert await topics.subscribe(token, "news") == gone
    assert await topics.unsubscribe(token, "news") == gone
    assert await topics.topics_of(token) == gone


@pytest.mark.asyncio
async def test_many_tokens_have_an_answer_each_in_their_order(lab: Lab, topics: TopicMembers) -> None:
    many = tokens(lab, 1001)
    lab.tokens.deaths[many[3]] = 1
    many[5] = "no token"
    got = await topics.subscribe_many(many, "news")
    assert len(got) == 1001
    assert got[3] == NotDone("NOT_FOUND", "the app is no longer on the device", again=False)
    assert isinstance(got[5], NotDone)
    assert got[5].code == "INVALID_ARGUMENT"
    assert [one for place, one in enumerate(got) if place not in (3, 5)] == [Done()] * 999
    assert await topics.topics_of(many[1000]) == ["news"]
    assert (await topics.unsubscribe_many(many[:3], "news")) == [Done()] * 3
    assert await topics.topics_of(many[0]) == []
    assert await topics.subscribe_many([], "news") == []


INSTANCE_ID_ROWS = [
    ("NOT_FOUND", False),
    ("INVALID_ARGUMENT", False),
    ("TOO_MANY_TOPICS", False),
    ("RESOURCE_EXHAUSTED", True),
    ("PERMISSION_DENIED", False),
    ("INTERNAL", True),
    ("UNAVAILABLE", True),
]


def test_the_rows_above_are_the_whole_table() -> None:
    assert {code for code, _ in INSTANCE_ID_ROWS} == set(INSTANCE_ID_CODES)


@pytest.mark.asyncio
@pytest.mark.parametrize(("code", "again"), [*INSTANCE_ID_ROWS, ("NEVER_SEEN", True)])
async def test_each_code_of_the_instance_id_service_says_whether_it_may_work_later(
    lab: Lab, topics: TopicMembers, code: str, again: bool, table: AddRow
) -> None:
    body = msgspec.json.encode({"results": [{"error": code}, {}]}).decode()
    await lab.script(script({"where": "fcm", "do": {"answer": {"status": 200, "body": body}}}))
    refused, done = await topics.subscribe_many(tokens(lab, 2), "news")
    assert isinstance(refused, NotDone)
    assert (refused.code, refused.again, done) == (code, again, Done())
    table("every error of topic subscriptions", code=code, again=again, why=refused.why)


@pytest.mark.asyncio
async def test_a_call_that_is_refused_as_a_whole_is_so_for_each_token(lab: Lab, topics: TopicMembers) -> None:
    got = await topics.subscribe_many(tokens(lab, 2), "no topic")
    assert [type(one) for one in got] == [NotDone, NotDone]


@shows("S3-106", "S3-107")
@pytest.mark.asyncio
async def test_one_message_goes_to_a_topic_and_to_a_condition(lab: Lab, fcm: FcmSender) -> None:
    """What the provider tells all who listen is one request (requirements S3-106)."""
    condition = "'news' in topics && 'sport' in topics"
    for to in (Audience(CHANNEL, "topic", "news"), Audience(CHANNEL, "condition", condition)):
        assert isinstance(await outcome(fcm, to_all(to)), Taken)
    first, second = [payload_of(lab, record)["message"] for record in accepted(lab, "fcm")]
    assert (first["topic"], second["condition"]) == ("news", condition)
    assert "token" not in first


@pytest.mark.asyncio
async def test_what_a_topic_cannot_take_is_refused_and_failures_are_read_as_ever(lab: Lab, fcm: FcmSender) -> None:
    """To a topic only 2048 bytes go."""
    news = Audience(CHANNEL, "topic", "news")
    too_large = await outcome(fcm, to_all(news, title="Title", body="x" * 2048))
    assert isinstance(too_large, Refused)
    assert too_large.code == "payload_too_large"
    assert "limit 2048" in too_large.why
    assert lab.records.counts["fcm"].refused == 0
    assert isinstance(await outcome(fcm, to_all(Audience(CHANNEL, "condition", "news in topics"))), Refused)
    await lab.script(script({"where": "fcm", "do": {"answer": {"status": 503, "reason": "UNAVAILABLE"}}}))
    assert isinstance(await outcome(fcm, to_all(news)), Unanswered)


@shows("S3-106")
@pytest.mark.asyncio
async def test_the_command_line_subscribes_and_lists(lab: Lab, tmp_path: Path) -> None:
    directory = lab.settings.directory
    account = {"service_account_file": str(directory / "fcm.json"), "ca_file": str(directory / "ca.pem")}
    config = tmp_path / "waypost.yaml"
    config.write_bytes(msgspec.yaml.encode({"apps": {"demo": {"fcm": account | {"endpoint": lab.urls.fcm}}}}))

    async def run(*arguments: str, stdin: str = "") -> tuple[int, str]:
        verb, *named = arguments
        command = [
            "fcm",
            "topics",
            verb,
            "--app",
            "demo",
            "--config",
            str(config),
            "--",
            *named,
        ]  # a token may begin so
        ended = await asyncio.to_thread(CliRunner().invoke, waypost, command, input=stdin)
        return ended.exit_code, ended.output.strip()

    one, two = tokens(lab, 2)
    assert await run("subscribe", "news", one, two) == (0, "2 of 2 done")
    assert await run("list", "-", stdin=two) == (0, "news")
    assert await run("unsubscribe", "news", two) == (0, "1 of 1 done")
    assert await run("subscribe", "news", "-", stdin=f"{one}\n\n{two}\n") == (0, "2 of 2 done")
    assert (await run("subscribe", "news", "-"))[0] == 2
    assert await run("unsubscribe", "news", two) == (0, "1 of 1 done")
    lab.tokens.deaths[one] = 1
    status, said = await run("subscribe", "sport", one, two)
    assert (status, said.splitlines()[0]) == (1, "1 of 2 done")
    assert "UNREGISTERED" in said

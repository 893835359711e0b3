"""Our own topics: who hears them, however often it is said, and how long."""

from __future__ import annotations

import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant, later
from waypost.ports.topics import Topic
from waypost.stores.sql.topics import SqlTopics

pytestmark = pytest.mark.asyncio

DEMO, OTHER = AppId("demo"), AppId("other")
NOW = Instant(1_800_000_000_000)
ANN, BOB, CAT = UserId("ann"), UserId("bob"), UserId("cat")


@pytest.fixture
def topics(ledger_store: SqlUnderTest) -> SqlTopics:
    """The topics of an empty store."""
    return ledger_store._opened.topics


async def made(topics: SqlTopics, name: str = "news", app: AppId = DEMO) -> Topic:
    await topics.put(app, name, "", is_open=False, at=NOW)
    found = await topics.find(app, name)
    assert found is not None
    return found


async def test_a_topic_is_made_once_and_changed_without_losing_anybody(topics: SqlTopics) -> None:
    assert await topics.put(DEMO, "news", "Old", is_open=False, at=NOW)
    await topics.change(DEMO, "news", [ANN], [], NOW)
    assert not await topics.put(DEMO, "news", "New", is_open=True, at=later(NOW, 1))
    news = await topics.find(DEMO, "news")
    assert news is not None
    assert (news.description, news.is_open, news.created_at) == ("New", True, NOW)
    assert await topics.count(news) == 1
    assert await topics.find(OTHER, "news") is None


async def test_who_hears_a_topic_is_said_as_often_as_you_like_and_walked_by_id(topics: SqlTopics) -> None:
    news, sport = await made(topics), await made(topics, "sport")
    assert await topics.change(DEMO, "news", [CAT, ANN, ANN, BOB], [], NOW)
    assert await topics.change(DEMO, "news", [ANN], [], NOW)
    assert await topics.change(DEMO, "sport", [ANN], [BOB], NOW)
    assert await topics.members(news, "", 2) == [ANN, BOB]
    assert await topics.members(news, BOB, 2) == [CAT]
    assert await topics.heard_by(DEMO, ANN) == ["news", "sport"]
    assert await topics.change(DEMO, "news", [], [ANN, UserId("nobody")], NOW)
    assert (await topics.count(news), await topics.heard_by(DEMO, ANN)) == (2, ["sport"])
    assert await topics.count(sport) == 1
    assert not await topics.change(DEMO, "unknown", [ANN], [], NOW)
    assert not await topics.change(OTHER, "news", [ANN], [], NOW), "of another app"
    assert [each.name for each in await topics.page(DEMO, "", 9)] == ["news", "sport"]
    assert [each.name for each in await topics.page(DEMO, "news", 1)] == ["sport"]


async def test_a_topic_that_is_made_again_begins_without_anybody_and_the_old_members_go_by_pages(
    topics: SqlTopics,
) -> None:
    await made(topics)
    kept = await made(topics, "kept")
    await topics.change(DEMO, "news", [ANN, BOB, CAT], [], NOW)
    await topics.change(DEMO, "kept", [ANN], [], NOW)
    assert await topics.remove(DEMO, "news")
    assert not await topics.remove(DEMO, "news")
    again = await made(topics)
    assert await topics.count(again) == 0
    await topics.change(DEMO, "news", [BOB], [], NOW)
    assert [await topics.drop(2), await topics.drop(2), await topics.drop(2)] == [2, 1, 0]
    assert await topics.members(again, "", 9) == [BOB]
    assert await topics.members(kept, "", 9) == [ANN]
    assert await topics.heard_by(DEMO, ANN) == ["kept"]


async def test_a_user_is_forgotten_as_they_were_until_then(topics: SqlTopics) -> None:
    await made(topics)
    await made(topics, "sport")
    await topics.change(DEMO, "news", [ANN, BOB], [], NOW)
    await topics.change(DEMO, "sport", [ANN], [], later(NOW, 2))
    await topics.erase(DEMO, ANN, later(NOW, 1))
    assert (await topics.heard_by(DEMO, ANN), await topics.heard_by(DEMO, BOB)) == (["sport"], ["news"])

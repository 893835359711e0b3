"""Templates: drafts, versions that never change, and which one a submission says."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId
from waypost.domain.template import ChannelTexts, TemplateContent
from waypost.domain.time import Instant
from waypost.ports.templates import TemplateRecord, Templates, VersionRecord

pytestmark = pytest.mark.asyncio

DEMO, NAME = AppId("demo"), "order-shipped"
NOW = Instant(1_800_000_000_000)
LATER = Instant(NOW + 1)


def saying(title: str) -> TemplateContent:
    return TemplateContent(channels={"default": ChannelTexts(title=title)}, texts={"pt": {"hello": "Olá, été"}})


@pytest.fixture
def templates(ledger_store: SqlUnderTest) -> Templates:
    """The templates of an empty store."""
    return ledger_store._opened.templates


async def test_a_draft_is_replaced_and_a_version_stays_as_it_was(templates: Templates) -> None:
    assert await templates.show(DEMO, NAME) is None
    assert await templates.put(DEMO, NAME, saying("first"), NOW) == 1
    assert await templates.put(DEMO, NAME, saying("second"), NOW) == 2
    assert await templates.of(DEMO, [(NAME, 1)]) == {}, "a draft that was replaced is gone"
    assert not await templates.publish(DEMO, NAME, 1, NOW)
    assert (await templates.show(DEMO, NAME)) == TemplateRecord(NAME, None, 2, None)
    assert await templates.publish(DEMO, NAME, 2, NOW)
    assert await templates.put(DEMO, NAME, saying("third"), LATER) == 3
    assert (await templates.show(DEMO, NAME)) == TemplateRecord(NAME, 2, 3, None)
    assert await templates.versions(DEMO, NAME) == [VersionRecord(3, LATER, None), VersionRecord(2, NOW, NOW)]
    assert await templates.publish(DEMO, NAME, 3, LATER) and await templates.publish(DEMO, NAME, 2, LATER)
    assert await templates.versions(DEMO, NAME) == [VersionRecord(3, LATER, LATER), VersionRecord(2, NOW, NOW)]
    found = await templates.of(DEMO, [(NAME, 2), (NAME, 3), (NAME, 4), ("other", 2)])
    assert {number: version.content for (_, number), version in found.items()} == {
        2: saying("second"),
        3: saying("third"),
    }
    assert await templates.of(AppId("other"), [(NAME, 2)]) == {}


async def test_a_submission_says_what_is_published_now_or_the_version_that_it_names(templates: Templates) -> None:
    wanted = [(NAME, None), (NAME, 1), (NAME, 2), (NAME, 9), ("other", None)]

    async def chosen() -> dict[int | None, int]:
        return {of: version.number for (_, of), version in (await templates.chosen(DEMO, wanted)).items()}

    assert await chosen() == {}
    await templates.put(DEMO, NAME, saying("first"), NOW)
    assert await chosen() == {1: 1}, "a draft by its number alone"
    await templates.publish(DEMO, NAME, 1, NOW)
    await templates.put(DEMO, NAME, saying("second"), NOW)
    assert await chosen() == {None: 1, 1: 1, 2: 2}
    await templates.publish(DEMO, NAME, 2, NOW)
    assert await chosen() == {None: 2, 1: 1, 2: 2}
    assert await templates.retire(DEMO, NAME, LATER) and not await templates.retire(DEMO, "other", LATER)
    assert await chosen() == {}
    assert (await templates.show(DEMO, NAME)) == TemplateRecord(NAME, 2, None, LATER)
    assert (await templates.of(DEMO, [(NAME, 2)]))[NAME, 2].content == saying("second"), "what was accepted is said"
    await templates.publish(DEMO, NAME, 1, NOW)
    assert await chosen() == {None: 1, 1: 1, 2: 2}


async def test_they_are_listed_by_name_and_by_pages(templates: Templates) -> None:
    for name in ("b", "a", "c"):
        await templates.put(DEMO, name, saying(name), NOW)
    assert [each.name for each in await templates.list(DEMO, "", 2)] == ["a", "b"]
    assert [each.name for each in await templates.list(DEMO, "b", 2)] == ["c"]
    assert await templates.list(AppId("other"), "", 2) == []


async def test_drafts_written_and_published_at_the_same_time_leave_one_draft_and_whole_versions(
    templates: Templates,
) -> None:
    written = [templates.put(DEMO, NAME, saying(str(n)), NOW) for n in range(10)]
    published = [templates.publish(DEMO, NAME, n, NOW) for n in range(1, 11)]
    numbers = await asyncio.gather(*written)
    done = await asyncio.gather(*published)
    assert sorted(numbers) == list(range(1, 11))
    record = await templates.show(DEMO, NAME)
    assert record is not None
    for each in await templates.versions(DEMO, NAME):
        assert (each.published_at is not None) == done[each.number - 1], each
        assert (NAME, each.number) in await templates.of(DEMO, [(NAME, each.number)])

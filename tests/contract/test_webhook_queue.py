"""The queue of webhooks: of each notification one at a time, in order, whatever is read again."""

from __future__ import annotations

import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId, NotificationId, token_hash
from waypost.domain.time import Instant
from waypost.stores.sql.webhook_queue import SqlWebhookQueue, WebhookEnded, WebhookEvent, WebhookGone

pytestmark = pytest.mark.asyncio

DEMO, URL, AT = AppId("demo"), "https://shop.example/x", Instant(1_800_000_000_000)
ONE, TWO = (NotificationId(bytes([n]) * 16) for n in (1, 2))


def event(of: NotificationId, seq: int, url: str = URL) -> WebhookEvent:
    """An event with an id that sorts against its order."""
    return WebhookEvent(NotificationId(bytes([200 - seq]) * 16), of, seq, DEMO, url, AT, b"{}")


@pytest.fixture
def queue(ledger_store: SqlUnderTest) -> SqlWebhookQueue:
    """The queue of an empty store."""
    return ledger_store._opened.webhook_queue


async def test_one_of_each_notification_is_on_its_way_and_its_end_brings_the_next(
    queue: SqlWebhookQueue,
) -> None:
    first, second, other = event(ONE, 1), event(ONE, 2), event(TWO, 3)
    page = [first, second, other]
    assert await queue.take(page) == [first, other]
    assert await queue.take(page) == [first, other]  # read again after a crash
    over = [WebhookEnded(first.id)]
    assert await queue.take(over) == [second]
    assert await queue.take(over) == [second], "whoever accepts it may have died before"
    await queue.drop(over)
    assert await queue.take([WebhookEnded(first.id), WebhookEnded(second.id)]) == []
    assert await queue.take([WebhookEnded(other.id), event(TWO, 4)]) == [event(TWO, 4)]


async def test_a_url_that_is_gone_is_told_nothing_until_it_is_enabled(queue: SqlWebhookQueue) -> None:
    elsewhere = event(TWO, 2, "https://other.example/x")
    assert await queue.take([WebhookGone(DEMO, token_hash(URL), AT), event(ONE, 1), elsewhere]) == [elsewhere]
    assert await queue.enable(AT, 10) == 0
    assert await queue.enable(Instant(AT + 1), 10) == 1
    assert await queue.take([event(ONE, 3)]) == [event(ONE, 3)]

"""Views: reads by key or by cursor."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.contract.bench import APP, OTHER_APP, Bench, again, by_content, marking, new_id, notification, tried
from tests.shows import shows
from waypost.domain.content import Content, Kind
from waypost.domain.delivery import FailureClass
from waypost.domain.ids import CallerId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.settlement import Change, Dead, Sent
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.ports.feed import Mark
from waypost.ports.views import Addressed, DeadQuery, HistoryQuery, Marked, PageQuery
from waypost.ports.work import NewNotification, Replay

pytestmark = pytest.mark.asyncio

DEAD = Dead("500", "away", FailureClass.RETRYABLE, letter=True)
GONE = Dead("410", "gone", FailureClass.TERMINAL, letter=True)
DROPPED = Dead("500", "away", FailureClass.RETRYABLE, letter=False)


async def _history(bench: Bench, query: HistoryQuery) -> list[NotificationId]:
    return [record.notification.id for record in await bench.store.views.history(query)]


@shows("S3-49")
async def test_an_unknown_id_and_another_apps_have_no_story(bench: Bench) -> None:
    made = await bench.accepted()
    assert await bench.store.views.detail(APP, new_id(bench.now)) is None
    assert await bench.store.views.detail(OTHER_APP, made.id) is None


async def test_a_story_has_the_receipts_in_order(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.routed(made, Sent("a"), DEAD, Sent("c"))
    detail = await bench.detail(made)
    assert detail.record.notification == made
    assert [receipt.n for receipt in detail.receipts] == [0, 1, 2]
    assert all(receipt.notification_id == made.id for receipt in detail.receipts)


async def test_a_story_lists_at_most_a_hundred_duplicates(bench: Bench) -> None:
    first, *others = [notification(bench.now, body="same") for _ in range(103)]
    await bench.accept(*(NewNotification(made, (by_content(made),)) for made in (first, *others)))
    assert (await bench.detail(first)).duplicates == tuple(made.id for made in others[:100])


@shows("S3-38")
async def test_history_is_newest_first_and_goes_by_cursor(bench: Bench) -> None:
    made = [await bench.accepted(user=f"u{n % 2}") for n in range(7)]
    found: list[NotificationId] = []
    while page := await _history(bench, HistoryQuery(APP, before=found[-1] if found else None, limit=3)):
        found += page
    assert found == [one.id for one in reversed(made)]


@shows("S3-38")
async def test_no_row_is_skipped_or_repeated_while_new_ones_arrive(bench: Bench) -> None:
    """Requirements S3-38."""
    made = [await bench.accepted() for _ in range(9)]
    found: list[NotificationId] = []
    while page := await _history(bench, HistoryQuery(APP, before=found[-1] if found else None, limit=2)):
        found += page
        await bench.accepted()
    assert found == [one.id for one in reversed(made)]


@shows("S3-33")
@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE notification; --",
        "x' OR '1'='1",
        '");DELETE FROM device;--',
        "%_?1:a$1",
    ],
)
async def test_what_looks_like_sql_is_text(text: str, bench: Bench) -> None:
    """Requirements S3-33: it is stored and found as it was said, and nothing else is."""
    other = await bench.accepted()
    content = Content(title=text, body=text, data={text: text}, type=text)
    made = msgspec.structs.replace(notification(bench.now, user=text), content=content, caller=CallerId(text))
    await bench.accept(made)
    assert await _history(bench, HistoryQuery(APP, user_id=UserId(text))) == [made.id]
    assert await _history(bench, HistoryQuery(APP)) == [made.id, other.id]
    stored = (await bench.detail(made)).record.notification
    assert (stored.content, stored.user_id, stored.caller) == (content, text, text)


async def test_history_of_one_user(bench: Bench) -> None:
    made = [await bench.accepted(user=f"u{n % 2}") for n in range(6)]
    query = HistoryQuery(APP, user_id=UserId("u1"), limit=2)
    assert await _history(bench, query) == [made[5].id, made[3].id]
    query = HistoryQuery(APP, user_id=UserId("u1"), before=made[3].id)
    assert await _history(bench, query) == [made[1].id]


async def test_history_of_one_app(bench: Bench) -> None:
    await bench.accepted()
    other = await bench.accepted(app=OTHER_APP)
    assert await _history(bench, HistoryQuery(OTHER_APP)) == [other.id]
    assert await _history(bench, HistoryQuery(OTHER_APP, user_id=UserId("ann"))) == [other.id]


async def test_history_by_status_as_it_reads(bench: Bench) -> None:
    sent_one, retried = notification(bench.now), notification(bench.now)
    await bench.routed(sent_one, Sent("p"))
    await bench.routed(retried, again(0, bench.now, wait_ms=HOUR_MS).settlement)
    scheduled = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    fresh = await bench.accepted()
    for status, made in {
        NotificationStatus.SENT: sent_one,
        NotificationStatus.PROCESSING: retried,
        NotificationStatus.SCHEDULED: scheduled,
        NotificationStatus.PENDING: fresh,
    }.items():
        assert await _history(bench, HistoryQuery(APP, statuses=(status,))) == [made.id]
        assert await _history(bench, HistoryQuery(APP, UserId("ann"), (status,))) == [made.id]
    both = (NotificationStatus.SCHEDULED, NotificationStatus.PENDING)
    assert await _history(bench, HistoryQuery(APP, statuses=both)) == [fresh.id, scheduled.id]


async def test_a_rare_status_is_found_far_back(bench: Bench) -> None:
    rare = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    await bench.accept(*(notification(bench.now) for _ in range(2500)))
    assert await _history(bench, HistoryQuery(APP, statuses=(NotificationStatus.SCHEDULED,))) == [rare.id]


async def test_dead_letters_newest_first_by_cursor(bench: Bench) -> None:
    made = [notification(bench.now) for _ in range(3)]
    for one in made:
        await bench.routed(one, DEAD, Sent("p"), GONE)
    expected = [(one.id, n) for one in reversed(made) for n in (2, 0)]
    found: list[tuple[NotificationId, int]] = []
    while page := await bench.store.views.dead(DeadQuery(APP, before=found[-1] if found else None, limit=4)):
        assert len(page) <= 4
        found += [(letter.record.notification.id, letter.receipt.n) for letter in page]
    assert found == expected
    letter = (await bench.store.views.dead(DeadQuery(APP, limit=1)))[0]
    assert (letter.record.notification, letter.record.status) == (made[2], NotificationStatus.PARTIAL)
    assert letter.receipt.code == "410"


async def test_dead_letters_by_code_user_and_time(bench: Bench) -> None:
    old = notification(bench.now, user="ann")
    await bench.routed(old, DEAD)
    bench.clock.advance(HOUR_MS)
    young = notification(bench.now, user="bob")
    await bench.routed(young, GONE)

    async def found(query: DeadQuery) -> list[NotificationId]:
        return [letter.record.notification.id for letter in await bench.store.views.dead(query)]

    assert await found(DeadQuery(APP, code="500")) == [old.id]
    assert await found(DeadQuery(APP, user_id=UserId("bob"))) == [young.id]
    assert await found(DeadQuery(APP, since=later(bench.now, -MINUTE_MS))) == [young.id]
    assert await found(DeadQuery(APP, code="500", user_id=UserId("bob"))) == []
    assert await found(DeadQuery(OTHER_APP)) == []


async def test_what_was_dropped_or_replayed_is_no_dead_letter(bench: Bench) -> None:
    dropped, replayed = notification(bench.now), notification(bench.now)
    await bench.routed(dropped, DROPPED)
    await bench.routed(replayed, DEAD)
    await bench.accept(Replay(APP, replayed.id, bench.now, later(bench.now, HOUR_MS)))
    assert await bench.store.views.dead(DeadQuery(APP)) == []


async def test_whom_the_known_ids_of_an_app_are_for(bench: Bench) -> None:
    """With the numbers of their targets; another app's are not told."""
    mine, fresh, others = notification(bench.now), notification(bench.now), notification(bench.now, app=OTHER_APP)
    await bench.routed(mine, Sent("p"), Sent("q"))
    await bench.accept(*map(NewNotification, (fresh, others)))
    numbers = {each.device_id: each.n for each in await bench.receipts(mine)}
    assert len(numbers) == 2
    found = await bench.store.views.addressed(APP, [mine.id, fresh.id, others.id, new_id(bench.now)])
    assert found == {mine.id: Addressed(mine.user_id, numbers), fresh.id: Addressed(fresh.user_id, {})}
    assert await bench.store.views.addressed(APP, []) == {}


async def test_statuses_of_the_known_ids_of_an_app(bench: Bench) -> None:
    mine = await bench.accepted(scheduled_at=later(bench.now, HOUR_MS))
    other = await bench.accepted(app=OTHER_APP)
    ids = [mine.id, other.id, new_id(bench.now)]
    assert await bench.store.views.statuses(APP, ids) == {mine.id: NotificationStatus.SCHEDULED}
    assert await bench.store.views.statuses(APP, []) == {}


async def test_the_balance_is_of_all_apps_or_one(bench: Bench) -> None:
    made: list[Notification] = [notification(bench.now), notification(bench.now, app=OTHER_APP)]
    for one in made:
        await bench.accept(one)
        lease, item = await bench.take_one()
        await bench.settle_first(lease, item, 1, Change(0, 1, Sent("p"), bench.now, tried(bench.now, "taken")))
    await bench.accepted()
    views = bench.store.views
    assert dict(await views.balance()) == {NotificationStatus.SENT: 2, NotificationStatus.PENDING: 1}
    assert dict(await views.balance(APP)) == {NotificationStatus.SENT: 1, NotificationStatus.PENDING: 1}
    assert dict(await views.balance(OTHER_APP)) == {NotificationStatus.SENT: 1}


READABLE = tuple(status for status in NotificationStatus if status is not NotificationStatus.DEDUPLICATED)


async def _page(bench: Bench, **asked: Any) -> tuple[list[NotificationId], int]:
    query = PageQuery(**({"app": APP, "user_id": UserId("ann"), "statuses": READABLE} | asked))
    page = await bench.store.views.page(query)
    return [detail.record.notification.id for detail in page.details], page.total


@shows("S3-37")
async def test_a_page_has_its_part_of_a_users_notifications_and_their_number(bench: Bench) -> None:
    made = [await bench.accepted() for _ in range(5)]
    await bench.accepted(user="bob")
    await bench.accepted(app=OTHER_APP)
    await bench.accept(msgspec.structs.replace(notification(bench.now), kind=Kind.SILENT))
    newest_first = [one.id for one in reversed(made)]
    assert await _page(bench, limit=2) == (newest_first[:2], 5)
    assert await _page(bench, offset=2, limit=2) == (newest_first[2:4], 5)
    assert await _page(bench, offset=4, limit=2) == (newest_first[4:], 5)
    assert await _page(bench, offset=6, limit=2) == ([], 5)
    assert await _page(bench, user_id=UserId("nobody")) == ([], 0)


async def test_a_page_shows_receipts_and_what_waits_for_a_retry_apart(bench: Bench) -> None:
    sent_one, retried, half = (notification(bench.now) for _ in range(3))
    await bench.routed(sent_one, Sent("p"))
    again_later = again(0, bench.now, wait_ms=HOUR_MS).settlement
    await bench.routed(retried, again_later)
    await bench.routed(half, Sent("q"), again_later)
    details = (await bench.store.views.page(PageQuery(APP, UserId("ann"), READABLE))).details
    assert [len(detail.receipts) for detail in details] == [2, 1, 1]
    assert [receipt.provider_id for receipt in details[2].receipts] == ["p"]
    processing = (NotificationStatus.PROCESSING,)
    assert await _page(bench, statuses=processing) == ([half.id, retried.id], 2)
    assert await _page(bench, statuses=processing, waiting=True) == ([retried.id], 1)
    assert await _page(bench, statuses=(*processing, NotificationStatus.SENT), waiting=False) == (
        [half.id, sent_one.id],
        2,
    )


@shows("S3-36")
async def test_a_page_of_some_types(bench: Bench) -> None:
    plain, alert, promotion = (notification(bench.now) for _ in range(3))
    alert = msgspec.structs.replace(alert, content=msgspec.structs.replace(alert.content, type="alert"))
    promotion = msgspec.structs.replace(promotion, content=msgspec.structs.replace(promotion.content, type="promotion"))
    await bench.accept(plain, alert, promotion)
    assert await _page(bench, types=("alert",)) == ([alert.id], 1)
    assert await _page(bench, types=("promotion", None)) == ([promotion.id, plain.id], 2)
    assert await _page(bench, types=("news",)) == ([], 0)


async def test_a_duplicates_record_is_on_no_page_of_what_was_sent(bench: Bench) -> None:
    first, second = (notification(bench.now, body="same") for _ in range(2))
    await bench.accept(*(NewNotification(made, (by_content(made),)) for made in (first, second)))
    assert await _page(bench) == ([first.id], 1)


async def test_a_page_far_back_is_found_and_counted(bench: Bench) -> None:
    oldest = await bench.accepted()
    await bench.accept(*(notification(bench.now) for _ in range(1200)))
    assert await _page(bench, offset=1200, limit=1) == ([oldest.id], 1201)


@shows("S3-40", "S3-45")
async def test_what_was_read_says_when_it_was_read_first(bench: Bench) -> None:
    made, other = await bench.accepted(), await bench.accepted()
    read_at, feed = bench.now, bench.store.feed
    await feed.mark(marking(made, Mark.READ, read_at))
    await feed.mark(marking(made, Mark.READ, later(read_at, HOUR_MS)))
    assert (await bench.detail(made)).marked == Marked(read_at=read_at)
    assert (await bench.detail(other)).marked == Marked()
    page = await bench.store.views.page(PageQuery(APP, UserId("ann"), READABLE))
    assert [detail.marked.read_at for detail in page.details] == [None, read_at]
    await feed.mark(marking(made, Mark.UNREAD, read_at))
    await feed.mark(marking(other, Mark.UNREAD, read_at))
    assert (await bench.detail(made)).marked == Marked()
    await feed.mark(marking(made, Mark.READ, later(read_at, HOUR_MS)))
    assert (await bench.detail(made)).marked == Marked(read_at=later(read_at, HOUR_MS))


@shows("S3-42")
async def test_what_was_hidden_is_on_no_page_and_stays_readable_by_id(bench: Bench) -> None:
    made, other = await bench.accepted(), await bench.accepted()
    await bench.store.feed.mark(marking(made, Mark.READ, bench.now))
    await bench.store.feed.mark(marking(made, Mark.DELETED, later(bench.now, MINUTE_MS)))
    await bench.store.feed.mark(marking(made, Mark.DELETED, later(bench.now, HOUR_MS)))
    assert await _page(bench) == ([other.id], 1)
    assert (await bench.detail(made)).marked == Marked(bench.now, later(bench.now, MINUTE_MS))


async def test_a_mark_may_come_before_the_record(bench: Bench) -> None:
    made = notification(bench.now)
    await bench.store.feed.mark(marking(made, Mark.READ, bench.now))
    await bench.accept(made)
    assert (await bench.detail(made)).marked.read_at == bench.now

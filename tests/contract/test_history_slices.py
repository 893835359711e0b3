"""The reads of one user's notifications that came over days, in any order: over many slices where there are slices."""

from __future__ import annotations

import os
import random

import msgspec
import pytest

from tests.contract.bench import APP, OTHER_APP, Bench, notification
from tests.shows import shows
from waypost.domain.ids import AppId, NotificationId, UserId, next_ids
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, later
from waypost.ports.erasure import Erasure
from waypost.ports.views import HistoryQuery, PageQuery
from waypost.stores.sql import history

pytestmark = pytest.mark.asyncio

ANN, BOB = UserId("ann"), UserId("bob")
EVERY = tuple(NotificationStatus)


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SHORTEST", 3)


def id_of_day(bench: Bench, days: float) -> NotificationId:
    """Return an id that was made so many days from now."""
    return next_ids(later(bench.now, int(days * DAY_MS)), 1, os.urandom(10), 0)[0][0]


async def came(bench: Bench, app: AppId = APP) -> dict[UserId, list[NotificationId]]:
    """Accept sixty notifications of ninety days, one in three after younger ones; return each user's, newest first."""
    days = [n * 1.5 - 90 for n in range(60)]
    mixed = random.Random(22)
    for n in range(0, 60, 3):
        other = mixed.randrange(60)
        days[n], days[other] = days[other], days[n]
    made: dict[UserId, list[NotificationId]] = {ANN: [], BOB: []}
    for n in range(0, 60, 2):
        pair = [
            msgspec.structs.replace(notification(bench.now, user=user, app=app), id=id_of_day(bench, days[n + at]))
            for at, user in enumerate(mixed.sample((ANN, BOB, ANN), 2))
        ]
        await bench.accept(*pair)
        for each in pair:
            made[each.user_id].append(each.id)
    return {user: sorted(ids, reverse=True) for user, ids in made.items()}


@shows("S3-38")
async def test_a_history_goes_by_cursor_in_the_order_of_ids(bench: Bench) -> None:
    made = await came(bench)
    await came(bench, OTHER_APP)
    for user, ids in made.items():
        found: list[NotificationId] = []
        while page := await _history(bench, user, found[-1] if found else None, 7):
            found += page
        assert found == ids
    for days in (-89, -61.3, -30.1, -0.2, 1):
        between = id_of_day(bench, days)
        older = [each for each in made[ANN] if each < between]
        assert await _history(bench, ANN, between, 5) == older[:5]
    assert await _history(bench, UserId("nobody"), None, 5) == []


async def test_a_page_by_number_is_of_all_of_it(bench: Bench) -> None:
    made = await came(bench)
    page = await bench.store.views.page(PageQuery(APP, ANN, EVERY, offset=11, limit=9))
    assert ([each.record.notification.id for each in page.details], page.total) == (made[ANN][11:20], len(made[ANN]))


async def test_an_erasure_finds_all_of_it(bench: Bench) -> None:
    made = await came(bench)
    erasures = bench.store.erasures_of(bench.worker)
    order = Erasure(id_of_day(bench, 0), APP, ANN, UserId("erased-0"), bench.now)
    assert sorted(await erasures.unfinished(order, 100), reverse=True) == made[ANN]
    assert len(set(await erasures.unfinished(order, 4)) & set(made[ANN])) == 4


async def _history(bench: Bench, user: UserId, before: NotificationId | None, limit: int) -> list[NotificationId]:
    query = HistoryQuery(APP, user_id=user, before=before, limit=limit)
    return [record.notification.id for record in await bench.store.views.history(query)]

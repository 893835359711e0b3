"""Content or words that cannot be read: the one notification ends, those beside it do not notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pysqlite3 import dbapi2

from tests.adapters.sql.conftest import OpenStore
from tests.contract.bench import notification
from waypost.domain.content import UNREADABLE
from waypost.domain.notification import Lane
from waypost.domain.recipient import Recipient
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.status import NotificationStatus
from waypost.domain.time import MINUTE_MS, Instant, later
from waypost.pipeline.route import plan
from waypost.ports.views import DeadQuery
from waypost.ports.work import NewNotification, Settled

pytestmark = pytest.mark.asyncio

NOW = Instant(1_800_000_000_000)
_CONTENT = "UPDATE content SET body = x'c1ff' WHERE seq = (SELECT seq FROM notification WHERE id = ?)"
_WORDS = [f"UPDATE notification SET {word} = 'newer' WHERE id = ?" for word in ("kind", "urgency", "guarantee")]  # noqa: S608 - columns
"""Words that only a newer version knows."""


@pytest.mark.parametrize("spoil", [_CONTENT, *_WORDS], ids=["content", "kind", "urgency", "guarantee"])
async def test_it_is_a_dead_letter_and_its_neighbour_is_leased_as_it_was(
    tmp_path: Path, open_at: OpenStore, spoil: str
) -> None:
    """Nothing raises, neither where it is leased nor where it is shown, and nothing of it is sent."""
    store = await open_at(tmp_path / "waypost.db")
    spoilt, sound = notification(NOW, user="ann"), notification(NOW, user="bob")
    await store.work.accept([NewNotification(spoilt), NewNotification(sound)])
    _spoil(tmp_path / "waypost.db", spoil, spoilt.id)
    lease = await store.work.lease(Lane.NORMAL, 10, later(NOW, MINUTE_MS))
    contents = {item.notification.id: item.notification.content for item in lease.items}
    assert contents[spoilt.id] is UNREADABLE
    assert contents[sound.id] == sound.content
    (item,) = (each for each in lease.items if each.notification.id == spoilt.id)
    made = plan(item, Recipient(), RoutingTable({}, {}, RULES), NOW)
    assert made.deliveries == ()
    assert await store.work.settle(lease, [Settled(spoilt, made.changes, made.targets, made.verdict)]) == []
    detail = await store.views.detail(spoilt.app, spoilt.id)
    assert detail is not None
    assert detail.record.status is NotificationStatus.FAILED
    (letter,) = await store.views.dead(DeadQuery(spoilt.app))
    assert letter.receipt.code == "unreadable"


def _spoil(database: Path, sql: str, notification_id: bytes) -> None:
    connection = dbapi2.connect(database)
    connection.execute(sql, (notification_id,))
    connection.commit()
    connection.close()

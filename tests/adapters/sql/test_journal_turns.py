"""A long page of the journal is decoded in several turns of the event loop: others have theirs in between."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.moves import NotificationMoved
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.stores.sql.journal import _BYTES_A_TURN, SqlJournal

pytestmark = pytest.mark.asyncio


class Page:
    """A database whose journal has one page of rows, each *size* bytes long or a little more."""

    def __init__(self, rows: int, size: int) -> None:
        ended = (None, NotificationStatus.SENT, Instant(1))
        move = NotificationMoved(AppId("demo"), NotificationId(bytes(16)), UserId("ann"), *ended)
        count = size // len(msgspec.msgpack.encode(move)) + 1
        self.rows = [(n, msgspec.msgpack.encode([move] * count)) for n in range(1, rows + 1)]

    async def read(self, _: Any) -> list[tuple[int, bytes]]:
        """Return the page."""
        return self.rows


@pytest.mark.parametrize(("rows", "size", "pauses"), [(4, _BYTES_A_TURN, 3), (4, _BYTES_A_TURN // 2, 3), (4, 100, 0)])
async def test_others_have_their_turn_within_a_long_page(rows: int, size: int, pauses: int) -> None:
    database: Any = Page(rows, size)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    read = await SqlJournal(database).read(0, rows)
    counting.cancel()
    assert turns == pauses
    assert [each.position for each in read] == [1, 2, 3, 4]
    assert [len(each.moves) for each in read] == [len(msgspec.msgpack.decode(changes)) for _, changes in database.rows]

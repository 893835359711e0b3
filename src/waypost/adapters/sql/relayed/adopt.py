"""Adopting: a store that another stack worked on gets the entries that are missing, and loses those that are over.

notification   (lane, app, seq) WHERE due_at = 0     fresh, by pages
outbox         INSERT where there is no entry; UPDATE where nothing of what an entry stands for is open
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from waypost.adapters.sql.database import Database
from waypost.adapters.sql.engine import Connection
from waypost.adapters.sql.lease import in_shards
from waypost.adapters.sql.relayed.outbox import AT_ONCE
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.domain.notification import Lane

_PAGE = 2_000
_ENTRY = "SELECT 1 FROM outbox WHERE notification_id = notification.id AND n = -1 AND done_at IS NULL"
_FRESH = (
    f"SELECT app, seq, id, EXISTS ({_ENTRY}) FROM notification"  # noqa: S608 - conditions of ours
    f" WHERE lane = ? AND due_at = 0 AND (app, seq) > (?, ?){in_shards(frozenset(range(SHARDS)))}"
    " ORDER BY app, seq LIMIT ?"
)
_ADOPT = (
    "INSERT INTO outbox (notification_id, n, app, lane, added_at, again_at)"  # noqa: S608 - a constant
    f" SELECT id, -1, app, lane, ?, {AT_ONCE} FROM notification WHERE id IN ({{keys}}) AND due_at = 0"
    " ON CONFLICT (notification_id, n) WHERE done_at IS NULL DO NOTHING"
)
_OVER = """\
UPDATE outbox SET done_at = ? WHERE lane = ? AND done_at IS NULL AND NOT CASE WHEN n = -1
    THEN EXISTS (SELECT 1 FROM notification WHERE id = notification_id AND due_at IS NOT NULL AND status = 'pending')
    ELSE EXISTS (SELECT 1 FROM receipt
        WHERE receipt.notification_id = outbox.notification_id AND receipt.n = outbox.n AND due_at IS NOT NULL) END
"""


class _Page(Struct, frozen=True):
    """What a page of fresh rows lacks, and where it ends."""

    missing: list[NotificationId]
    after: tuple[AppId, int]
    is_last: bool


async def adopt(database: Database) -> None:
    """Make outbox and rows agree; a short look where they do."""
    for lane in Lane:
        await asyncio.shield(database.commits.submit(END_OVER, lane))
        page = _Page([], (AppId(""), 0), is_last=False)
        while not page.is_last:
            page = await database.read(partial(_fresh, lane=lane, after=page.after))
            if page.missing:
                await asyncio.shield(database.commits.submit(ADOPT, page.missing, len(page.missing)))


def _fresh(connection: Connection, lane: Lane, after: tuple[AppId, int]) -> _Page:
    rows = connection.execute(_FRESH, (lane._value_, *after, _PAGE)).fetchall()
    missing = [row[2] for row in rows if not row[3]]
    return _Page(missing, (rows[-1][0], rows[-1][1]) if rows else after, len(rows) < _PAGE)


def _adopt(transaction: Transaction, ops: Sequence[Sequence[NotificationId]]) -> list[None]:
    connection = transaction.connection
    for sql, chunk in connection.lists(_ADOPT, [one for op in ops for one in op]):
        connection.execute(sql, (transaction.now, *chunk))
    return [None] * len(ops)


def _end_over(transaction: Transaction, ops: Sequence[Lane]) -> list[None]:
    for lane in ops:
        transaction.connection.execute(_OVER, (transaction.now, lane._value_))
    return [None] * len(ops)


ADOPT: Kind[Sequence[NotificationId], None] = Kind("adopt", _adopt, durable=False)
END_OVER: Kind[Lane, None] = Kind("end over", _end_over, durable=False)
